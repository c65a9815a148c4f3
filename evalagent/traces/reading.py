"""One file of traces in any known wire format: bytes to spans, log records and rejected lines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evalagent.model import Json, LogRecord, Rejected, Span
from evalagent.traces import jaeger, otlp_json, otlp_protobuf, sdk_dump, transcripts
from evalagent.traces.documents import Document, Fault, Sight, documents, exact
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.identifiers import InexactId
from evalagent.traces.masking import mask
from evalagent.traces.unpacking import unpack

FORMATS: Mapping[str, frozenset[str]] = {
    "auto": frozenset({"otlp", "tempo", "jaeger", "sdk", "messages"}),
    "otlp": frozenset({"otlp", "tempo"}),
    "tempo": frozenset({"otlp", "tempo"}),
    "jaeger": frozenset({"jaeger", "otlp", "tempo"}),
    "openinference": frozenset({"otlp", "tempo", "sdk"}),
    "messages": frozenset({"messages"}),
}
"""What may be asked for → the shapes that are taken. Jaeger's newer answers are OTLP; OpenInference is a dialect that
comes as OTLP or as Phoenix prints it."""
NO_TRACE_FILE = "no trace file: neither text nor OTLP protobuf"
EMPTY_FILE = "the file is empty"
_BLANK = b" \t\r\n\0"
_WRAPPERS = ("trace", "result", "data", "traces")


@dataclass(frozen=True, slots=True)
class Reading:
    """What one file held.

    `bytes` is the size as given (before unpacking); `lines_in` the lines of the unpacked text that are not blank,
    or the requests of a protobuf file. `format` names the shapes that were found (`otlp`, `jaeger+otlp`), `unknown`
    where there was none.
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
        _read_protobuf(content, parts, harvest)
    else:
        lines = _read_text(content, harvest, FORMATS[format])
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


def _read_protobuf(content: bytes, parts: list[tuple[int, int]], harvest: Harvest) -> None:
    for number, (start, end) in enumerate(parts, 1):
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


def _read_text(content: bytes, harvest: Harvest, shapes: frozenset[str]) -> int:
    """Read a text; the number of its lines that are not blank."""
    if not content[:4096].strip(_BLANK) and not content.strip(_BLANK):  # the second copies the content, the first not
        if not harvest.rejected:
            harvest.reject(EMPTY_FILE, 0)
        return 0
    if is_binary(content):
        harvest.reject(NO_TRACE_FILE, 0)
        return 1
    text = _Text(harvest, shapes)
    text.read(content)
    text.close()
    return text.lines


def is_binary(content: bytes) -> bool:
    """Whether this is no text, by how it begins."""
    return b"\0" in content[:4096].strip(b"\0") or content[:4] in (b"PAR1", b"%PDF", b"\x89PNG")


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

    def __init__(self, harvest: Harvest, shapes: frozenset[str]) -> None:
        self.harvest = harvest
        self.dispatch = _Dispatch(harvest, shapes)
        self.sight = Sight()
        self.lines = 0
        """Lines that are not blank."""

    def read(self, piece: bytes, before: int = 0) -> None:
        """Read a piece; `before` lines of the file stand before it."""
        self.sight = Sight()
        for document in documents(piece, self.sight):
            self.harvest.line = before + document.line
            if isinstance(document.value, Fault):
                self.harvest.reject(document.value.reason)
            else:
                self.dispatch.document(document)
        self.lines += _lines(piece)

    def close(self) -> None:
        self.dispatch.close()


class PieceReader:
    """Reads a large text piece by piece, cut at line ends: what is read is what `read` makes of the whole.

    `before`: lines of the file before the first piece.
    """

    def __init__(self, file: str, format: str = "auto", before: int = 0) -> None:
        self._harvest = Harvest(mask(file))
        self._text = _Text(self._harvest, FORMATS[format])
        self._before = before

    def read(self, piece: bytes) -> Reading:
        """What this piece held; its `bytes` are those of the piece."""
        self._text.lines = 0
        self._text.read(piece, self._before)
        self._before += piece.count(b"\n")
        return self._taken(len(piece))

    def close(self) -> Reading:
        """What is known at the end only: messages that stand one a line are one transcript."""
        self._text.close()
        self._text.lines = 0
        return self._taken(0)

    @property
    def open(self) -> bool:
        """Whether the last piece ended in the middle of a value: it is to be read again together with the next."""
        return self._text.sight.open

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


class _Dispatch:
    """Gives each value of a text to the reader of its shape."""

    def __init__(self, harvest: Harvest, shapes: frozenset[str]) -> None:
        self.harvest = harvest
        self.shapes = shapes
        self.transcripts: dict[str, int] = {}
        self.loose: list[Json] = []
        """Messages that stand one a line: together they are one transcript."""
        self.loose_line = 0
        self.inside = False
        """Whether the value stands in a larger one that was cut off: only what is known there counts."""

    def document(self, document: Document) -> None:
        """One value of the text; read again with exact integers where an id was larger than the fast parser's."""
        harvest = self.harvest
        self.inside = document.inside
        spans, logs, rejected = len(harvest.spans), len(harvest.logs), len(harvest.rejected)
        try:
            self.value(document.value)
        except InexactId:
            del harvest.spans[spans:], harvest.logs[logs:], harvest.rejected[rejected:]
            value = exact(document.text)
            if isinstance(value, Fault):
                self.harvest.reject(value.reason)
                return
            try:
                self.value(value)
            except InexactId as error:
                self.harvest.reject(str(error))

    def value(self, value: Json) -> None:
        """One value: a list is read item by item, an object that only wraps another is opened."""
        todo = [value]
        while todo:
            value = todo.pop()
            if type(value) is list:
                if transcripts.is_transcript(value):
                    others = [item for item in value if type(item) is dict and not transcripts.is_message(item)]
                    own = [item for item in value if type(item) is not dict or transcripts.is_message(item)]
                    self._one("messages", transcripts.read_transcript, own, self.harvest, self.transcripts)
                    todo.extend(reversed(others))
                else:
                    todo.extend(reversed(value))
            elif type(value) is not dict:
                if not self.inside:
                    self.harvest.reject("no trace: an object was expected, not a text, a number or null")
            elif not self._known(value) and not self.inside:
                todo.extend(reversed(self._opened(value)))

    def close(self) -> None:
        """The end of the text: messages that stood one a line are one transcript."""
        if self.loose:
            self.harvest.line = self.loose_line
            messages, self.loose = self.loose, []
            self._one("messages", transcripts.read_transcript, messages, self.harvest, self.transcripts)

    def _known(self, value: Mapping[str, Json]) -> bool:
        """Read an object whose shape is known; False where it is not."""
        harvest = self.harvest
        if any(name in value for name in (*otlp_json.SPAN_LISTS, *otlp_json.LOG_LISTS, *otlp_json.METRIC_LISTS)):
            self._one("tempo" if "batches" in value else "otlp", otlp_json.read_request, value, harvest)
        elif any(name in value for name in (*otlp_json.SCOPE_SPANS, *otlp_json.SCOPE_LOGS)):
            self._one("otlp", otlp_json.read_resource, value, harvest)
        elif jaeger.is_trace(value):
            self._one("jaeger", jaeger.read_trace, value, harvest)
        elif jaeger.is_span(value):
            self._one("jaeger", lambda: harvest.spans.append(jaeger.to_span(value)))
        elif sdk_dump.is_span(value):
            self._one("sdk", sdk_dump.read_span, value, harvest)
        elif sdk_dump.is_log(value):
            self._one("sdk", lambda: harvest.logs.append(sdk_dump.to_log(value)))
        elif ("traceId" in value and "spanId" in value) or ("trace_id" in value and "span_id" in value):
            self._one("otlp", otlp_json.read_flat, value, harvest)
        elif type(value.get("spans")) is list:
            self._spans(value)
        elif transcripts.is_transcript(value):
            self._one("messages", transcripts.read_transcript, value, harvest, self.transcripts)
        elif transcripts.is_message(value):
            self.loose_line = self.loose_line or harvest.line
            self.loose.append(value)
        else:
            return not value  # an empty request carries nothing and is none the worse
        return True

    def _spans(self, value: Mapping[str, Json]) -> None:
        """`{"spans": […]}`: a dump of an SDK, or a scope's part of an OTLP request."""
        spans = value["spans"]
        if any(type(span) is dict and sdk_dump.is_span(span) for span in spans):
            for number, span in enumerate(spans):
                if type(span) is dict:
                    self._one("sdk", sdk_dump.read_span, span, self.harvest, value.get("trace_id"))
                else:
                    self.harvest.reject(f"spans[{number}] is no span")
        else:
            self._one("otlp", otlp_json.read_scope, value, {}, self.harvest)

    def _opened(self, value: Mapping[str, Json]) -> list[Json]:
        """What an object that only wraps traces holds; rejected if it wraps nothing known."""
        for name in _WRAPPERS:
            inner = value.get(name)
            if type(inner) is list or type(inner) is dict:
                return inner if type(inner) is list else [inner]
        events = value.get("events")
        if type(events) is list and all(type(event) is dict and type(event.get("message")) is str for event in events):
            return self._messages([event["message"] for event in events])
        self.harvest.reject("no known shape of a trace: " + ", ".join(map(repr, list(value)[:5]))[:160])
        return []

    def _messages(self, texts: list[str]) -> list[Json]:
        """What the lines of a log hold that CloudWatch answered with, each a JSON text."""
        found: list[Json] = []
        for number, text in enumerate(texts):
            for document in documents(text.encode("utf-8", "replace")):
                if isinstance(document.value, Fault):
                    self.harvest.reject(f"events[{number}].message: {document.value.reason}")
                else:
                    found.append(document.value)
        return found

    def _one(self, shape: str, reader: Callable[..., None], *arguments: Json) -> None:
        """Let a reader read one value, if its shape was asked for."""
        if shape not in self.shapes:
            self.harvest.reject(f"this is {shape}, which was not asked for")
            return
        self.harvest.formats.add(shape)
        try:
            reader(*arguments)
        except InexactId:
            raise
        except BAD_CONTENT as error:
            self.harvest.reject(f"a {shape} value that could not be read: {error}"[:200])
