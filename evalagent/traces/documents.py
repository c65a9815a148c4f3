"""A text that holds JSON values, one a line or not, as those values with the line where each starts.

A value may stand on its line alone, spread over many lines (pretty-printed), or follow the one before without a line
end. What cannot be read is given as a `Fault`, and reading goes on at the next line. Of a value over many lines that
was cut off, one Fault is given, and then whatever whole values stand inside it, marked `inside`.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from evalagent.model import Json

DEEPEST_TEXT = 400
"""Brackets in one another that are read where the fast parser gave up; it takes 1,024 itself."""
_PATIENCE = 8
"""How often the text may be gone through in vain for the end of values that have none: keeps hostile text linear."""


class Fault(NamedTuple):
    """Why the value that starts here could not be read."""

    reason: str


class Document(NamedTuple):
    """A value with the line where it starts (from 1) and its text, for parsing it again exactly."""

    line: int
    value: Json
    text: bytes
    inside: bool = False


class Sight:
    """Whether what was read of a text may depend on what follows it: a value that has begun and not ended."""

    def __init__(self) -> None:
        self.open = False
        self.since: int | None = None
        """Where the first value begins that did not end; what stands before it is complete."""

    def whole(self, inside: bool) -> None:
        """A value has been read; not `inside` another: what had begun before was broken, and is over."""
        if not inside and not self.open:
            self.since = None

    def begun(self, position: int) -> None:
        """A value begins there whose end was not found."""
        if self.since is None:
            self.since = position


_TOKEN = re.compile(
    rb'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"|[\[\]{}"]|\n\{\s*"[rR]esource_?(?:[sS]pans|[lL]ogs|[mM]etrics)"'
)
_BLANK = re.compile(rb"(?:[ \t\r\n\x00\x1e]++|\xef\xbb\xbf)*+")


def documents(text: bytes, sight: Sight | None = None) -> Iterator[Document]:
    """Every value of the text in order; a value that could not be read is a Fault.

    Where the text is a piece of a larger one, cut at line ends, `sight` is told whether the next piece would change
    what is read of this one.
    """
    sight = sight or Sight()
    size = len(text)
    position, line, stop, row_start = 0, 1, -1, 0
    patience = _PATIENCE * size + 65536
    crowded = False
    """Whether this line has been found to hold more than one value."""
    cut = False
    """Whether the newest fault is a value over many lines, in the middle of which we may be."""
    while True:
        blank = _BLANK.match(text, position)
        before, position = position, blank.end() if blank else position
        if position >= size:
            sight.open = sight.open or cut
            return
        line += text.count(b"\n", before, position)
        if position > stop:
            row_start = text.rfind(b"\n", max(stop, 0), position) + 1
            stop = text.find(b"\n", position)
            stop = size if stop < 0 else stop
            crowded = False
        inside = cut and text[row_start : row_start + 1] in b' \t"}],'
        reason = ""
        if not crowded:
            row = text[position:stop]
            try:
                yield Document(line, orjson.loads(row), row, inside)
                position, cut = stop, inside
                sight.whole(inside)
                continue
            except orjson.JSONDecodeError as error:
                reason = str(error)
        end = None
        if text[position : position + 1] in b"{[" and patience > 0:
            end, looked = _end(text, position)
            if end is None:
                patience -= looked - position
                if looked >= size or patience <= 0 or looked > stop:
                    sight.begun(position)
                sight.open = sight.open or looked >= size or patience <= 0
                reason = "the value is cut off" if looked >= stop else reason
                cut = cut or looked > stop
        piece = text[position : stop if end is None else end]
        value = _parsed(piece, reason)
        if not isinstance(value, Fault):
            yield Document(line, value, piece, inside)
            line += piece.count(b"\n")
            position, cut = position + len(piece), inside
            sight.whole(inside)
            crowded = position <= stop
        else:
            if not inside:
                yield Document(line, value, piece)
            position = stop  # the next line may be good, even inside what looked like this value


def document(text: bytes, line: int) -> Document:
    """A text that is one value."""
    try:
        return Document(line, orjson.loads(text), text)
    except orjson.JSONDecodeError as error:
        return Document(line, _parsed(text, str(error)), text)


def _end(text: bytes, start: int) -> tuple[int | None, int]:
    """Where the object or list that starts at `start` ends, or None; and how far was looked."""
    depth = 0
    listed = text[start : start + 1] == b"["
    for token in _TOKEN.finditer(text, start):
        mark = token.group()
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return token.end(), token.end()
        elif mark == b'"':
            return None, token.start()  # a text that does not end on its line
        elif mark[:1] == b"\n":
            if not (listed and depth == 1):
                return None, token.start()  # the next request begins: this one was cut
            depth += 1
    return None, len(text)


_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)


def _parsed(piece: bytes, reason: str) -> Json | Fault:
    """The value of a text that the fast parser may have refused."""
    try:
        return orjson.loads(piece)
    except orjson.JSONDecodeError:
        pass
    repaired = _repaired(piece)
    try:
        return orjson.loads(repaired)
    except orjson.JSONDecodeError:
        return exact(repaired, reason)


def _repaired(piece: bytes) -> bytes:
    """The text without halves of surrogate pairs, escaped or not, and without broken UTF-8."""
    text = piece.decode("utf-8", "replace")
    return _ESCAPE.sub(lambda match: b"\\ufffd" if match.group(1) else match.group(), text.encode())


def exact(piece: bytes, reason: str = "no JSON value") -> Json | Fault:
    """The value with integers of any size exact, and `NaN` and `Infinity` taken; slower."""
    if _depth(piece) > DEEPEST_TEXT:
        return Fault(f"nested deeper than {DEEPEST_TEXT} levels")
    try:
        return json.loads(_repaired(piece), strict=False, parse_int=_integer)
    except (ValueError, RecursionError):
        return Fault(f"no JSON value: {reason}"[:200])


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= 40 else digits


def _depth(piece: bytes) -> int:
    depth = deepest = 0
    for token in _TOKEN.finditer(piece):
        mark = token.group()
        if mark in (b"{", b"["):
            depth += 1
            deepest = max(deepest, depth)
        elif mark in (b"}", b"]"):
            depth -= 1
        elif mark[:1] == b"\n":
            depth += 1
    return deepest
