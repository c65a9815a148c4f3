"""A JSON text that is too large to be held: where its values end, looked for in a window that moves over it.

Nothing is parsed here. Brackets are counted outside of texts; a text never spans lines, so what is broken is found on
its line. Memory: what the caller has not yet taken, never more than the limit it names and one block.
"""

import re
from collections.abc import Iterator

_STRING = rb'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
_BARE = rb'[^"\[\]{}\n]++|' + _STRING + rb"|\n(?!\{|\Z)"
_FLAT = rb"[\[{](?:" + _BARE + rb")*+[\]}]"
_LOW = rb"[\[{](?:" + _BARE + rb"|" + _FLAT + rb")*+[\]}]"
_SKIPPED = re.compile(rb"(?:" + _BARE + rb"|" + _LOW + rb")*+")
"""All up to the next bracket of a value that is more than two levels high: such brackets are few."""
_TEXT = re.compile(_STRING)
_SCALAR = re.compile(rb'[^\s,:"\[\]{}]+')
_REQUEST = re.compile(rb'\{\s*"[rR]esource_?(?:[sS]pans|[lL]ogs|[mM]etrics)"')
_REQUEST_HEAD = 256
_WHITE = re.compile(rb"(?:[ \t\r\n\x00\x1e]++|\xef\xbb\xbf)*+")
_BEGIN = re.compile(rb"\n(?=[{\[])")
_TIDY = 1 << 20
_SPACE = b" \t\r\x0b\x0c"


class Broken(Exception):
    """The text is no JSON from here on."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


class Window:
    """The part of a text that is being looked at. `line`: the line of what comes next, from 1; `lines`: how many lines
    that are not blank were passed; `passed`: bytes taken."""

    def __init__(self, blocks: Iterator[bytes], line: int = 1, *, counted: bool = False) -> None:
        self._blocks = blocks
        self._data = bytearray()
        self._at = 0
        self.line = line
        self.lines = 0
        self.passed = 0
        self.ended = False
        """Whether the window reaches the end of the text."""
        self.column_0 = not counted
        """Whether what comes next is the first of its line."""
        self._counted = counted
        self.indent: int | None = None
        """Blanks before what `mark` found, if it is the first of its line."""

    def rest(self) -> bytes:
        """What was seen and not taken."""
        return bytes(self._data[self._at :])

    def mark(self) -> bytes:
        """The next byte that is not white space, which is passed over; none at the end of the text."""
        self.indent = 0 if self.column_0 else None
        while True:
            found = _WHITE.match(self._data, self._at)
            blank = found.group() if found else b""
            if b"\n" in blank:
                self.indent = len(blank) - blank.rfind(b"\n") - 1
            elif self.indent is not None:
                self.indent += len(blank)
            self.pass_to(self._at + len(blank))
            if self._at < len(self._data):
                return self._byte(self._at)
            if not self._more():
                return b""

    def first_item(self, limit: int) -> bytes:
        """The first item of the list that stands here, if it is no longer than that; nothing is passed."""
        begin = self._at
        found = _WHITE.match(self._data, begin + 1)
        self._at = found.end() if found else begin + 1
        try:
            end = self.value_end(limit)
            return b"" if end is None else bytes(self._data[self._at : end])
        except Broken:
            return b""
        finally:
            self._at = begin

    @property
    def held(self) -> int:
        """Bytes that are seen and not passed."""
        return len(self._data) - self._at

    def ends_line(self) -> bool:
        """Whether nothing more stands on this line; blanks and its end are passed over then."""
        while True:
            position = self._at
            while position < len(self._data) and self._data[position] in b" \t\r\0":
                position += 1
            if position < len(self._data) or not self._more():
                break
        if position < len(self._data) and self._data[position] != 10:
            return False
        self.pass_to(min(position + 1, len(self._data)))
        return True

    def is_request(self) -> bool:
        """Whether a line begins here, and with an OTLP request: what was read before has been cut."""
        if not self.column_0:
            return False
        while len(self._data) - self._at < _REQUEST_HEAD and self._more():
            pass
        return _REQUEST.match(self._data, self._at) is not None

    def take(self, end: int) -> bytes:
        """What stands before this place, which is passed."""
        taken = bytes(self._data[self._at : end])
        self.pass_to(end)
        return taken

    def pass_byte(self) -> None:
        self.pass_to(self._at + 1)

    def pass_to(self, end: int) -> None:
        """Go to a place of the window."""
        passed = self._data[self._at : end]
        if not passed:
            return
        rows = passed.translate(None, _SPACE).split(b"\n")
        filled = list(map(bool, rows))
        self.lines += sum(filled) - (self._counted and filled[0])
        self._counted = filled[-1] or (self._counted and len(rows) == 1)
        self.column_0 = passed[-1] == 10
        self.line += len(rows) - 1
        self.passed += len(passed)
        self._at = end
        if self._at > _TIDY:
            del self._data[: self._at]
            self._at = 0

    def value_end(self, limit: int) -> int | None:
        """Where the value that stands here ends. None: it is longer than the limit, or cut off (`ended`).

        Broken where there is no value.
        """
        head = self._byte(self._at)
        if head in (b"{", b"["):
            return self._container_end(limit)
        pattern = _TEXT if head == b'"' else _SCALAR
        while True:
            found = pattern.match(self._data, self._at)
            end = found.end() if found else None
            if end is not None and (pattern is _TEXT or end < len(self._data) or not self._more()):
                return end if end - self._at <= limit else None
            if pattern is _TEXT and self._data.find(b"\n", self._at) >= 0:
                raise Broken("a text does not end on its line", self.line)
            if pattern is _SCALAR and end is None:
                raise Broken("no JSON value", self.line)
            if len(self._data) - self._at > limit or not self._doubled():
                return None

    def _byte(self, position: int) -> bytes:
        return bytes(self._data[position : position + 1])

    def _container_end(self, limit: int) -> int | None:
        depth, begin = 1, self._at
        listed = self._data[begin] == 0x5B
        position = begin + 1
        while True:
            skipped = _SKIPPED.match(self._data, position)
            position = skipped.end() if skipped else position
            if position - begin > limit:
                return None
            mark = self._byte(position)
            if mark in (b"{", b"["):
                depth += 1
            elif mark in (b"}", b"]"):
                depth -= 1
                if depth == 0:
                    return position + 1 if position + 1 - begin <= limit else None
            elif mark == b"\n" and position + 1 < len(self._data):
                while len(self._data) - position < _REQUEST_HEAD and self._more():
                    pass
                if not (listed and depth == 1) and _REQUEST.match(self._data, position + 1):
                    return None  # the next request begins: this value was cut
            else:
                if mark == b'"' and self._data.find(b"\n", position) >= 0:
                    line = self.line + self._data.count(b"\n", begin, position)
                    raise Broken("a text does not end on its line", line)
                if len(self._data) - begin > limit or not self._doubled(position):
                    return None
                continue
            position += 1

    def pass_value(self) -> None:
        """Pass a value of any length. Broken where it ends too early or another request begins in it."""
        depth = 0
        while True:
            skipped = _SKIPPED.match(self._data, self._at) if depth else None
            if skipped:
                self.pass_to(skipped.end())
            mark = self._byte(self._at)
            if depth == 0 and mark not in (b"{", b"["):
                self._pass_text()
                return
            if mark in (b"{", b"["):
                depth += 1
            elif mark in (b"}", b"]"):
                depth -= 1
            elif mark == b'"':
                self._pass_text()
                continue
            elif mark == b"\n" and self._at + 1 < len(self._data):
                self.pass_byte()
                if self.is_request():
                    raise Broken("the value is cut off", self.line)
                continue
            elif not self._more():
                raise Broken("the value is cut off", self.line)
            else:
                continue
            self.pass_byte()
            if depth == 0:
                return

    def _pass_text(self) -> None:
        """Pass a text or a scalar of any length."""
        quoted = self._byte(self._at) == b'"'
        inner = re.compile(rb'[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+' if quoted else rb'[^\s,:"\[\]{}]*+')
        if quoted:
            self.pass_byte()
        while True:
            found = inner.match(self._data, self._at)
            self.pass_to(found.end() if found else self._at)
            mark = bytes(self._data[self._at : self._at + 2])
            if mark[:1] == b'"' and quoted:
                self.pass_byte()
                return
            if mark[:1] not in (b"", b"\\") or len(mark) == 2:
                if quoted:
                    raise Broken("a text does not end on its line", self.line)
                return
            if not self._more():
                raise Broken("the value is cut off", self.line)

    def pass_until_begin(self) -> None:
        """Go to the next line that begins with a bracket, or to the end."""
        self._pass_until(_BEGIN)

    def pass_until_sibling(self, indent: int) -> None:
        """Go to the next line where an object or list begins after so many blanks, or a list ends after fewer."""
        self._pass_until(re.compile(rb"\n(?=[ \t]{%d}[{\[]|[ \t]{0,%d}\])" % (indent, max(indent - 1, 0))))

    def _pass_until(self, pattern: re.Pattern[bytes]) -> None:
        while True:
            found = pattern.search(self._data, self._at)
            if found is not None:
                self.pass_to(found.end())
                return
            newline = self._data.rfind(b"\n", self._at)
            blank_tail = newline >= 0 and not self._data[newline:].strip()
            self.pass_to(newline if blank_tail else len(self._data))
            if not self._more():
                self.pass_to(len(self._data))
                return

    def _doubled(self, since: int | None = None) -> bool:
        """See about twice as much from there on."""
        begin = self._at if since is None else since
        wanted, grown = 2 * (len(self._data) - begin), False
        while self._more():
            grown = True
            if len(self._data) - begin >= wanted:
                break
        return grown

    def _more(self) -> bool:
        """See one block more."""
        block = next(self._blocks, None)
        while block is not None and not block:
            block = next(self._blocks, None)
        if block is None:
            self.ended = True
            return False
        self._data += block
        return True
