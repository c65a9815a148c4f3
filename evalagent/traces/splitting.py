"""A text of traces whose single values are too large to be held, as many small values of the same shape.

Where a list of requests, resources, scopes, spans, records, observations, events or traces is large, some of its items
at a time are put into a value like the one they stand in: with what is said beside the list for all of them
(`CONTEXT`), and nothing else. Everything that is not such a list is taken whole. Where what is said for all of them
stands after the list, the text has to be gone through again with what was `told`.

A transcript is one value, as is a run with its child runs or a table written column by column: up to `most` bytes.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import orjson

from evalagent.model import Rejected
from evalagent.traces.dispatching import WRAPPERS
from evalagent.traces.otlp_json import LOG_LISTS, METRIC_LISTS, SCOPE_LOGS, SCOPE_SPANS, SCOPES, SPAN_LISTS
from evalagent.traces.scanning import Broken, Window
from evalagent.traces.transcript_messages import is_message

_REQUEST_LISTS = (*SPAN_LISTS, *LOG_LISTS, *METRIC_LISTS)
_SCOPE_LISTS = (*SCOPE_SPANS, *SCOPE_LOGS)
_EVENTS = ("events", "logEvents", "results")
_ONE = ("spanId", "span_id", "spanID", "context", "context.span_id", "run_type", "parentSpanId", "parent_id")
"""What only a single span or run says: nothing of it is a list of spans."""
_OF_SPANS = (*SCOPES, "traceID", "processes", "trace_id")

BELOW: Mapping[str, Mapping[str, str]] = {
    "any": {
        **dict.fromkeys(_REQUEST_LISTS, "resource"),
        **dict.fromkeys(_SCOPE_LISTS, "scope"),
        **dict.fromkeys(WRAPPERS, "any"),
        **dict.fromkeys((*_EVENTS, "spans", "observations"), "leaf"),
    },
    "resource": dict.fromkeys(_SCOPE_LISTS, "scope"),
    "scope": dict.fromkeys(("spans", "logRecords", "log_records", "logs"), "leaf"),
    "leaf": {},
}
"""What an object may be → its lists whose items may be read apart → what these items may be."""
CONTEXT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_REQUEST_LISTS, ()),
    **dict.fromkeys(_SCOPE_LISTS, ("resource",)),
    **dict.fromkeys(("spans", "logRecords", "log_records", "logs"), _OF_SPANS),
    **dict.fromkeys(WRAPPERS, ("info", "id")),
    **dict.fromkeys(_EVENTS, _ONE),
    "observations": (
        "trace", "id", "scores", "traceId", "trace_id", "name", "sessionId", "session_id", "userId", "user_id",
        "environment", "version",
    ),
}  # fmt: skip
"""A list → what is said beside it and matters for its items."""
_DEEPEST = 24
LARGEST_CONTEXT = 1 << 20
"""Bytes that may be said beside a list."""
CUT_OFF = "the value is cut off"
NO_JSON = "no JSON value"
BATCH = 1 << 18
"""Bytes of items that are put into one value."""


class Cutting(NamedTuple):
    """Some items of a list with what stands around them; `lines`: where each starts. `name` is the list's, `base` how
    many items stand before these. `fault`: why something that starts there could not be read."""

    head: bytes
    items: tuple[bytes, ...]
    tail: bytes
    lines: tuple[int, ...]
    name: str = ""
    base: int = 0
    fault: str = ""

    @property
    def text(self) -> bytes:
        return self.head + b",".join(self.items) + self.tail

    def __len__(self) -> int:
        return len(self.head) + sum(map(len, self.items)) + len(self.tail)

    def alone(self) -> Iterator["Cutting"]:
        """The same items one by one."""
        for number, (item, line) in enumerate(zip(self.items, self.lines, strict=True)):
            yield Cutting(self.head, (item,), self.tail, (line,), self.name, self.base + number)


_NUMBER = re.compile(r"(?:data\.)?(\w+)\[(\d+)\]|message (\d+)(?=:)")


def renumbered(piece: Rejected, given: Cutting) -> Rejected:
    """A rejected item with its number in the whole list, where it says the number."""
    found = _NUMBER.match(piece.reason) if given.base else None
    if found is None or (found[1] != given.name if found[1] else given.name not in _EVENTS):
        return piece
    place = 2 if found[1] else 3
    number = int(found[place]) + given.base
    return replace(piece, reason=f"{piece.reason[: found.start(place)]}{number}{piece.reason[found.end(place) :]}")


class _TooLarge(Exception):
    pass


class Splitter:
    """Goes through a text from a value that is large, to the end of the line on which it ends.

    `small`: bytes of a value that is taken as it is. `told`: what an earlier passage found to be said beside lists, by
    the place of the object. `begin`: the place in the file where the text begins.
    """

    def __init__(
        self,
        window: Window,
        small: int,
        most: int,
        begin: int = 0,
        told: Mapping[int, Mapping[str, bytes]] | None = None,
    ) -> None:
        self.window, self._small, self._most, self._begin = window, small, most, begin
        self._told = told or {}
        self.told: dict[int, dict[str, bytes]] = {}
        """What was said beside lists, by the place of the object in the file."""
        self.late = ""
        """What was said after the list that it matters for: what was given is not right."""

    def cuttings(self) -> Iterator[Cutting]:
        """All values up to the end of the line where the first ends."""
        while mark := self.window.mark():
            line = self.window.line
            try:
                if mark not in (b"{", b"["):
                    raise Broken(NO_JSON, line)
                yield from self._value("any", b"", b"", 0)
            except _TooLarge:
                yield self._passed_over(line)
                self.window.pass_until_begin()
                return
            except Broken as broken:
                told = "" if broken.line == line else f", in the value that starts at line {line}"
                yield self._fault(f"{broken.reason}{told}", broken.line)
                if not self.window.is_request():
                    self.window.pass_until_begin()
                return
            if self.window.ends_line():
                return

    def _passed_over(self, line: int) -> Cutting:
        return self._fault(
            f"a value of more than {self._most >> 20} MiB that cannot be read in parts: write one trace a line", line
        )

    @staticmethod
    def _fault(reason: str, line: int) -> Cutting:
        return Cutting(b"", (), b"", (line,), fault=reason)

    def _value(self, state: str, head: bytes, tail: bytes, depth: int) -> Iterator[Cutting]:
        """One value with what is to stand around it."""
        end = self.window.value_end(self._small)
        if end is not None:
            line = self.window.line
            yield Cutting(head, (self.window.take(end),), tail, (line,))
            return
        mark = self.window.mark()
        if mark == b"{" and BELOW[state] and depth < _DEEPEST:
            line = self.window.line
            uncut = yield from self._object(state, head, tail, depth)
            if uncut is not None:
                yield Cutting(head, (uncut,), tail, (line,))
        elif mark == b"[" and state == "any" and depth < _DEEPEST and not self._is_transcript():
            self.window.pass_byte()
            yield from self._items(state, head, tail, depth, "")
        else:
            line = self.window.line
            value = self._whole()
            yield self._passed_over(line) if value is None else Cutting(head, (value,), tail, (line,))

    def _is_transcript(self) -> bool:
        """Whether the first item of the list that stands here is a message."""
        found = self.window.first_item(self._most)
        try:
            return bool(is_message(orjson.loads(found)))
        except orjson.JSONDecodeError:
            return False

    def _whole(self) -> bytes | None:
        """A value that is not to be cut; None for one that is too large, which is passed over."""
        line = self.window.line
        end = self.window.value_end(self._most)
        if end is not None:
            return self.window.take(end)
        if self.window.held < self._most:
            raise Broken(CUT_OFF, line)
        self.window.pass_value()
        return None

    def _items(self, state: str, head: bytes, tail: bytes, depth: int, name: str) -> Iterator[Cutting]:
        """The items of a list whose bracket was passed. Items without anything around them are given one by one."""
        items: list[bytes] = []
        lines: list[int] = []
        size = base = 0
        window = self.window

        def batch() -> Iterator[Cutting]:
            nonlocal base, size
            if items:
                yield Cutting(head, tuple(items), tail, tuple(lines), name, base)
                base += len(items)
                size = 0
                items.clear()
                lines.clear()

        try:
            while (mark := window.mark()) != b"]":
                if not mark or (name and window.is_request()):
                    raise Broken(CUT_OFF, window.line)
                indent, line = window.indent, window.line
                try:
                    end = window.value_end(self._small)
                    if end is None:
                        yield from batch()
                        yield from self._value(state, head, tail, depth + 1)
                        base += 1
                    else:
                        items.append(window.take(end))
                        lines.append(line)
                        size += len(items[-1])
                        if not name or size >= min(BATCH, self._small):
                            yield from batch()
                except Broken as broken:
                    if indent is None or broken.reason == CUT_OFF:
                        raise
                    yield from batch()
                    yield self._fault(f"{name or 'item'}[{base}]: {broken.reason}", broken.line)
                    base += 1
                    window.pass_until_sibling(indent)
                    continue
                self._comma(b"]")
            window.pass_byte()
        except Broken:
            yield from batch()
            raise
        yield from batch()

    def _comma(self, closing: bytes) -> None:
        """Between two parts, or before the end."""
        mark = self.window.mark()
        if mark == b",":
            self.window.pass_byte()
        elif mark != closing:
            raise Broken(NO_JSON if mark and not self.window.is_request() else CUT_OFF, self.window.line)

    def _object(self, state: str, head: bytes, tail: bytes, depth: int) -> Generator[Cutting, None, bytes | None]:
        """An object that is large: its large lists in parts, and what else it holds as one value. The object itself, if
        it has no such list."""
        window = self.window
        line, place = window.line, self._begin + window.passed
        window.pass_byte()
        told = self._told.get(place)
        members: dict[str, bytes] = {}
        cut: list[str] = []
        spoiled = False
        held = 0
        try:
            while window.mark() != b"}":
                key, name, mark = self._key()
                known = members if told is None else told
                end = window.value_end(self._small)
                if end is not None:
                    value: bytes | None = window.take(end)
                elif self._may_be_cut(state, name, mark, known, depth):
                    cut.append(name)
                    beside = b"".join(known[one] + b"," for one in CONTEXT[name] if one in known and one != name)
                    if len(beside) > max(self._small, LARGEST_CONTEXT):
                        raise _TooLarge
                    around = head + b"{" + beside + key + b":"
                    below = BELOW[state][name]
                    value = b"[]"
                    if mark == b"[":
                        window.pass_byte()
                        yield from self._items(below, around + b"[", b"]}" + tail, depth, name)
                    elif (uncut := (yield from self._object(below, around, b"}" + tail, depth + 1))) is not None:
                        cut.remove(name)
                        value = uncut
                else:
                    value = self._whole()
                    if value is None:
                        spoiled = True
                        yield self._passed_over(window.line)
                if value is not None:
                    members[name] = key + b":" + value
                    held += len(members[name])
                    if held > self._most:
                        raise _TooLarge
                    if told is None and value != b"null":
                        self._note_late(name, cut)
                self._comma(b"}")
            window.pass_byte()
        except Broken:
            if self._holds_more(state, members, cut):
                yield Cutting(head, (_object_of(members),), tail, (line,))
            raise
        finally:
            if cut:
                matter = {one for name in cut for one in CONTEXT[name]}
                self.told[place] = {name: member for name, member in members.items() if name in matter}
        if not (cut or spoiled):
            return _object_of(members)
        if self._holds_more(state, members, cut):
            yield Cutting(head, (_object_of(members),), tail, (line,))
        return None

    def _key(self) -> tuple[bytes, str, bytes]:
        """The key that stands here, as it is written and what it says, and how its value begins."""
        window = self.window
        mark = window.mark()
        if mark != b'"':
            raise Broken(NO_JSON if mark and not window.is_request() else CUT_OFF, window.line)
        end = window.value_end(LARGEST_CONTEXT)
        if end is None:
            raise Broken(CUT_OFF if window.ended else NO_JSON, window.line)
        key = window.take(end)
        try:
            name = orjson.loads(key)
        except orjson.JSONDecodeError:
            name = key.decode("utf-8", "replace")
        mark = window.mark()
        if mark == b":":
            window.pass_byte()
            mark = window.mark()
            if mark and mark not in b",:]}":
                return key, name, mark
        raise Broken(NO_JSON if mark else CUT_OFF, window.line)

    @staticmethod
    def _may_be_cut(state: str, name: str, mark: bytes, known: Mapping[str, bytes], depth: int) -> bool:
        if name not in BELOW[state] or (name in _EVENTS and any(one in known for one in _ONE)):
            return False
        return mark == b"[" or (mark == b"{" and name in WRAPPERS and depth < _DEEPEST)

    def _note_late(self, name: str, cut: list[str]) -> None:
        for one in cut:
            if name in CONTEXT[one] and name != one:
                self.late = self.late or f"`{name}` stands after `{one}`"

    @staticmethod
    def _holds_more(state: str, members: Mapping[str, bytes], cut: list[str]) -> bool:
        """Whether there are lists that were not given in parts."""
        return any(
            name in BELOW[state] and name not in cut and member.endswith((b"]", b"}"))
            for name, member in members.items()
        )


def _object_of(members: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(members.values()) + b"}"
