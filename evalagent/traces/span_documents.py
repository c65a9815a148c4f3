"""Spans and log records as compact JSON documents, and back without loss.

A span is kept as columns (ids, name, times, status, scope), the JSON of its resource and the JSON of its content: an
object with those of `attributes`, `events`, `links`, `status_message` and `dropped_attributes` that are not empty.
What JSON or a column cannot hold as it is (an integer beyond 64 bits, half of a surrogate pair, a number that is not
finite, nesting beyond the fast writer's limit) is kept as text under `exact` and read from there.
"""

import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

import orjson

from evalagent.model import Event, Json, Link, LogRecord, Span, Status

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_EXACT = "exact"
_SESSIONS = ("session.id", "gen_ai.conversation.id")
_SESSION_KEY = re.compile(r"(?i)(?:.*[._])?(?:session|conversation|thread|chat)_?id").fullmatch
_EMPTY: dict[str, Json] = {}


class SpanColumns(NamedTuple):
    """One span in the form of a row. Times are nanoseconds; texts are valid UTF-8."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    scope: str
    scope_version: str
    start_ns: int
    end_ns: int | None
    status: Status
    resource: bytes
    content: bytes


class LogColumns(NamedTuple):
    """One log record in the form of a row."""

    trace_id: str
    span_id: str
    time_ns: int
    event_name: str
    content: bytes


def columns_of(span: Span) -> SpanColumns:
    """A span as a row; equal spans give equal rows, and different ones different rows."""
    content: dict[str, Json] = {}
    if span.attributes:
        content["attributes"] = span.attributes
    if span.events:
        content["events"] = [[event.name, event.time_ns, event.attributes] for event in span.events]
    if span.links:
        content["links"] = [[link.trace_id, link.span_id, link.attributes] for link in span.links]
    if span.status_message:
        content["status_message"] = span.status_message
    if span.dropped_attributes:
        content["dropped_attributes"] = span.dropped_attributes
    fits = f"{span.trace_id}{span.span_id}{span.parent_id}{span.name}{span.scope}{span.scope_version}".isascii()
    fits = fits and _LEAST <= span.start_ns <= _MOST and _LEAST <= (span.end_ns or 0) <= _MOST
    row = SpanColumns(
        span.trace_id,
        span.span_id,
        span.parent_id,
        span.name,
        span.scope,
        span.scope_version,
        span.start_ns,
        span.end_ns,
        span.status,
        _resource(span.resource),
        dump(content) if fits else b"",
    )
    if fits:
        return row
    row, odd = _fitted(row)
    if odd:
        content["columns"] = odd
    return row._replace(content=dump(content))


def span_of(row: SpanColumns) -> Span:
    """The span that `columns_of` gave this row for. Spans with the same resource share one value of it."""
    content = load(row.content) if row.content != b"{}" else _EMPTY
    events, links, odd = content.get("events"), content.get("links"), content.get("columns")
    if odd:
        row = row._replace(**odd)
    return Span(
        row.trace_id,
        row.span_id,
        row.parent_id,
        row.name,
        row.start_ns,
        row.end_ns,
        row.status,
        content.get("status_message", ""),
        content.get("attributes", {}),
        tuple(Event(*event) for event in events) if events else (),
        tuple(Link(*link) for link in links) if links else (),
        row.scope,
        row.scope_version,
        _shared(row.resource),
        content.get("dropped_attributes", 0),
    )


def log_columns_of(log: LogRecord) -> LogColumns:
    """A log record as a row; equal records give equal rows."""
    content: dict[str, Json] = {"body": log.body, "attributes": log.attributes}
    row = LogColumns(log.trace_id, log.span_id, log.time_ns, log.event_name, b"")
    fitting, odd = _fitted(row)
    if odd:
        content["columns"] = odd
    return fitting._replace(content=dump(content))


def log_of(row: LogColumns) -> LogRecord:
    """The log record that `log_columns_of` gave this row for."""
    content = load(row.content)
    if "columns" in content:
        row = row._replace(**content["columns"])
    return LogRecord(row.trace_id, row.span_id, row.time_ns, row.event_name, content["body"], content["attributes"])


def session_of(span: Span) -> str | None:
    """What a span seems to say of its session or conversation: known spellings, whatever dialect it speaks.

    A guess that spares work: which traces belong together is decided by how their dialects understand them.
    """
    attributes = span.attributes
    for key in _SESSIONS:
        value = attributes.get(key)
        if value and type(value) is str:
            return value
    for key, value in attributes.items():
        if _names_a_session(key) and type(value) is str and value:
            return value
    metadata = attributes.get("metadata")
    if type(metadata) is str and "_id" in metadata:
        try:
            metadata = orjson.loads(metadata)
        except orjson.JSONDecodeError:
            return None
    if type(metadata) is dict:
        value = metadata.get("session_id") or metadata.get("thread_id")
        return value if type(value) is str else None
    return None


@lru_cache(maxsize=4096)
def _names_a_session(key: str) -> bool:
    return _SESSION_KEY(key) is not None


def dump(value: Mapping[str, Json]) -> bytes:
    """Compact JSON of an object, valid by RFC 8259, from which `load` makes an equal object."""
    if _EXACT in value and len(value) == 1:
        return _exact(value)  # or it would be taken for one of ours
    try:
        text = orjson.dumps(value)
    except TypeError:
        return _exact(value)
    # the fast writer turns what is not finite into null, and says nothing
    return text if b"null" not in text or _finite(value) else _exact(value)


def load(text: bytes) -> dict[str, Json]:
    """The object that `dump` wrote."""
    value: dict[str, Json] = orjson.loads(text)
    if _EXACT in value and len(value) == 1:
        value = json.loads(value[_EXACT])
    return value


def _exact(value: Mapping[str, Json]) -> bytes:
    return orjson.dumps({_EXACT: json.dumps(value)})


def _finite(value: Json) -> bool:
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is float:
            if not math.isfinite(item):
                return False
        elif type(item) is dict:
            todo.extend(item.values())
        elif type(item) is list:
            todo.extend(item)
    return True


def _resource(resource: Mapping[str, Json]) -> bytes:
    return dump(resource) if resource else b"{}"


@lru_cache(maxsize=256)
def _shared(resource: bytes) -> Mapping[str, Json]:
    return load(resource)


Row = TypeVar("Row", SpanColumns, LogColumns)


def _fitted(row: Row) -> tuple[Row, dict[str, Json]]:
    """The row with what no column can hold replaced by something like it, and what that was."""
    odd: dict[str, Json] = {}
    like: dict[str, Json] = {}
    for name, value in zip(row._fields, row, strict=True):
        if type(value) is str:
            if not value.isascii():
                try:
                    value.encode()
                except UnicodeEncodeError:
                    odd[name], like[name] = value, value.encode("utf-8", "replace").decode()
        elif type(value) is int and not _LEAST <= value <= _MOST:
            odd[name], like[name] = value, _MOST if value > 0 else _LEAST
    return (row._replace(**like), odd) if odd else (row, odd)
