"""One file of traces in any known wire format: bytes to spans, log records and rejected lines."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalagent.model import LogRecord, Rejected, Span
from evalagent.traces import cloudwatch, otlp_json, otlp_protobuf, tables
from evalagent.traces.dispatching import Dispatch
from evalagent.traces.documents import Document, Fault, Sight, document, documents
from evalagent.traces.formats import FORMATS
from evalagent.traces.harvest import Harvest
from evalagent.traces.line_ends import line_ends
from evalagent.traces.masking import mask
from evalagent.traces.shapes import refusal
from evalagent.traces.splitting import Cutting, renumbered
from evalagent.traces.unpacking import unpack

NO_TRACE_FILE = "no trace file: neither text nor OTLP protobuf"
PARQUET_FILE = "a Parquet file: write it as JSON lines first, DuckDB: COPY (FROM 'x.parquet') TO 'x.jsonl'"
_PARQUET = b"PAR1"
EMPTY_FILE = "the file is empty"
TOLD_BY = 4096
"""Bytes at the beginning of a file that tell whether it is text."""
_BLANK = b" \t\r\n\0"


@dataclass(frozen=True, slots=True)
class Reading:
    """What one file held.

    `bytes` is the size as given (before unpacking); `lines_in` the lines of the unpacked text that are not blank, the
    rows of a table with its heading, or the requests of a protobuf file. `format` names the shapes that were found
    (`otlp`, `jaeger+otlp`), `unknown` where there was none.
    """

    file: str
    format: str
    bytes: int
    lines_in: int
    spans: tuple[Span, ...]
    logs: tuple[LogRecord, ...]
    rejected: tuple[Rejected, ...]


def read(data: bytes, file: str, format: str = "auto") -> Reading:
    """Read one file, whatever it holds; bad content is rejected with the line where it starts, and never raises.

    A secret in the file's name is masked. `format` is a key of `FORMATS`; ValueError for another. With `auto` each
    value of the file is told by its content.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}: one of {', '.join(FORMATS)}")
    harvest = Harvest(mask(file))
    content = unpack(data, harvest)
    parts = otlp_protobuf.messages(content)
    if parts is not None:
        lines = len(parts)
        _read_protobuf(content, parts, harvest, format)
    else:
        lines = _read_text(content, harvest, format)
    return _reading(harvest, len(data), lines)


def _reading(harvest: Harvest, size: int, lines: int) -> Reading:
    return Reading(
        file=harvest.file,
        format="+".join(sorted(harvest.formats)) or "unknown",
        bytes=size,
        lines_in=lines,
        spans=tuple(harvest.spans),
        logs=tuple(harvest.logs),
        rejected=tuple(harvest.rejected),
    )


def read_messages(content: bytes, parts: Sequence[tuple[int, int]], file: str, format: str, before: int) -> Reading:
    """Some requests of a protobuf file, where they lie in `content`; `before`: requests that stand before them."""
    harvest = Harvest(mask(file))
    _read_protobuf(content, parts, harvest, format, before)
    return _reading(harvest, len(content), len(parts))


def _read_protobuf(
    content: bytes, parts: Sequence[tuple[int, int]], harvest: Harvest, format: str, before: int = 0
) -> None:
    if "otlp" not in FORMATS[format]:
        if not before:
            harvest.reject(refusal("otlp", format), 0)
        return
    for number, (start, end) in enumerate(parts, before + 1):
        harvest.line = number
        try:
            if end > len(content):
                raise otlp_protobuf.MalformedProtobuf("the message is cut off")
            signal = otlp_protobuf.signal(content, start, end)
            harvest.formats.add("otlp")
            if signal in (None, "metrics"):
                continue
            decoded = otlp_protobuf.decode(content[start:end], "traces" if signal == "traces" else "logs")
        except otlp_protobuf.MalformedProtobuf as error:
            harvest.reject(f"no OTLP protobuf: {error}")
            continue
        for reason in decoded.lost:
            harvest.reject(reason)
        otlp_json.read_request(decoded.request, harvest)


def _read_text(content: bytes, harvest: Harvest, format: str) -> int:
    """Read a text; the number of its lines that are not blank."""
    if not content[:4096].strip(_BLANK) and not content.strip(_BLANK):  # the second copies the content, the first not
        if not harvest.rejected:
            harvest.reject(EMPTY_FILE, 0)
        return 0
    no_text = why_no_text(content)
    if no_text:
        harvest.reject(no_text, 0)
        return 1
    text = _Text(harvest, format)
    text.read(content)
    text.close()
    if not text.values and not harvest.rejected:
        harvest.reject(EMPTY_FILE, 0)
    return text.lines


def why_no_text(content: bytes) -> str:
    """Why this is no text, told by how it begins; empty if it is one."""
    if content[:4] == _PARQUET:
        return PARQUET_FILE
    binary = b"\0" in content[:TOLD_BY].strip(b"\0") or content[:4] in (b"%PDF", b"\x89PNG")
    return NO_TRACE_FILE if binary else ""


def _lines(content: bytes) -> int:
    """How many lines are not blank."""
    count = position = 0
    while position < len(content):
        end = content.find(b"\n", position)
        end = len(content) if end < 0 else end
        count += end > position and (content[position] > 32 or not content[position:end].isspace())
        position = end + 1
    return count


class _Text:
    """Reads the pieces of a text in order."""

    def __init__(self, harvest: Harvest, format: str) -> None:
        self.harvest = harvest
        self.dispatch = Dispatch(harvest, format)
        self.sight = Sight()
        self.lines = 0
        """Lines that are not blank."""
        self.values = 0
        """Values that stand in it, readable or not."""

    def read(self, piece: bytes, before: int = 0) -> None:
        """Read a piece; `before` lines of the file stand before it."""
        self.sight = Sight()
        if not before and tables.is_table(piece):
            self.table(piece, before)
            return
        for found in documents(cloudwatch.unstamped(piece), self.sight):
            self.values += 1
            self._document(found._replace(line=before + found.line))
        self.lines += _lines(piece)

    def _document(self, found: Document) -> None:
        self.harvest.line = found.line
        if isinstance(found.value, Fault):
            self.harvest.reject(found.value.reason)
        else:
            self.dispatch.document(found)

    def cutting(self, given: Cutting) -> None:
        """Read a part of a large value; where something in it is rejected, item by item, so that its line is told."""
        self.values += 1
        if given.fault:
            self.harvest.reject(given.fault, given.lines[0])
            return
        before = self.dispatch.state()
        self.dispatch.read_now.clear()
        self._document(document(given.text, given.lines[0]))
        rejected = self.harvest.rejected
        if len(rejected) == before[2]:
            return
        if len(given.items) > 1:
            self.dispatch.undo(before)
            for one in given.alone():
                self.cutting(one)
        else:
            rejected[before[2] :] = [renumbered(piece, given) for piece in rejected[before[2] :]]

    def table(self, piece: bytes, before: int) -> None:
        """A table is read whole, or in pieces that each have its heading above them."""
        self.sight.open = True
        self.lines += 1  # the heading
        for line, row, reason in tables.rows(piece):
            self.harvest.line = before + line
            self.lines += 1
            self.values += 1
            if reason:
                self.harvest.reject(reason)
            else:
                self.dispatch.document(Document(line, row, b"null"))

    def close(self) -> None:
        self.dispatch.close()


class PieceReader:
    """Reads a large text piece by piece, cut at line ends: what is read is what `read` makes of the whole.

    `before`: lines of the file before the first piece.
    """

    def __init__(self, file: str, format: str = "auto", before: int = 0) -> None:
        self._harvest = Harvest(mask(file))
        self._text = _Text(self._harvest, format)
        self._before = before
        self.blank = True
        """Whether the last piece holds nothing but white space and zero bytes."""
        self.values = 0
        """Values in the last piece, readable or not; a file without any is empty."""

    def read(self, piece: bytes, *, last: bool = True, before: int | None = None) -> Reading | None:
        """What this piece held; its `bytes` are those of the piece. None: it ends in the middle of a value and is not
        the `last`, so that it is to be given again together with what follows it. `before`: lines before it, if not
        only those of the pieces that were read."""
        self._before = self._before if before is None else before
        seen, loose = dict(self._text.dispatch.transcripts), list(self._text.dispatch.loose)
        self._text.lines = self._text.values = 0
        self._text.read(piece, self._before)
        self.blank = not piece.strip(_BLANK)
        self.values = self._text.values
        if self._text.sight.open and not last:
            self._text.dispatch.transcripts, self._text.dispatch.loose = seen, loose
            self._taken(0)
            return None
        self._before += line_ends(piece)
        return self._taken(len(piece))

    def read_cuttings(self, given: Sequence[Cutting]) -> Reading:
        """What these parts of a large value held; no lines are counted."""
        self._text.lines, self._text.values = 0, 1
        for one in given:
            self._text.cutting(one)
        self.blank, self.values = False, self._text.values
        return self._taken(sum(map(len, given)))

    def read_rows(self, heading: bytes, rows: bytes, before: int) -> Reading:
        """What these rows of a table held; the heading is counted as a line. `before`: lines of the file before the
        rows, less one."""
        self._text.lines = self._text.values = 0
        self._text.table(heading + rows, before)
        self.blank, self.values = False, self._text.values
        return self._taken(len(rows))

    @property
    def since(self) -> int | None:
        """Where the value begins that the last piece does not end, in that piece."""
        return self._text.sight.since

    def close(self) -> Reading:
        """What is known at the end only: messages that stand one a line are one transcript."""
        self._text.close()
        self._text.lines = 0
        return self._taken(0)

    @property
    def conversing(self) -> bool:
        """Whether messages were met: of these one reader must see all pieces, since equal ones are told apart by their
        order in the file."""
        return "messages" in self._harvest.formats or bool(self._text.dispatch.loose)

    def _taken(self, size: int) -> Reading:
        harvest = self._harvest
        taken = _reading(harvest, size, self._text.lines)
        del harvest.spans[:], harvest.logs[:], harvest.rejected[:]
        return taken
