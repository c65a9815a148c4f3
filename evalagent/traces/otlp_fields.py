"""The messages of OTLP by field number, as opentelemetry-proto 1.x numbers them."""

from collections.abc import Mapping
from dataclasses import dataclass

from evalagent.model import Json


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: str
    """text, hex, base64, enum, number, int64, fixed64, double, bool, or the name of a message."""
    many: bool = False


MESSAGES: dict[str, dict[int, Field]] = {
    "traces": {1: Field("resourceSpans", "resource_spans", True)},
    "logs": {1: Field("resourceLogs", "resource_logs", True)},
    "resource_spans": {
        1: Field("resource", "resource"),
        2: Field("scopeSpans", "scope_spans", True),
        3: Field("schemaUrl", "text"),
    },
    "resource_logs": {
        1: Field("resource", "resource"),
        2: Field("scopeLogs", "scope_logs", True),
        3: Field("schemaUrl", "text"),
    },
    "resource": {1: Field("attributes", "key_value", True), 2: Field("droppedAttributesCount", "number")},
    "scope_spans": {1: Field("scope", "scope"), 2: Field("spans", "span", True), 3: Field("schemaUrl", "text")},
    "scope_logs": {
        1: Field("scope", "scope"),
        2: Field("logRecords", "log_record", True),
        3: Field("schemaUrl", "text"),
    },
    "scope": {
        1: Field("name", "text"),
        2: Field("version", "text"),
        3: Field("attributes", "key_value", True),
        4: Field("droppedAttributesCount", "number"),
    },
    "span": {
        1: Field("traceId", "hex"),
        2: Field("spanId", "hex"),
        3: Field("traceState", "text"),
        4: Field("parentSpanId", "hex"),
        5: Field("name", "text"),
        6: Field("kind", "enum"),
        7: Field("startTimeUnixNano", "fixed64"),
        8: Field("endTimeUnixNano", "fixed64"),
        9: Field("attributes", "key_value", True),
        10: Field("droppedAttributesCount", "number"),
        11: Field("events", "event", True),
        12: Field("droppedEventsCount", "number"),
        13: Field("links", "link", True),
        14: Field("droppedLinksCount", "number"),
        15: Field("status", "status"),
        16: Field("flags", "fixed32"),
    },
    "event": {
        1: Field("timeUnixNano", "fixed64"),
        2: Field("name", "text"),
        3: Field("attributes", "key_value", True),
        4: Field("droppedAttributesCount", "number"),
    },
    "link": {
        1: Field("traceId", "hex"),
        2: Field("spanId", "hex"),
        3: Field("traceState", "text"),
        4: Field("attributes", "key_value", True),
        5: Field("droppedAttributesCount", "number"),
        6: Field("flags", "fixed32"),
    },
    "status": {2: Field("message", "text"), 3: Field("code", "enum")},
    "log_record": {
        1: Field("timeUnixNano", "fixed64"),
        2: Field("severityNumber", "enum"),
        3: Field("severityText", "text"),
        5: Field("body", "any_value"),
        6: Field("attributes", "key_value", True),
        7: Field("droppedAttributesCount", "number"),
        8: Field("flags", "fixed32"),
        9: Field("traceId", "hex"),
        10: Field("spanId", "hex"),
        11: Field("observedTimeUnixNano", "fixed64"),
        12: Field("eventName", "text"),
    },
    "key_value": {1: Field("key", "text"), 2: Field("value", "any_value")},
    "any_value": {
        1: Field("stringValue", "text"),
        2: Field("boolValue", "bool"),
        3: Field("intValue", "int64"),
        4: Field("doubleValue", "double"),
        5: Field("arrayValue", "array_value"),
        6: Field("kvlistValue", "kvlist_value"),
        7: Field("bytesValue", "base64"),
    },
    "array_value": {1: Field("values", "any_value", True)},
    "kvlist_value": {1: Field("values", "key_value", True)},
}
ALONE = {"span", "log_record", "key_value", "event", "link"}
"""What may be bad without costing what holds it."""
WIRE = {"enum": 0, "number": 0, "int64": 0, "bool": 0, "fixed64": 1, "double": 1, "fixed32": 5}
ALWAYS: Mapping[str, dict[str, Json]] = {
    "span": {"traceId": "", "spanId": "", "parentSpanId": "", "name": "", "status": {}},
    "log_record": {"body": {}, "traceId": "", "spanId": ""},
    "key_value": {"key": "", "value": {}},
    "link": {"traceId": "", "spanId": ""},
    "resource_spans": {"resource": {}},
    "resource_logs": {"resource": {}},
    "scope_spans": {"scope": {}},
    "scope_logs": {"scope": {}},
}
"""Fields that a collector writes even where they are empty."""
