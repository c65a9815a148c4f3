"""OTLP in protobuf → the same request in OTLP/JSON's shape, ids in hex as OTLP/JSON wants them.

The wire format is read here field by field, by the numbers of opentelemetry-proto 1.x, and not by the generated
classes: those lose a whole request for one text of broken UTF-8 or one bad span, and their JSON mapping writes ids in
base64. Unknown fields are passed over. 64-bit numbers are written as text, as protobuf's JSON mapping does.
"""

import base64
import math
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evalagent.model import Json
from evalagent.traces.otlp_fields import ALONE, ALWAYS, MESSAGES, WIRE

Signal = Literal["traces", "logs", "metrics"]
DEEPEST = 64
"""AnyValues in one another; what is deeper is left as bytes."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A request, and why parts of it are missing."""

    request: dict[str, Json]
    lost: tuple[str, ...] = ()


class MalformedProtobuf(ValueError):
    """The bytes are no protobuf message of this kind."""


class TooManyMessages(ValueError):
    """More messages in one another than the caller takes."""


class _Lost(list[str]):
    """Why parts are missing, and how many messages may still come."""

    left = sys.maxsize


def decode(data: bytes, signal: Literal["traces", "logs"], *, most: int = sys.maxsize) -> Decoded:
    """An export request of one signal. MalformedProtobuf if even its frame cannot be read; TooManyMessages if there are
    more than `most` messages in it, values and attributes included."""
    lost = _Lost()
    lost.left = most
    return Decoded(_message(data, 0, len(data), signal, 0, lost), tuple(lost))


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    found = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
    raise MalformedProtobuf(f"a number without end at byte {position}")


def fields(data: bytes, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, wire type, value or start, end) of each field of a message."""
    while position < end:
        tag, position = _varint(data, position, end)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise MalformedProtobuf(f"no field at byte {position}")
        if wire == 0:
            value, position = _varint(data, position, end)
            yield number, wire, value, position
            continue
        if wire == 2:
            length, position = _varint(data, position, end)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise MalformedProtobuf(f"wire type {wire} at byte {position}")
        if position + length > end:
            raise MalformedProtobuf(f"a field runs over the end at byte {position}")
        yield number, wire, position, position + length
        position += length


def _message(data: bytes, start: int, end: int, kind: str, depth: int, lost: _Lost) -> dict[str, Json]:
    lost.left -= 1
    if lost.left < 0:
        raise TooManyMessages
    known = MESSAGES[kind]
    found: dict[str, Json] = dict(ALWAYS.get(kind, ()))
    for number, wire, value, stop in fields(data, start, end):
        field = known.get(number)
        if field is None or wire != WIRE.get(field.kind, 2):
            continue
        try:
            item = _value(data, value, stop, field.kind, depth, lost)
        except MalformedProtobuf as error:
            if field.kind not in ALONE:
                raise
            lost.append(f"{field.name}: {error}")
            continue
        if field.many:
            held = found.get(field.name)
            if held is None:
                found[field.name] = [item]
            else:
                held.append(item)
        elif kind == "any_value":
            found = {field.name: item}  # a oneof: the last wins
        else:
            found[field.name] = item
    return found


def _value(data: bytes, value: int, stop: int, kind: str, depth: int, lost: _Lost) -> Json:
    if kind == "text":
        return data[value:stop].decode("utf-8", "replace")
    if kind == "any_value":
        if depth >= DEEPEST:
            return {"bytesValue": base64.b64encode(data[value:stop]).decode()}
        return _message(data, value, stop, kind, depth + 1, lost)
    if kind in MESSAGES:
        return _message(data, value, stop, kind, depth, lost)
    if kind == "hex":
        return data[value:stop].hex()
    if kind == "fixed64":
        return str(int.from_bytes(data[value:stop], "little"))
    if kind == "fixed32":
        return int.from_bytes(data[value:stop], "little")
    if kind == "int64":
        return str(value - (1 << 64) if value >> 63 else value)
    if kind == "bool":
        return bool(value)
    if kind == "double":
        number = struct.unpack_from("<d", data, value)[0]
        if math.isfinite(number):
            return number
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if kind == "base64":
        return base64.b64encode(data[value:stop]).decode()
    return value & 0xFFFFFFFF


# --- files ---------------------------------------------------------------------------------------


def messages(data: bytes) -> list[tuple[int, int]] | None:
    """Where the requests of a binary file lie: one alone, or each after its length (varint, or 4 bytes as the
    collector's file exporter writes). None: the file is not of that kind."""
    if not data or data[:1] in (b"{", b"["):
        return None
    if is_request(data, 0, len(data)):
        return [(0, len(data))]
    for wide in (True, False):
        found = _delimited(data, wide)
        if found:
            return found
    return None


def _delimited(data: bytes, wide: bool) -> list[tuple[int, int]] | None:
    found: list[tuple[int, int]] = []
    position, size = 0, len(data)
    while position < size:
        if wide:
            start = position + 4
            length = int.from_bytes(data[position:start], "big")
        else:
            try:
                length, start = _varint(data, position, size)
            except MalformedProtobuf:
                length, start = size + 1, position  # no length: what is left is a message cut off
        if not found and not (length and start + length <= size and is_request(data, start, start + length)):
            return None  # the first must be whole; one of the others may be damaged or cut off
        found.append((start, start + length))
        position = start + length
    return found


def is_request(data: bytes, start: int, end: int) -> bool:
    """Whether these bytes are nothing but fields number 1, each a message that holds messages under 1 to 3."""
    try:
        parts = list(fields(data, start, end))
        return all(number == 1 and wire == 2 for number, wire, _, _ in parts) and all(
            inner in (1, 2, 3, 1000) and kind == 2
            for _, _, begin, stop in parts
            for inner, kind, _, _ in fields(data, begin, stop)
        )
    except MalformedProtobuf:
        return False


def signal(data: bytes, start: int, end: int) -> Signal | None:
    """What a request carries, told by the wire types of its first record; None where it holds no record.

    Only a log record begins with a fixed 64-bit number, only a span has two further on, a metric has none.
    """
    for begin, stop in _paths(data, start, end, 3):
        sizes: dict[tuple[int, int], int] = {}
        try:
            for number, wire, at, last in fields(data, begin, stop):
                sizes[number, wire] = last - at
        except MalformedProtobuf:
            continue  # this record is bad; the next may tell
        if (1, 1) in sizes or (11, 1) in sizes:
            return "logs"
        if (7, 1) in sizes or (8, 1) in sizes or (sizes.get((1, 2)) == 16 and sizes.get((2, 2)) == 8):
            return "traces"
        return "metrics" if (1, 2) in sizes else "logs"
    return None


def _paths(data: bytes, start: int, end: int, levels: int) -> Iterator[tuple[int, int]]:
    """The messages `levels` deep: field 1 of the request, then field 2 and field 2."""
    here = [(start, end)]
    for level in range(levels):
        here = [
            (begin, stop)
            for place in here
            for number, wire, begin, stop in fields(data, *place)
            if wire == 2 and number == (1 if level == 0 else 2)
        ]
    yield from here
