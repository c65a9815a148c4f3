"""A large OTLP protobuf file in pieces that hold whole messages.

Such a file is one request, or requests each after its length (varint, or four bytes as the collector's file exporter
writes them). One request is cut between its resources: fields in a row are a request again.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from evalagent.traces.otlp_protobuf import is_request

Framing = Literal["one", "wide", "varint"]
_LONGEST_NUMBER = 10


class Part(NamedTuple):
    """Some messages: where they lie in `data`, and how many stand before them. `rest`: they are not the first of their
    request."""

    data: bytes
    places: tuple[tuple[int, int], ...]
    before: int
    rest: bool = False


def framing_of(head: bytes) -> Framing | None:
    """How the messages of a binary file follow one another, told by its first bytes; None: it is no such file."""
    if head[:1] in (b"{", b"["):
        return None
    first = _message(head, 0, "one")
    if first is not None and head[:1] == b"\n" and _fits(head, 0, first[1]):
        return "one"
    for framing in ("wide", "varint"):
        place = _message(head, 0, framing)
        if place is not None and place[1] > place[0] and _fits(head, *place):
            return framing
    return None


def _fits(head: bytes, start: int, end: int) -> bool:
    """Whether a request lies there; of one longer than what is known, whether it begins like one."""
    if end <= len(head):
        return is_request(head, start, end)
    inner = _message(head, start, "one")
    return (
        head[start : start + 1] == b"\n" and inner is not None and inner[1] <= end and head[inner[0]] in b"\n\x12\x1a"
    )


def _message(data: bytes | bytearray, position: int, framing: str) -> tuple[int, int] | None:
    """Where the message that begins here lies, as its length says; None if the length itself is cut off or none.

    Of one request (`one`) a message is a field with what it holds: the tag, the length, and so many bytes.
    """
    if framing == "wide":
        start = position + 4
        return (start, start + int.from_bytes(data[position:start], "big")) if start <= len(data) else None
    start = position + (framing == "one")
    found = shift = 0
    for byte in data[start : start + _LONGEST_NUMBER]:
        start += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return start, start + found
        shift += 7
    return None


def messages(blocks: Iterator[bytes], framing: Framing, size: int) -> Iterator[Part]:
    """The file in parts of about `size` bytes; a longer message is a part."""
    held = bytearray()
    before = position = begun = 0
    places: list[tuple[int, int]] = []
    rest = False
    for block in blocks:
        held += block
        while True:
            place = _message(held, position, framing)
            if place is None or place[1] > len(held):
                break
            if framing == "one" and held[position] != 0x0A:
                place = (place[0], len(held))  # no field of a request: it is judged with those before it
            places.append(place)
            position = place[1]
            if position - begun >= size:
                yield _part(held, begun, position, places, before, framing, rest)
                before += 0 if framing == "one" else len(places)
                rest = framing == "one"
                del held[:position]
                places, position, begun = [], 0, 0
    if position < len(held):  # a message that is cut off
        place = _message(held, position, framing)
        places.append(place if place is not None and place[1] > len(held) else (position, len(held) + 1))
    if places:
        yield _part(held, 0, len(held), places, before, framing, rest)


def _part(
    held: bytearray,
    begun: int,
    end: int,
    places: list[tuple[int, int]],
    before: int,
    framing: Framing,
    rest: bool,
) -> Part:
    data = bytes(held[begun:end])
    if framing == "one":
        last = places[-1][1] if places[-1][1] > len(data) else len(data)
        return Part(data, ((0, last),), 0, rest)
    return Part(data, tuple(places), before)
