"""Jaeger's JSON: what its query service answers and its UI exports (`{"data": [{"traceID", "spans", "processes"}]}`).

Times are microseconds; ids have lost their leading zeros; the parent and the links are references; resource, scope
and status are tags. Numbers may be written as text.
"""

import math
from collections.abc import Iterator, Mapping

from evalagent.model import Event, Json, Link, Span, Status
from evalagent.traces.anyvalues import plain
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.identifiers import NO_TRACE_ID, integer, span_id, status, trace_id
from evalagent.traces.otlp_json import content_id, first

_SILENT = {"internal.span.format", "span.kind", "w3c.tracestate", "otel.dropped_attributes_count"}


def is_trace(value: Mapping[str, Json]) -> bool:
    """Whether this is one trace of a Jaeger answer."""
    return type(value.get("spans")) is list and ("processes" in value or "traceID" in value)


def is_span(value: Mapping[str, Json]) -> bool:
    """Whether this is one Jaeger span (its Elasticsearch documents are such)."""
    return "traceID" in value and "spanID" in value


def read_trace(value: Mapping[str, Json], harvest: Harvest) -> None:
    """One `{"traceID", "spans", "processes"}`; a bad span is rejected alone."""
    raw = value.get("processes")
    processes = {name: _resource(process) for name, process in raw.items()} if type(raw) is dict else {}
    for number, span in enumerate(value["spans"]):
        try:
            harvest.spans.append(to_span(span, processes, value.get("traceID")))
        except BAD_CONTENT as error:
            harvest.refuse(f"spans[{number}] is no span", error)


def read_span(value: Mapping[str, Json], harvest: Harvest) -> None:
    """One span that stands alone, with its process inside it."""
    harvest.spans.append(to_span(value))


def to_span(raw: Json, processes: Mapping[str, Mapping[str, Json]] | None = None, trace: Json = None) -> Span:
    """One Jaeger span with the resource of its process."""
    if type(raw) is not dict:
        raise ValueError("an object was expected")
    tags = _tags(raw.get("tags")) | _tags(raw.get("tag"))
    process = raw.get("process")
    name = raw.get("processID")
    resource = (
        _resource(process) if type(process) is dict else (processes or {}).get(name if type(name) is str else "", {})
    )
    mine = trace_id(first(raw, "traceID", "traceId")) or trace_id(trace) or NO_TRACE_ID
    parent, links = _references(raw, mine)
    start, duration = _from_micros(raw.get("startTime")), raw.get("duration")
    failed, message = _status(tags)
    dropped = integer(tags.get("otel.dropped_attributes_count")) or 0
    for silent in _SILENT:
        tags.pop(silent, None)
    scope = [tags.pop(key, None) for key in ("otel.scope.name", "otel.library.name")]
    version = [tags.pop(key, None) for key in ("otel.scope.version", "otel.library.version")]
    logs = raw.get("logs")
    return Span(
        trace_id=mine,
        span_id=span_id(first(raw, "spanID", "spanId")) or content_id(raw),
        parent_id=parent,
        name=str(first(raw, "operationName") or ""),
        start_ns=start,
        end_ns=None if duration is None else start + _from_micros(duration),
        status=failed,
        status_message=message,
        attributes=tags,
        events=tuple(_events(logs)) if type(logs) is list else (),
        links=links,
        scope=str(scope[0] or scope[1] or ""),
        scope_version=str(version[0] or version[1] or ""),
        resource=resource,
        dropped_attributes=max(dropped, 0),
    )


def _references(raw: Mapping[str, Json], mine: str) -> tuple[str | None, tuple[Link, ...]]:
    """The parent (the first CHILD_OF of this trace) and everything else that is referred to."""
    parent = span_id(first(raw, "parentSpanID", "parentSpanId"))
    links = []
    references = raw.get("references")
    for reference in references if type(references) is list else ():
        if type(reference) is not dict:
            continue
        trace = trace_id(first(reference, "traceID", "traceId")) or mine
        span = span_id(first(reference, "spanID", "spanId"))
        if span is None:
            continue
        kind = str(reference.get("refType", "CHILD_OF")).upper()
        if kind == "CHILD_OF" and trace == mine and parent in (None, span):
            parent = span
        else:
            links.append(Link(trace, span))
    return parent, tuple(links)


def _status(tags: dict[str, Json]) -> tuple[Status, str]:
    """Status from the tags, which are taken out: the code's own tag is surer than `error`."""
    code = status(tags.pop("otel.status_code", None))
    message = tags.pop("otel.status_description", None)
    flag = tags.get("error")
    if flag in (True, False, "true", "false", "True", "False"):
        del tags["error"]
        if code == "unset" and flag in (True, "true", "True"):
            code = "error"
    return code, message if type(message) is str else ""


def _events(logs: list[Json]) -> Iterator[Event]:
    for log in logs:
        if type(log) is dict:
            fields = _tags(log.get("fields"))
            name = fields.pop("event", None)
            yield Event("" if name is None else str(name), _from_micros(log.get("timestamp")), fields)


def _resource(process: Json) -> Mapping[str, Json]:
    if type(process) is not dict:
        return {}
    tags = _tags(process.get("tags")) | _tags(process.get("tag"))
    service = process.get("serviceName")
    return tags | {"service.name": service} if type(service) is str and service else tags


def _tags(raw: Json) -> dict[str, Json]:
    if type(raw) is dict:
        return {key: plain(value) for key, value in raw.items()}
    found: dict[str, Json] = {}
    for tag in raw if type(raw) is list else ():
        if type(tag) is dict and type(tag.get("key")) is str:
            found[tag["key"]] = _typed(tag.get("value"), tag.get("type"))
    return found


def _typed(value: Json, kind: Json) -> Json:
    """A tag's value by its declared type, where it was written as text."""
    if type(value) is str and kind in ("int64", "float64", "bool"):
        if kind == "bool":
            return {"true": True, "false": False}.get(value.lower(), value)
        number = integer(value)
        if number is not None and kind == "int64":
            return plain(number)
        try:
            return plain(float(value))
        except ValueError:
            return value
    return plain(value)


def _from_micros(value: Json) -> int:
    """Microseconds as number or text → nanoseconds; 0 where there is none."""
    if type(value) is str and not value.strip().isdecimal():
        try:
            value = float(value)
        except ValueError:
            return 0
    if type(value) is float:
        found = int(value) * 1000 + round(value % 1 * 1000) if math.isfinite(value) else 0
    else:
        found = (integer(value) or 0) * 1000
    return found if 0 <= found < 1 << 63 else 0
