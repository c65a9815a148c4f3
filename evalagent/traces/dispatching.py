"""Each value of a text to the reader of its shape; what only wraps others is opened."""

from collections.abc import Callable, Mapping

from evalagent.model import Json
from evalagent.traces import cloudwatch, tables, transcripts
from evalagent.traces.documents import Document, Fault, documents, exact
from evalagent.traces.formats import FORMATS
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.identifiers import InexactId
from evalagent.traces.shapes import refusal, shape_of
from evalagent.traces.transcript_messages import is_message

WRAPPERS = ("trace", "result", "data", "traces", "runs", "sessionSpans")


class Dispatch:
    """Gives each value of a text to the reader of its shape."""

    def __init__(self, harvest: Harvest, format: str) -> None:
        self.harvest = harvest
        self.format = format
        self.transcripts: dict[str, int] = {}
        self.loose: list[Json] = []
        """Messages that stand one a line: together they are one transcript."""
        self.loose_line = 0
        self.read_now: list[str] = []
        """Names of the transcripts in the value that is being read."""
        self.inside = False
        """Whether the value stands in a larger one that was cut off: only what is known there counts."""

    def document(self, document: Document) -> None:
        """One value of the text; read again with exact integers where an id was larger than the fast parser's."""
        harvest = self.harvest
        self.inside = document.inside
        before = self.state()
        self.read_now.clear()
        try:
            self.value(document.value)
        except InexactId:
            self.undo(before)
            value = exact(document.text)
            if isinstance(value, Fault):
                harvest.reject(value.reason)
                return
            harvest.exact = True
            self.value(value)
            harvest.exact = False

    def state(self) -> tuple[int, int, int, int]:
        """How far reading has come, for `undo`."""
        harvest = self.harvest
        return len(harvest.spans), len(harvest.logs), len(harvest.rejected), len(self.loose)

    def undo(self, before: tuple[int, int, int, int]) -> None:
        """Take back the document that was read last."""
        harvest, (spans, logs, rejected, loose) = self.harvest, before
        del harvest.spans[spans:], harvest.logs[logs:], harvest.rejected[rejected:], self.loose[loose:]
        for name in self.read_now:
            self.transcripts[name] -= 1
        self.read_now.clear()

    def value(self, value: Json) -> None:
        """One value: a list is read item by item, an object that only wraps another is opened."""
        todo = [value]
        while todo:
            value = todo.pop()
            if type(value) is list:
                if transcripts.is_transcript(value):
                    others = [item for item in value if type(item) is dict and not is_message(item)]
                    own = [item for item in value if type(item) is not dict or is_message(item)]
                    self._transcript(own)
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
            self._transcript(messages)

    def _known(self, value: Mapping[str, Json]) -> bool:
        """Read an object whose shape is known; False where it is not."""
        shape = None if tables.is_columns(value) else shape_of(value)
        if shape is not None:
            self._one(shape.name, shape.read, value, self.harvest)
        elif transcripts.is_transcript(value):
            self._transcript(value)
        elif is_message(value):
            self.loose_line = self.loose_line or self.harvest.line
            self.loose.append(value)
        else:
            return not value  # an empty request carries nothing and is none the worse
        return True

    def _opened(self, value: Mapping[str, Json]) -> list[Json]:
        """What an object that only wraps traces holds; rejected if it wraps nothing known."""
        if tables.is_columns(value):
            return tables.rows_of_columns(value)
        told = cloudwatch.messages(value)
        if told is not None:
            return self._messages(told)
        for name in WRAPPERS:
            inner = value.get(name)
            if type(inner) is str and inner[:1] in ("{", "["):
                return self._messages([inner])
            if (type(inner) is list or type(inner) is dict) and (inner or not _holds_more(value)):
                return inner if type(inner) is list else [inner]
        self.harvest.reject("no known shape of a trace: " + ", ".join(map(repr, list(value)[:5]))[:160])
        return []

    def _messages(self, told: list[Json]) -> list[Json]:
        """What texts that each hold JSON values hold; what is no text as it is."""
        found: list[Json] = []
        for number, text in enumerate(told):
            if type(text) is not str:
                found.append(text)
                continue
            for document in documents(text.encode("utf-8", "replace")):
                value = exact(document.text) if self.harvest.exact else document.value
                if isinstance(value, Fault):
                    self.harvest.reject(f"message {number}: {value.reason}")
                else:
                    found.append(value)
        return found

    def _transcript(self, value: Json) -> None:
        self._one("messages", transcripts.read_transcript, value, self.harvest, self.transcripts, self.read_now)

    def _one(self, shape: str, reader: Callable[..., None], *arguments: Json) -> None:
        """Let a reader read one value, if its shape was asked for."""
        if shape not in FORMATS[self.format]:
            self.harvest.reject(refusal(shape, self.format))
            return
        self.harvest.formats.add(shape)
        try:
            reader(*arguments)
        except BAD_CONTENT as error:
            self.harvest.refuse(f"a {shape} value that could not be read", error)


def _holds_more(value: Mapping[str, Json]) -> bool:
    """Whether an object lists other objects: then it is no page of an answer that happens to be empty."""
    return any(type(held) is list and any(type(item) is dict for item in held) for held in value.values())
