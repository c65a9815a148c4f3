"""Zipkin's JSON, version 2: what its API answers and the collector's exporter writes, a list of flat spans.

Times are microseconds; attributes are tags, all of them text; events are annotations; scope and status are tags.
"""

from collections.abc import Iterator, Mapping

from evalagent.model import Event, Json, Span
from evalagent.traces.anyvalues import plain
from evalagent.traces.harvest import Harvest
from evalagent.traces.identifiers import NO_TRACE_ID, integer, span_id, status, trace_id
from evalagent.traces.otlp_json import content_id

_LAST_NS = 1 << 63


def is_span(value: Mapping[str, Json]) -> bool:
    """Whether this is a span of Zipkin."""
    return (
        "traceId" in value
        and "id" in value
        and "spanId" not in value
        and any(
            name in value for name in ("localEndpoint", "remoteEndpoint", "duration", "annotations", "tags", "kind")
        )
    )


def read_span(value: Mapping[str, Json], harvest: Harvest) -> None:
    """One span."""
    harvest.spans.append(to_span(value))


def to_span(raw: Mapping[str, Json]) -> Span:
    """One span of Zipkin."""
    held = raw.get("tags")
    tags = {str(key): plain(value) for key, value in held.items()} if type(held) is dict else {}
    start = _from_micros(raw.get("timestamp"))
    code = status(tags.pop("otel.status_code", None))
    message = tags.pop("otel.status_description", None)
    failed = tags.pop("error", None)
    if failed is not None and failed is not False and failed != "false" and code == "unset":
        code, message = "error", message or (failed if failed not in ("true", True) else "")
    scope = [tags.pop(key, None) for key in ("otel.scope.name", "otel.library.name")]
    version = [tags.pop(key, None) for key in ("otel.scope.version", "otel.library.version")]
    here = raw.get("localEndpoint")
    service = here.get("serviceName") if type(here) is dict else None
    return Span(
        trace_id=trace_id(raw.get("traceId")) or NO_TRACE_ID,
        span_id=span_id(raw.get("id")) or content_id(raw),
        parent_id=span_id(raw.get("parentId")),
        name=str(raw.get("name") or ""),
        start_ns=start,
        end_ns=None if raw.get("duration") is None else min(start + _from_micros(raw["duration"]), _LAST_NS - 1),
        status=code,
        status_message=str(message or ""),
        attributes=tags,
        events=tuple(_events(raw.get("annotations"))),
        scope=str(scope[0] or scope[1] or ""),
        scope_version=str(version[0] or version[1] or ""),
        resource={"service.name": service} if type(service) is str and service else {},
    )


def _events(raw: Json) -> Iterator[Event]:
    for annotation in raw if type(raw) is list else ():
        if type(annotation) is dict:
            yield Event(str(annotation.get("value") or ""), _from_micros(annotation.get("timestamp")), {})


def _from_micros(value: Json) -> int:
    found = (integer(value) or 0) * 1000
    return found if 0 <= found < _LAST_NS else 0
