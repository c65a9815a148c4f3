"""Small files of every format to begin with: the readers' samples, and one run told in every dialect."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from evalagent.model import Json, LogRecord, Span
from tests.traces.conversations import TRANSCRIPTS
from tests.traces.exports import EXPORTS
from tests.traces.loans import DIALECTS

SAMPLES = Path(__file__).parent.parent / "tests" / "traces" / "readers"


def seeds() -> Iterator[tuple[str, bytes]]:
    """Name and content of each seed."""
    for path in sorted(SAMPLES.iterdir()):
        if ".spans." not in path.name and ".steps." not in path.name:
            yield path.name, path.read_bytes()
    yield "renewal.gz", gzip.compress((SAMPLES / "renewal.otlp.jsonl").read_bytes())
    for name, tell in DIALECTS.items():
        yield f"loan.{name}.jsonl", json.dumps(request(*tell())).encode()
    for name, make in (*EXPORTS.items(), *TRANSCRIPTS.items()):
        yield f"export.{name}", make()


def request(spans: list[Span], logs: list[LogRecord]) -> Json:
    """Spans and log records as one OTLP request in JSON."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _pairs(span.resource)},
                "scopeSpans": [{"scope": {"name": span.scope, "version": span.scope_version}, "spans": [_span(span)]}],
            }
            for span in spans
        ],
        "resourceLogs": [
            {
                "scopeLogs": [
                    {
                        "logRecords": [
                            {
                                "traceId": log.trace_id,
                                "spanId": log.span_id,
                                "timeUnixNano": str(log.time_ns),
                                "eventName": log.event_name,
                                "body": _value(log.body),
                                "attributes": _pairs(log.attributes),
                            }
                            for log in logs
                        ]
                    }
                ]
            }
        ],
    }


def _span(span: Span) -> Json:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id or "",
        "name": span.name,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns or 0),
        "status": {"code": ["unset", "ok", "error"].index(span.status), "message": span.status_message},
        "attributes": _pairs(span.attributes),
        "events": [
            {"name": event.name, "timeUnixNano": str(event.time_ns), "attributes": _pairs(event.attributes)}
            for event in span.events
        ],
        "links": [
            {"traceId": link.trace_id, "spanId": link.span_id, "attributes": _pairs(link.attributes)}
            for link in span.links
        ],
    }


def _pairs(values: Json) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Json) -> Json:
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _pairs(value)}}
    return {"stringValue": str(value)}
