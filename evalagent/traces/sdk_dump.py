"""Spans as SDKs and trace stores print them: flat attributes, ids in a `context`, times of any unit.

The console exporter of OpenTelemetry's Python SDK, any-agent's files, Phoenix (`context.span_id` as an object or as a
column name, OpenInference's `span_kind` beside the attributes) and traces whose spans hold their children
(`child_spans`).
"""

import re
from collections.abc import Iterator, Mapping

from evalagent.model import Event, Json, Link, LogRecord, Span
from evalagent.traces.anyvalues import attributes, plain
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.identifiers import NO_TRACE_ID, any_time, span_id, status, trace_id
from evalagent.traces.otlp_json import content_id, first


def is_span(value: Mapping[str, Json]) -> bool:
    """Whether this is a span of such a dump."""
    context = value.get("context")
    if type(context) is dict:
        return "span_id" in context or "spanId" in context
    return "context.span_id" in value or ("span_id" in value and ("span_name" in value or "span_attributes" in value))


def is_list(value: Mapping[str, Json]) -> bool:
    """Whether this is `{"spans": […]}` with spans of such a dump."""
    spans = value.get("spans")
    return type(spans) is list and any(type(span) is dict and is_span(span) for span in spans)


def is_log(value: Mapping[str, Json]) -> bool:
    """Whether this is a log record as the SDK's console exporter prints it."""
    return "body" in value and "trace_id" in value and "severity_number" in value and "time_unix_nano" not in value


def read_list(value: Mapping[str, Json], harvest: Harvest) -> None:
    """The spans of `{"spans": […]}`; what is no span is rejected alone."""
    for number, span in enumerate(value["spans"]):
        if type(span) is dict:
            read_span(span, harvest, value.get("trace_id"))
        else:
            harvest.reject(f"spans[{number}] is no span")


def read_span(raw: Mapping[str, Json], harvest: Harvest, trace: Json = None) -> None:
    """One span and, where it holds them, its children."""
    todo: list[tuple[Mapping[str, Json], str | None]] = [(raw, None)]
    while todo:
        value, parent = todo.pop()
        span: Span | None = None
        try:
            span = to_span(value, trace, parent)
            harvest.spans.append(span)
        except BAD_CONTENT as error:
            harvest.refuse("no span", error)
        children = value.get("child_spans") if type(value) is dict else None
        if type(children) is list:
            todo.extend((child, span.span_id if span else parent) for child in reversed(children))


def to_span(raw: Json, trace: Json = None, parent: str | None = None) -> Span:
    """One span of a dump; `trace` and `parent` are what the place it stands in says of it."""
    if type(raw) is not dict:
        raise ValueError("an object was expected")
    context = raw.get("context")
    inside = context if type(context) is dict else {}
    above = raw.get("parent")
    over = above if type(above) is dict else {}
    state = raw.get("status")
    told = state if type(state) is dict else {}
    start = any_time(first(raw, "start_time", "startTime", "timestamp"))
    end = any_time(first(raw, "end_time", "endTime")) or _after(start, raw.get("duration"))
    found, lost = _attributes(raw)
    scope = first(raw, "instrumentation_scope", "instrumentation_info", "scope")
    where = scope if type(scope) is dict else {}
    resource = raw.get("resource")
    held = resource.get("attributes", resource) if type(resource) is dict else None
    ids = first(inside, "trace_id", "traceId") or first(raw, "context.trace_id", "trace_id") or trace
    return Span(
        trace_id=trace_id(ids) or NO_TRACE_ID,
        span_id=span_id(first(inside, "span_id", "spanId") or first(raw, "context.span_id", "span_id")) or _own_id(raw),
        parent_id=span_id(first(over, "span_id", "spanId") or first(raw, "parent_id", "parent_span_id")) or parent,
        name=str(first(raw, "name", "span_name") or ""),
        start_ns=start or end,
        end_ns=end or None,
        status=status(
            first(told, "status_code", "code") or first(raw, "status_code") or (state if type(state) is str else None)
        ),
        status_message=str(first(told, "description", "message") or first(raw, "status_message") or ""),
        attributes=found,
        events=tuple(_events(raw.get("events"))),
        links=tuple(_links(raw.get("links"))),
        scope=str(where.get("name") or (scope if type(scope) is str else "")),
        scope_version=str(where.get("version") or ""),
        resource=attributes(held)[0],
        dropped_attributes=lost,
    )


def read_log(value: Mapping[str, Json], harvest: Harvest) -> None:
    """One log record of the console exporter."""
    harvest.logs.append(to_log(value))


def to_log(raw: Mapping[str, Json]) -> LogRecord:
    """One log record of the console exporter."""
    found, _ = attributes(raw.get("attributes"))
    return LogRecord(
        trace_id=trace_id(raw.get("trace_id")) or "",
        span_id=span_id(raw.get("span_id")) or "",
        time_ns=any_time(first(raw, "timestamp", "observed_timestamp")),
        event_name=str(first(raw, "event_name") or found.get("event.name") or ""),
        body=plain(raw.get("body")),
        attributes=found,
    )


def _own_id(raw: Mapping[str, Json]) -> str:
    return content_id({key: value for key, value in raw.items() if key != "child_spans"})


def _attributes(raw: Mapping[str, Json]) -> tuple[dict[str, Json], int]:
    found, lost = attributes(first(raw, "attributes", "span_attributes"))
    prefix = "attributes."
    columns = {key[len(prefix) :]: value for key, value in raw.items() if key.startswith(prefix)}
    if columns:
        found |= _flattened(columns)
    kind = raw.get("span_kind")
    if type(kind) is str and kind and kind.upper() not in ("INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"):
        found.setdefault("openinference.span.kind", kind)
    return found, lost


def _flattened(columns: Mapping[str, Json]) -> dict[str, Json]:
    """Columns whose values are objects or lists of objects, as dotted and numbered attributes; no nulls."""
    found: dict[str, Json] = {}
    todo = [(key, plain(value)) for key, value in reversed(list(columns.items()))]
    while todo:
        key, value = todo.pop()
        if type(value) is dict:
            todo.extend((f"{key}.{name}", inner) for name, inner in reversed(list(value.items())))
        elif type(value) is list and any(type(item) is dict for item in value):
            todo.extend((f"{key}.{number}", value[number]) for number in range(len(value) - 1, -1, -1))
        elif value is not None:
            found[key] = value
    return found


_DURATION = re.compile(r"P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?").fullmatch


def _after(start: int, duration: Json) -> int:
    """The end from an ISO 8601 duration (`PT1.5S`); 0 where there is none."""
    match = _DURATION(duration[:64]) if type(duration) is str else None
    if not start or match is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    end = start + whole * 1_000_000_000 + int((match.group(5) or "0").ljust(9, "0"))
    return end if end < 1 << 63 else 0


def _events(raw: Json) -> Iterator[Event]:
    for event in raw if type(raw) is list else ():
        if type(event) is dict:
            when = any_time(first(event, "timestamp", "time_unix_nano", "timeUnixNano", "Timestamp"))
            held = first(event, "attributes", "Attributes")
            yield Event(str(first(event, "name", "Name") or ""), when, attributes(held)[0])


def _links(raw: Json) -> Iterator[Link]:
    for link in raw if type(raw) is list else ():
        context = first(link, "context") if type(link) is dict else None
        held = context if type(context) is dict else link if type(link) is dict else {}
        trace, span = trace_id(first(held, "trace_id", "traceId")), span_id(first(held, "span_id", "spanId"))
        if trace and span:
            yield Link(trace, span, attributes(link.get("attributes"))[0])
