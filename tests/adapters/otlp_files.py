"""Spans as lines of OTLP/JSON, for tests that need files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from evalagent.adapters.files import Input
from evalagent.model import Json, LogRecord, Span


def line(spans: Sequence[Span], logs: Sequence[LogRecord] = ()) -> bytes:
    """One export request; all spans have the resource and scope of the first."""
    request: dict[str, Json] = {}
    if spans:
        scope = {"scope": {"name": spans[0].scope}, "spans": [_span(span) for span in spans]}
        request["resourceSpans"] = [{"resource": {"attributes": _pairs(spans[0].resource)}, "scopeSpans": [scope]}]
    if logs:
        request["resourceLogs"] = [{"scopeLogs": [{"logRecords": [_log(log) for log in logs]}]}]
    return json.dumps(request).encode() + b"\n"


def _span(span: Span) -> Json:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id or "",
        "name": span.name,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns or 0),
        "status": {"code": {"unset": 0, "ok": 1, "error": 2}[span.status], "message": span.status_message},
        "attributes": _pairs(span.attributes),
        "events": [
            {"name": e.name, "timeUnixNano": str(e.time_ns), "attributes": _pairs(e.attributes)} for e in span.events
        ],
        "links": [
            {"traceId": link.trace_id, "spanId": link.span_id, "attributes": _pairs(link.attributes)}
            for link in span.links
        ],
    }


def _log(log: LogRecord) -> Json:
    return {
        "traceId": log.trace_id,
        "spanId": log.span_id,
        "timeUnixNano": str(log.time_ns),
        "eventName": log.event_name,
        "body": _value(log.body),
        "attributes": _pairs(log.attributes),
    }


def _pairs(values: Mapping[str, Json]) -> Json:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Json) -> Json:
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _pairs(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}.get(type(value))
    return {kind: value} if kind else {}


def inputs(folder: Path, contents: Iterable[bytes]) -> list[Input]:
    """A file for each of the contents."""
    found = []
    for number, data in enumerate(contents):
        path = folder / f"{number:03}.jsonl"
        path.write_bytes(data)
        found.append(Input(path.name, path, named=True))
    return found
