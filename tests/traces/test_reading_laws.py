"""Laws of reading: nothing raises, order and packing change nothing, protobuf and JSON say the same."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import orjson
from google.protobuf import json_format
from google.protobuf.internal.encoder import _VarintBytes
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from evalagent.traces.formats import FORMATS
from evalagent.traces.otlp_protobuf import MalformedProtobuf, decode
from evalagent.traces.reading import Reading, read

HERE = Path(__file__).parent / "readers"
FILES = sorted(path for path in HERE.iterdir() if ".spans." not in path.name)
INPUTS = [path.read_bytes() for path in FILES]

NAMES = [
    "resourceSpans", "scopeSpans", "spans", "resource", "attributes", "traceId", "spanId", "parentSpanId",
    "startTimeUnixNano", "endTimeUnixNano", "status", "code", "events", "links", "key", "value", "stringValue",
    "intValue", "arrayValue", "kvlistValue", "values", "batches", "data", "traceID", "spanID", "processes",
    "references", "tags", "logs", "fields", "startTime", "duration", "context", "trace_id", "span_id", "parent",
    "start_time", "child_spans", "span_name", "messages", "role", "content", "tool_calls", "function", "name",
    "arguments", "type", "text", "resourceLogs", "scopeLogs", "logRecords", "body", "events", "message", "trace",
    "result", "span_attributes", "description", "id", "input", "tool_use_id", "is_error", "tool_call_id", "system",
    "tools", "usage", "model", "process", "refType", "call_id", "output", "summary", "parts", "span_kind",
    "attributes.x", "instrumentation_scope", "scope",
]  # fmt: skip
KEYS = st.sampled_from(NAMES)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["assistant", "user", "tool", "tool_use", "tool_result", "CHILD_OF", "ab" * 16, "cd" * 8, "text"]),
)  # fmt: skip
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=16
)


def sound(reading: Reading) -> None:
    """What must hold of a reading whatever was read: writable as JSON, and each rejection named."""
    for found in (*reading.spans, *reading.logs):
        orjson.dumps(asdict(found))
    for span in reading.spans:
        assert len(span.trace_id) == 32
        assert len(span.span_id) == 16
        assert span.parent_id is None or len(span.parent_id) == 16
        assert span.end_ns is None or span.end_ns > 0
    for piece in reading.rejected:
        assert piece.line >= 0
        assert piece.reason
        piece.reason.encode()


def bag(*readings: Reading) -> Counter[str]:
    return Counter(repr(found) for reading in readings for found in (*reading.spans, *reading.logs))


@given(st.binary(max_size=400), st.sampled_from(["", "\x1f\x8b", "(\xb5/\xfd", "\n", "{", "\xff\xfe"]))
@settings(max_examples=80, deadline=None)
def test_no_bytes_make_it_raise(data: bytes, opening: str) -> None:
    reading = read(opening.encode("latin-1") + data, "f")
    sound(reading)
    empty = not (opening.encode("latin-1") + data).strip(b"{}[] \t\r\n")
    assert reading.spans or reading.logs or reading.rejected or empty or reading.format == "otlp"


@given(JSON, st.sampled_from(sorted(FORMATS)))
@settings(max_examples=150, deadline=None)
def test_no_json_makes_it_raise(value: object, format: str) -> None:
    sound(read(json.dumps(value).encode(), "f", format))


@given(st.sampled_from(INPUTS), st.data())
@settings(max_examples=60, deadline=None)
def test_no_damage_makes_it_raise_or_lose_its_tongue(data: bytes, draw: st.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 6))):
        start = draw.draw(st.integers(0, len(damaged)))
        damaged[start : start + draw.draw(st.integers(0, 40))] = draw.draw(st.binary(max_size=6))
    sound(read(bytes(damaged), "f"))


@given(st.permutations(range(6)), st.lists(st.booleans(), min_size=6, max_size=6))
@settings(max_examples=40, deadline=None)
def test_order_splitting_and_joining_change_no_span(order: list[int], cuts: list[bool]) -> None:
    requests = [line for path in ("renewal.otlp.jsonl", "renewal.logs.jsonl", "renewal.cloudwatch.jsonl")
                for line in (HERE / path).read_bytes().splitlines()]  # fmt: skip
    whole = read(b"\n".join(requests), "f")
    pieces, piece = [], b""
    for place, cut in zip(order, cuts, strict=True):
        piece += requests[place] + b"\n"
        if cut:
            pieces.append(piece)
            piece = b""
    rest = [requests[place] for place in range(len(requests)) if place not in order]
    readings = [read(text, "f") for text in [*pieces, piece + b"\n".join(rest)] if text]
    assert bag(*readings) == bag(whole)
    assert sum(reading.lines_in for reading in readings) == whole.lines_in


# --- protobuf --------------------------------------------------------------------------------------

TEXT = st.text(max_size=12)
LABELS = st.text(min_size=1, max_size=12)
SCALARS = st.one_of(
    st.builds(AnyValue, string_value=TEXT),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, int_value=st.integers(-(1 << 63), (1 << 63) - 1)),
    st.builds(AnyValue, double_value=st.floats()),
    st.builds(AnyValue, bytes_value=st.binary(max_size=6)),
    st.builds(AnyValue),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda items: AnyValue(array_value=ArrayValue(values=items)), st.lists(inner, max_size=3)),
        st.builds(
            lambda items: AnyValue(
                kvlist_value=KeyValueList(values=[KeyValue(key=k, value=v) for k, v in items.items()])
            ),
            st.dictionaries(LABELS, inner, max_size=3),
        ),
    ),
    max_leaves=8,
)
ATTRIBUTES = st.dictionaries(LABELS, VALUES, max_size=4)
TIMES = st.integers(0, (1 << 63) - 1)


@st.composite
def trace_requests(draw: st.DrawFn) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    for _ in range(draw(st.integers(1, 2))):
        resource = request.resource_spans.add()
        fill(resource.resource.attributes, draw(ATTRIBUTES))
        scope = resource.scope_spans.add()
        scope.scope.name, scope.scope.version = draw(TEXT), draw(TEXT)
        for _ in range(draw(st.integers(1, 3))):
            span = scope.spans.add(
                trace_id=b"\1" + draw(st.binary(min_size=15, max_size=15)),
                span_id=b"\1" + draw(st.binary(min_size=7, max_size=7)),
                parent_span_id=draw(st.sampled_from([b"", b"\1" * 8])), name=draw(TEXT), kind=draw(st.integers(0, 5)),
                start_time_unix_nano=draw(TIMES), end_time_unix_nano=draw(TIMES),
                dropped_attributes_count=draw(st.integers(0, 9)), flags=draw(st.sampled_from([0, 1, 256])),
            )  # fmt: skip
            fill(span.attributes, draw(ATTRIBUTES))
            span.status.code, span.status.message = draw(st.integers(0, 2)), draw(TEXT)
            fill(span.events.add(name=draw(TEXT), time_unix_nano=draw(TIMES)).attributes, draw(ATTRIBUTES))
            fill(span.links.add(trace_id=b"\2" * 16, span_id=b"\3" * 8).attributes, draw(ATTRIBUTES))
    return request


def fill(attributes: object, values: dict[str, AnyValue]) -> None:
    attributes.extend(KeyValue(key=key, value=value) for key, value in values.items())  # type: ignore[attr-defined]


@given(trace_requests())
@settings(max_examples=30, deadline=None)
def test_protobuf_says_what_its_json_mapping_says(request: ExportTraceServiceRequest) -> None:
    binary = read(request.SerializeToString(), "f")
    assert binary.rejected == ()
    text = read(json.dumps(json_format.MessageToDict(request)).encode(), "f")
    assert binary.spans == text.spans
    assert binary.lines_in == 1


def small_trace(name: str = "x") -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    scope.spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, name=name, start_time_unix_nano=5)
    scope.spans.add(trace_id=b"\1" * 16, span_id=b"\3" * 8, name="second", start_time_unix_nano=6)
    return request


def small_logs() -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add(
        trace_id=b"\1" * 16, span_id=b"\2" * 8, time_unix_nano=9, event_name="gen_ai.choice"
    )  # fmt: skip
    record.body.string_value = "hello"
    return request


def test_a_binary_file_may_hold_many_requests_after_their_lengths() -> None:
    requests = [
        small_trace().SerializeToString(),
        small_logs().SerializeToString(),
        small_trace("z").SerializeToString(),
    ]
    for prefix in (_VarintBytes, lambda length: length.to_bytes(4, "big")):
        data = b"".join(prefix(len(request)) + request for request in requests)
        reading = read(data, "f")
        assert (len(reading.spans), len(reading.logs), reading.lines_in, reading.rejected) == (4, 1, 3, ())
        assert reading.logs[0].body == "hello"
        second = data.index(requests[1])
        bad = read(data[: second + 1] + b"\xff" * 3 + data[second + 4 :], "f")
        assert (len(bad.spans), [piece.line for piece in bad.rejected]) == (4, [2])
        tail = read(data + b"\xff" * 3, "f")
        assert (len(tail.spans), [piece.line for piece in tail.rejected]) == (4, [4])
        cut = read(data[:-3], "f")
        assert (len(cut.spans), [piece.line for piece in cut.rejected]) == (2, [3])


def test_metrics_in_protobuf_are_passed_over() -> None:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="gen_ai.client.token.usage", unit="1")
    metric.sum.data_points.add(as_int=3, time_unix_nano=4)
    reading = read(request.SerializeToString(), "f")
    assert (reading.spans, reading.logs, reading.rejected) == ((), (), ())


def test_broken_utf8_in_protobuf_costs_nothing_and_a_bad_span_only_itself() -> None:
    data = small_trace("AB").SerializeToString()
    broken = decode(data.replace(b"AB", b"A\xff"), "traces")
    assert broken.request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] == "A\ufffd"
    reading = read(data.replace(b"\x2a\x02AB", b"\x2a\x7fAB"), "f")
    assert [span.name for span in reading.spans] == ["second"]
    assert [piece.line for piece in reading.rejected] == [1]


def test_endless_nesting_in_protobuf_is_cut_and_not_followed() -> None:
    value = b"\x0a\x04core"
    for _ in range(5000):
        for tag in (b"\x0a", b"\x2a"):  # a value of a list, the list of a value
            value = tag + _VarintBytes(len(value)) + value
    attribute = b"\x0a\x01k\x12" + _VarintBytes(len(value)) + value
    span = b"\x0a\x10" + b"\1" * 16 + b"\x12\x08" + b"\2" * 8 + b"\x4a" + _VarintBytes(len(attribute)) + attribute
    for tag in (b"\x12", b"\x12", b"\x0a"):
        span = tag + _VarintBytes(len(span)) + span
    (found,) = read(span, "f").spans
    assert found.attributes["k"]
    orjson.dumps(asdict(found))


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_no_damage_to_protobuf_makes_it_raise_anything_else(data: st.DataObject) -> None:
    damaged = bytearray(small_trace().SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    sound(read(bytes(damaged), "f"))
    try:
        decode(bytes(damaged), "traces")
    except MalformedProtobuf as error:
        assert str(error)
