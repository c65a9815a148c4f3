"""The text of a file in pieces that workers can read: whole lines, rows of a table, parts of values that are large."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from evalagent.traces import cloudwatch, tables
from evalagent.traces.line_ends import line_ends
from evalagent.traces.scanning import Window
from evalagent.traces.splitting import Cutting, Splitter

LARGE = 32 << 20
"""Bytes of one value from which it is no longer read whole."""
MOST = 128 << 20
"""Bytes of a value without lists of spans (a transcript, one span) that are read whole; what is larger is rejected."""


class Piece(NamedTuple):
    """Part of a text. `before`: lines of the file that stand before it.

    Whole lines (`text`), or what is read `apart` from all else: some rows of a table and its heading, or parts of a
    value that was too large (`cuttings`). `lines`: to be added to the count of lines that are not blank.
    """

    text: bytes
    before: int
    last: bool
    cuttings: tuple[Cutting, ...] = ()
    lines: int = 0
    apart: bool = False
    heading: bytes = b""


class Feed:
    """A text cut into pieces of about `size` bytes.

    `told`: what an earlier passage over the same text found to be said after the lists that it matters for; `late` says
    that there is such a thing: then what was given is not right, and `told` is what the next passage needs.
    """

    def __init__(
        self, blocks: Iterator[bytes], size: int, told: Mapping[int, Mapping[str, bytes]] | None = None
    ) -> None:
        self._blocks, self._size, self._known = blocks, size, told
        self._back: deque[bytes] = deque()
        self._taken = 0
        """Bytes that were taken from the blocks."""
        self._before = 0
        self._counted = False
        """Whether the line that what comes next stands on was counted."""
        self._large = False
        """Whether a large value comes next."""
        self.ended = False
        self.told: dict[int, dict[str, bytes]] = {}
        self.late = ""

    def pieces(self) -> Iterator[Piece]:
        """All pieces in order. After a late one they only serve to find the rest of what is late, and are not given."""
        first = self._block()
        if first is not None:
            self._back.appendleft(first)
            if tables.is_table(first):
                yield from self._rows()
                return
        while not self.ended:
            piece = self._lines()
            if piece is None:
                yield from self._parts()
            elif not self.late:
                yield piece

    def give_back(self, text: bytes, before: int, *, counted: bool) -> None:
        """Take back what was given last: a large value begins with it, after so many lines. `counted`: something else
        stands before it on its line."""
        self._back.appendleft(text)
        self._before, self._counted, self._large = before, counted, True

    def _block(self) -> bytes | None:
        if self._back:
            return self._back.popleft()
        block = next(self._blocks, None)
        self._taken += len(block or b"")
        return block

    def _all_blocks(self) -> Iterator[bytes]:
        while (block := self._block()) is not None:
            yield block

    def _lines(self) -> Piece | None:
        """Whole lines; None where a large value comes next."""
        if self._large:
            return None
        parts: list[bytes] = []
        have, lined = 0, False
        for block in self._all_blocks():
            parts.append(block)
            have += len(block)
            lined = lined or b"\n" in block
            if lined and have >= self._size:
                if b"\n" not in block:
                    parts = [b"".join(parts)]
                newest = parts.pop()
                cut = newest.rfind(b"\n") + 1
                if cut < len(newest):
                    self._back.appendleft(newest[cut:])
                return self._piece(b"".join([*parts, newest[:cut]]))
            if not lined and have >= LARGE:
                text = cloudwatch.unstamped(b"".join(parts))
                parts, have = [text], len(text)
                if text[:1] in (b"{", b"["):
                    self._back.appendleft(text)
                    self._large = True
                    return None
        return self._piece(b"".join(parts))

    def _piece(self, text: bytes) -> Piece:
        before = self._before
        self._before += line_ends(text)
        return Piece(text, before, self._at_end())

    def _at_end(self) -> bool:
        """Whether nothing follows."""
        following = self._block()
        if following is not None:
            self._back.appendleft(following)
        self.ended = following is None
        return self.ended

    def _parts(self) -> Iterator[Piece]:
        """A large value, and what follows it on its line."""
        self._large = False
        begin = self._taken - sum(map(len, self._back))
        window = Window(self._all_blocks(), self._before + 1, counted=self._counted)
        splitter = Splitter(window, self._size, MOST, begin, self._known)
        held: list[Cutting] = []
        size = lines = 0
        for cutting in splitter.cuttings():
            self.late = self.late or splitter.late
            if self.late:
                continue
            if held and size + len(cutting) > self._size:
                yield Piece(b"", 0, True, tuple(held), window.lines - lines, apart=True)
                held, size, lines = [], 0, window.lines
            held.append(cutting)
            size += len(cutting)
        self.late = self.late or splitter.late
        self.told |= splitter.told
        self._before, self._counted = window.line - 1, False
        rest = window.rest()
        if rest:
            self._back.appendleft(rest)
        if not self.late:
            yield Piece(b"", 0, True, tuple(held), window.lines - lines, apart=True)
        self._at_end()

    def _rows(self) -> Iterator[Piece]:
        """A table: rows with the heading above them, so that each has its line in the file."""
        heading, text, counted = b"", b"", 1
        while not self.ended:
            parts, have = [text], len(text)
            for block in self._all_blocks():
                parts.append(block)
                have += len(block)
                if have >= self._size:
                    break
            text = b"".join(parts)
            if not heading:
                start = len(text) - len(text.lstrip(b" \t\r\n\0"))
                cut = text.find(b"\n", start) + 1
                heading, self._before = text[start:cut], text.count(b"\n", 0, cut)
                text = text[cut:]
            end = len(text) if self._at_end() else _row_end(text)
            if not end:
                if len(text) < MOST:
                    continue
                end = text.rfind(b"\n") + 1 or len(text)
            yield Piece(text[:end], self._before - 1, True, lines=counted - 1, apart=True, heading=heading)
            self._before += text.count(b"\n", 0, end)
            text, counted = text[end:], 0


def _row_end(text: bytes) -> int:
    """Where the last whole row ends: after a line end with an even number of quotes before it. 0: nowhere."""
    end = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, end)
    while end and quotes % 2:
        before = text.rfind(b"\n", 0, end - 1) + 1
        quotes -= text.count(b'"', before, end)
        end = before
    return end
