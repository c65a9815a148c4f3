"""OTLP/JSON as collectors, SDKs, Tempo and CloudWatch write it: requests, bare parts of one, single spans and records.

Both spellings of every field (`traceId`, `trace_id`) and the names from before 2021 (`instrumentationLibrarySpans`)
are taken; unknown fields are ignored. Tempo's `{"batches": […]}` is a request by another name, and CloudWatch's span
documents are spans with flat attributes.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson

from evalagent.model import Event, Json, Link, LogRecord, Span
from evalagent.traces.anyvalues import KINDS, any_value, attributes, plain
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.identifiers import NO_TRACE_ID, integer, nanoseconds, span_id, status, trace_id

SPAN_LISTS = ("resourceSpans", "resource_spans", "batches")
LOG_LISTS = ("resourceLogs", "resource_logs")
METRIC_LISTS = ("resourceMetrics", "resource_metrics")
SCOPE_SPANS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
SCOPE_LOGS = ("scopeLogs", "scope_logs", "instrumentationLibraryLogs", "instrumentation_library_logs")
SCOPES = (
    "scope",
    "instrumentationLibrary",
    "instrumentation_library",
    "instrumentationScope",
    "instrumentation_scope",
)
_DROPPED = frozenset(
    ("droppedAttributesCount", "dropped_attributes_count", "droppedEventsCount", "dropped_events_count")
)


class Origin(NamedTuple):
    """Where spans come from: what their resource and scope say once for all of them."""

    scope: str = ""
    version: str = ""
    resource: Mapping[str, Json] = {}


def first(value: Mapping[str, Json], *names: str) -> Json:
    """The value under the first of these names that is there and not null."""
    for name in names:
        found = value.get(name)
        if found is not None:
            return found
    return None


def read_request(value: Mapping[str, Json], harvest: Harvest) -> None:
    """An export request of spans, logs or both; metrics hold no steps and are passed over."""
    for name in SPAN_LISTS:
        for part in _objects(value.get(name), name, harvest):
            read_resource(part, harvest)
    for name in LOG_LISTS:
        for part in _objects(value.get(name), name, harvest):
            read_resource(part, harvest)


def read_resource(value: Mapping[str, Json], harvest: Harvest) -> None:
    """One `{"resource", "scopeSpans"}` or `{"resource", "scopeLogs"}`."""
    resource = _resource(value.get("resource"))
    for name in SCOPE_SPANS:
        for part in _objects(value.get(name), name, harvest):
            read_scope(part, resource, harvest)
    for name in SCOPE_LOGS:
        for part in _objects(value.get(name), name, harvest):
            read_scope(part, resource, harvest)


def read_scope(value: Mapping[str, Json], resource: Mapping[str, Json], harvest: Harvest) -> None:
    """One `{"scope", "spans"}` or `{"scope", "logRecords"}`; a bad span or record is rejected alone."""
    origin = _origin(value, resource)
    for name in ("spans", "logRecords", "log_records", "logs"):
        for number, raw in enumerate(_list(value.get(name), name, harvest)):
            try:
                if name == "spans":
                    harvest.spans.append(to_span(raw, origin))
                else:
                    harvest.logs.append(to_log(raw))
            except BAD_CONTENT as error:
                harvest.refuse(f"{name}[{number}] is no {'span' if name == 'spans' else 'log record'}", error)


def read_spans(value: Mapping[str, Json], harvest: Harvest) -> None:
    """`{"spans": […]}` without a scope around it."""
    read_scope(value, {}, harvest)


def read_flat(value: Mapping[str, Json], harvest: Harvest) -> None:
    """A span or log record that stands alone, with its resource and scope inside it (CloudWatch, AgentCore)."""
    if is_log(value):
        harvest.logs.append(to_log(value))
    else:
        harvest.spans.append(to_span(value, _origin(value, _resource(value.get("resource")))))


def is_log(value: Mapping[str, Json]) -> bool:
    """Whether a document that stands alone is a log record rather than a span."""
    if first(value, "startTimeUnixNano", "start_time_unix_nano", "endTimeUnixNano", "startTime", "start_time"):
        return False
    return any(
        name in value for name in ("body", "timeUnixNano", "observedTimeUnixNano", "severityNumber", "timestamp")
    )


def to_span(raw: Json, origin: Origin) -> Span:
    """A span object of OTLP/JSON. Missing ids are made from its content; every other part has a default."""
    if type(raw) is not dict:
        raise ValueError(f"an object was expected, not {_kind(raw)}")
    found, lost = attributes(raw.get("attributes"))
    state = raw.get("status")
    if type(state) is dict:
        code, message = (
            status(first(state, "code", "statusCode", "status_code")),
            _text(first(state, "message", "description")),
        )
    else:
        code, message = status(state), ""
    start = nanoseconds(first(raw, "startTimeUnixNano", "start_time_unix_nano", "startTime"))
    end = nanoseconds(first(raw, "endTimeUnixNano", "end_time_unix_nano", "endTime"))
    events, links = first(raw, "events", "span_events"), raw.get("links")
    return Span(
        trace_id=trace_id(raw.get("traceId") or raw.get("trace_id")) or NO_TRACE_ID,
        span_id=span_id(raw.get("spanId") or raw.get("span_id")) or content_id(raw),
        parent_id=span_id(raw.get("parentSpanId") or raw.get("parent_span_id")),
        name=_text(raw.get("name")),
        start_ns=start or end,
        end_ns=end or None,
        status=code,
        status_message=message,
        attributes=found,
        events=tuple(_events(events)) if events else (),
        links=tuple(_links(links)) if links else (),
        scope=origin.scope,
        scope_version=origin.version,
        resource=origin.resource,
        dropped_attributes=lost if _DROPPED.isdisjoint(raw) else lost + _dropped(raw),
    )


def to_log(raw: Json) -> LogRecord:
    """A log record of OTLP/JSON; without trace or span id the id is an empty text."""
    if type(raw) is not dict:
        raise ValueError(f"an object was expected, not {_kind(raw)}")
    found, _ = attributes(raw.get("attributes"))
    body = raw.get("body")
    wrapped = type(body) is dict and len(body) == 1 and next(iter(body)) in KINDS
    return LogRecord(
        trace_id=trace_id(first(raw, "traceId", "trace_id")) or "",
        span_id=span_id(first(raw, "spanId", "span_id")) or "",
        time_ns=nanoseconds(first(raw, "timeUnixNano", "time_unix_nano", "timestamp"))
        or nanoseconds(first(raw, "observedTimeUnixNano", "observed_time_unix_nano", "observed_timestamp")),
        event_name=_text(first(raw, "eventName", "event_name") or first(found, "event.name")),
        body=any_value(body) if wrapped else plain(body) if body != {} else None,
        attributes=found,
    )


def content_id(raw: Mapping[str, Json]) -> str:
    """A span id for a span that has none: the same content gives the same id."""
    try:
        text = orjson.dumps(raw, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        text = str(raw.get("name")).encode("utf-8", "replace")
    return hashlib.sha256(text).hexdigest()[:16]


def _events(raw: Json) -> Iterator[Event]:
    for event in raw if type(raw) is list else ():
        if type(event) is dict:
            when = nanoseconds(first(event, "timeUnixNano", "time_unix_nano", "timestamp", "time"))
            if type(event.get("body")) is dict:  # a log record of AgentCore that was put into its span
                record = to_log(event)
                yield Event(record.event_name, when, {**record.attributes, **(record.body or {})})
            else:
                yield Event(_text(event.get("name")), when, attributes(event.get("attributes"))[0])


def _links(raw: Json) -> Iterator[Link]:
    for link in raw if type(raw) is list else ():
        if type(link) is dict:
            trace, span = trace_id(first(link, "traceId", "trace_id")), span_id(first(link, "spanId", "span_id"))
            if trace and span:
                yield Link(trace, span, attributes(link.get("attributes"))[0])


def _resource(raw: Json) -> Mapping[str, Json]:
    return attributes(raw.get("attributes"))[0] if type(raw) is dict else {}


def _origin(value: Mapping[str, Json], resource: Mapping[str, Json]) -> Origin:
    scope = first(value, *SCOPES)
    if type(scope) is not dict:
        return Origin(_text(scope), "", resource)
    return Origin(_text(scope.get("name")), _text(scope.get("version")), resource)


def _objects(value: Json, name: str, harvest: Harvest) -> Iterator[Mapping[str, Json]]:
    for number, item in enumerate(_list(value, name, harvest)):
        if type(item) is dict:
            yield item
        else:
            harvest.reject(f"{name}[{number}]: an object was expected, not {_kind(item)}")


def _list(value: Json, name: str, harvest: Harvest) -> list[Json]:
    if type(value) is list:
        return value
    if value is not None:
        harvest.reject(f"{name}: a list was expected, not {_kind(value)}")
    return []


def _text(value: Json) -> str:
    return value if type(value) is str else "" if value is None or isinstance(value, dict | list) else str(value)


def _dropped(raw: Mapping[str, Json]) -> int:
    """Attributes and events that were left out of a span."""
    return _count(first(raw, "droppedAttributesCount", "dropped_attributes_count")) + _count(
        first(raw, "droppedEventsCount", "dropped_events_count")
    )


def _count(value: Json) -> int:
    return min(max(integer(value) or 0, 0), 1 << 32)


def _kind(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
