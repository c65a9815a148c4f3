"""Spans and log records as rows of the trace store, made and read in the processes that do the work."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from evalagent.adapters.arrow import Array, Table, arrow
from evalagent.model import LogRecord, Span
from evalagent.traces.building import event_of, fullness
from evalagent.traces.masking import mask_log, mask_span
from evalagent.traces.span_documents import (
    LogColumns,
    SpanColumns,
    columns_of,
    log_columns_of,
    log_of,
    session_of,
    span_of,
)
from evalagent.traces.unwrapping import canonical

SPAN_COLUMNS = (*SpanColumns._fields[:-1], "payload")
LOG_COLUMNS = (*LogColumns._fields[:-1], "payload")


def distinct_spans(spans: Iterable[Span], patterns: Sequence[str]) -> list[tuple[Span, int]]:
    """The spans with their secrets masked, each trace and span id once, with how often it came; those of a trace
    together, so that histories that repeat are stored for little."""
    kept: dict[tuple[str, str], tuple[Span, int]] = {}
    first: dict[str, int] = {}
    for given in spans:
        span = mask_span(given, patterns)
        key = (span.trace_id, span.span_id)
        known = kept.get(key)
        if known is not None:
            winner = span if fullness(span) > fullness(known[0]) else known[0]
            kept[key] = (winner, known[1] + 1)
        else:
            kept[key] = (span, 1)
            first.setdefault(span.trace_id, len(first))
    return sorted(kept.values(), key=lambda one: (first[one[0].trace_id], one[0].start_ns, one[0].span_id))


def span_table(spans: Sequence[tuple[Span, int]]) -> Table:
    """Spans and how often each came, as rows of the table `spans`."""
    pa = arrow()
    rows = [columns_of(span) for span, _ in spans]
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(SpanColumns._fields)
    named = dict(zip(SPAN_COLUMNS, columns, strict=True))
    linked = [sorted({link.trace_id for link in span.links} - {span.trace_id}) or None for span, _ in spans]
    text, whole = pa.string(), pa.int64()
    return pa.table(
        {
            **{name: pa.array(named[name], text) for name in ("trace_id", "span_id", "parent_id", "name", "scope")},
            "scope_version": pa.array(named["scope_version"], text),
            "start_ns": pa.array(named["start_ns"], whole),
            "end_ns": pa.array(named["end_ns"], whole),
            "status": pa.array(named["status"], text),
            "session": pa.array([_text(session_of(span)) for span, _ in spans], text),
            "service": pa.array([_text(span.resource.get("service.name")) for span, _ in spans], text),
            "linked": pa.array(linked, pa.list_(text)),
            "said": pa.array([len(s.attributes) + len(s.events) + len(s.links) for s, _ in spans], pa.int32()),
            "copies": pa.array([copies for _, copies in spans], whole),
            "resource": json_array(named["resource"]),
            "payload": json_array(named["payload"]),
        }
    )


def log_table(logs: Iterable[LogRecord], patterns: Sequence[str]) -> Table:
    """Log records with their secrets masked as rows of `log_records`, those that building takes for one once."""
    pa = arrow()
    found: dict[tuple[str, str, str], tuple[LogColumns, int]] = {}
    for given in logs:
        log = mask_log(given, patterns)
        event = event_of(log)
        said = canonical([event.name, event.time_ns, dict(event.attributes)])
        digest = hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=16).hexdigest()
        row = log_columns_of(log)
        key = (row.trace_id, row.span_id, digest)
        found[key] = (row, found[key][1] + 1 if key in found else 1)
    rows = [row for row, _ in found.values()]
    text, whole = pa.string(), pa.int64()
    return pa.table(
        {
            "trace_id": pa.array([row.trace_id for row in rows], text),
            "span_id": pa.array([row.span_id for row in rows], text),
            "time_ns": pa.array([row.time_ns for row in rows], whole),
            "event_name": pa.array([row.event_name for row in rows], text),
            "digest": pa.array([digest for _, _, digest in found], text),
            "copies": pa.array([copies for _, copies in found.values()], whole),
            "payload": json_array([row.content for row in rows]),
        }
    )


def json_array(texts: Sequence[bytes | None]) -> Array:
    """JSON texts (UTF-8) as an array that the database takes for JSON as it is."""
    pa = arrow()
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts, pa.binary()).cast(pa.string()))


def spans_in(table: Table) -> list[Span]:
    """The spans of rows that hold at least `SPAN_COLUMNS`."""
    columns = [table.column(name).to_pylist() for name in SPAN_COLUMNS[:-2]]
    binary = [_bytes_of(table.column(name)) for name in SPAN_COLUMNS[-2:]]
    return [span_of(SpanColumns(*row)) for row in zip(*columns, *binary, strict=True)]


def logs_in(table: Table) -> list[LogRecord]:
    """The log records of rows that hold at least `LOG_COLUMNS`."""
    columns = [table.column(name).to_pylist() for name in LOG_COLUMNS[:-1]]
    return [log_of(LogColumns(*row)) for row in zip(*columns, _bytes_of(table.column("payload")), strict=True)]


def _bytes_of(column: Array) -> list[bytes]:
    pa = arrow()
    stored = [chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk for chunk in column.chunks]
    return [text for chunk in stored for text in chunk.cast(pa.binary()).to_pylist()]


def _text(value: object) -> str | None:
    return value.encode("utf-8", "replace").decode() if type(value) is str else None
