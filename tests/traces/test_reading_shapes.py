"""What is particular to one wire format: Jaeger's tags and references, dumps of SDKs, ids and times."""

import json

import pytest

from evalagent.model import Json, Span
from evalagent.traces.identifiers import any_time, nanoseconds, span_id, trace_id
from evalagent.traces.reading import read

TRACE, SPAN, OTHER = "ab" * 16, "cd" * 8, "ef" * 8


def only(value: Json, format: str = "auto") -> Span:
    reading = read(json.dumps(value).encode(), "f", format)
    assert reading.rejected == ()
    (span,) = reading.spans
    return span


def jaeger(tags: list[Json], **fields: Json) -> Span:
    span = {"traceID": TRACE, "spanID": SPAN, "operationName": "x", "startTime": "1750000000000001", "duration": 250}
    return only({"data": [{"traceID": TRACE, "spans": [{**span, "tags": tags, **fields}], "processes": {}}]})


def tag(key: str, value: Json, kind: str = "string") -> Json:
    return {"key": key, "type": kind, "value": value}


def test_jaeger_tags_keep_their_types_even_where_numbers_are_text() -> None:
    span = jaeger(
        [
            tag("n", "201", "int64"), tag("half", "0.5", "float64"), tag("yes", "true", "bool"),
            tag("no", False, "bool"),
            tag("text", "201"), tag("json", '{"a": 1}'), tag("object", {"a": [1]}), "bad", {"value": 1},
        ]
    )  # fmt: skip
    assert span.attributes == {
        "n": 201, "half": 0.5, "yes": True, "no": False, "text": "201", "json": '{"a": 1}', "object": {"a": [1]},
    }  # fmt: skip
    assert (span.start_ns, span.end_ns) == (1750000000000001000, 1750000000000251000)


@pytest.mark.parametrize(
    ("tags", "status"),
    [
        ([], "unset"),
        ([tag("error", True, "bool")], "error"),
        ([tag("error", "true")], "error"),
        ([tag("error", False, "bool")], "unset"),
        ([tag("otel.status_code", "OK"), tag("error", True, "bool")], "ok"),
        ([tag("otel.status_code", "ERROR")], "error"),
    ],
)
def test_jaeger_says_the_status_in_tags(tags: list[Json], status: str) -> None:
    span = jaeger([*tags, tag("otel.status_description", "why"), tag("internal.span.format", "otlp")])
    assert (span.status, span.status_message, span.attributes) == (status, "why", {})


def test_an_error_tag_with_a_text_is_an_attribute() -> None:
    assert jaeger([tag("error", "no such book")]).attributes == {"error": "no such book"}


def test_jaeger_references_are_the_parent_and_links() -> None:
    span = jaeger(
        [],
        references=[
            {"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "1"},
            {"refType": "CHILD_OF", "traceID": "9", "spanID": "2"},
            {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "3"},
            {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "4"},
        ],
    )
    assert span.parent_id == "0" * 15 + "3"
    assert [(link.trace_id[-1], link.span_id[-1]) for link in span.links] == [("b", "1"), ("9", "2"), ("b", "4")]


def test_a_jaeger_span_may_stand_alone_with_its_process() -> None:
    span = only(
        {
            "traceID": TRACE, "spanID": SPAN, "parentSpanID": OTHER, "operationName": "x", "startTime": 5,
            "tags": [tag("otel.library.name", "old.scope")], "tag": {"flat": 1},
            "process": {"serviceName": "desk", "tags": [tag("pid", "7", "int64")]},
        }
    )  # fmt: skip
    assert (span.parent_id, span.scope, span.end_ns) == (OTHER, "old.scope", None)
    assert span.resource == {"service.name": "desk", "pid": 7}
    assert span.attributes == {"flat": 1}


def test_one_bad_jaeger_span_costs_itself_alone() -> None:
    good = {"traceID": TRACE, "spanID": SPAN, "operationName": "x", "startTime": 1, "duration": 1}
    reading = read(json.dumps({"data": [{"traceID": TRACE, "spans": ["no", good], "processes": None}]}).encode(), "f")
    assert [span.name for span in reading.spans] == ["x"]
    assert len(reading.rejected) == 1


def test_phoenix_spans_are_read_as_objects_and_as_columns() -> None:
    columns = {
        "name": "llm", "span_kind": "LLM", "parent_id": OTHER, "context.trace_id": TRACE, "context.span_id": SPAN,
        "start_time": "2025-06-15T15:06:40.5+00:00", "end_time": "2025-06-15T15:06:41+00:00", "status_code": "ERROR",
        "status_message": "why", "attributes.llm.model_name": "tiny-1", "attributes.llm.token_count.prompt": 4,
        "attributes.llm.input_messages": [{"message.role": "user", "message.content": "hi"}],
        "attributes.tags": ["a"], "attributes.none": None,
    }  # fmt: skip
    span = only(columns, "openinference")
    assert (span.parent_id, span.status, span.status_message) == (OTHER, "error", "why")
    assert span.end_ns is not None
    assert span.end_ns - span.start_ns == 500_000_000
    assert span.attributes == {
        "llm.model_name": "tiny-1", "llm.token_count.prompt": 4, "tags": ["a"], "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi",
    }  # fmt: skip
    listed = {"context": {"trace_id": TRACE, "span_id": SPAN}, "name": "x", "span_kind": "TOOL", "attributes": {"a": 1}}
    assert only({"data": [listed]}).attributes == {"a": 1, "openinference.span.kind": "TOOL"}


def test_spans_that_hold_their_children_are_unfolded_without_recursion() -> None:
    def node(number: int, children: list[Json]) -> Json:
        return {
            "span_id": f"{number:016x}", "span_name": f"s{number}", "timestamp": "2025-06-15T15:06:40Z",
            "duration": "PT1.5S", "status_code": "Error", "span_attributes": {"n": "1"},
            "child_spans": children,
        }  # fmt: skip

    tree: list[Json] = [node(150, []), "no span"]
    for number in range(149, 0, -1):
        tree = [node(number, tree)]
    reading = read(json.dumps({"trace_id": TRACE, "spans": tree}).encode(), "f")
    assert [span.name for span in reading.spans] == [f"s{number}" for number in range(1, 151)]
    assert [span.parent_id for span in reading.spans[:3]] == [None, f"{1:016x}", f"{2:016x}"]
    assert {span.trace_id for span in reading.spans} == {TRACE}
    assert reading.spans[0].end_ns == reading.spans[0].start_ns + 1_500_000_000
    assert reading.spans[0].status == "error"
    assert len(reading.rejected) == 1


def test_log_records_of_the_console_are_no_spans() -> None:
    record = {
        "body": {"content": "hi"}, "severity_number": 9, "attributes": {"event.name": "gen_ai.user.message"},
        "timestamp": "2025-06-15T15:06:40.000001Z", "trace_id": "0x" + TRACE, "span_id": "0x" + SPAN,
    }  # fmt: skip
    (log,) = read(json.dumps(record, indent=4).encode(), "f").logs
    assert (log.trace_id, log.span_id, log.event_name, log.body) == (
        TRACE,
        SPAN,
        "gen_ai.user.message",
        {"content": "hi"},
    )
    assert log.time_ns == 1750000000000001000


def test_a_scopes_part_of_a_request_may_stand_alone() -> None:
    span = only({"scope": {"name": "desk"}, "spans": [{"traceId": TRACE, "spanId": SPAN, "name": "x"}]})
    assert (span.scope, span.name) == ("desk", "x")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("AB" * 16, TRACE),
        ("q6urq6urq6urq6urq6urqw==", TRACE),
        ("q6urq6urq6urq6urq6urqw", TRACE),
        ("0x" + "AB" * 16, TRACE),
        ("0x1", "0" * 31 + "1"),
        (int(TRACE, 16), TRACE),
        (str(int(TRACE, 16)), TRACE),
        ("abababab-abab-abab-abab-abababababab", TRACE),
        ("1f9762ca1e03e2d", "0" * 17 + "1f9762ca1e03e2d"),
        ("0" * 32, None), ("", None), ("0x", None), (None, None), (0, None), (True, None), (1 << 128, None), ([], None),
    ],
)  # fmt: skip
def test_trace_ids(value: Json, found: str | None) -> None:
    assert trace_id(value) == found


def test_ids_of_no_known_spelling_stay_equal_and_apart() -> None:
    assert span_id("step-1") == span_id("step-1") != span_id("step-2")
    assert len(span_id("step-1") or "") == 16
    assert span_id("////////////////") != span_id("+" * 16)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("1750000000000000001", 1750000000000000001),
        (1.75e18, 1750000000000000000),
        ("2025-06-15T15:06:40.000000001Z", 1750000000000000001),
        ("2025-06-15T17:06:40+02:00", 1750000000000000000),
        ([1750000000, 7], 1750000000000000007),
        ("2025-99-15T15:06:40Z", 0), ("soon", 0), (-1, 0), (1 << 64, 0), (None, 0), (True, 0), ([1], 0),
        (float("inf"), 0),
    ],
)  # fmt: skip
def test_times(value: Json, found: int) -> None:
    assert nanoseconds(value) == found


@pytest.mark.parametrize("value", [1750000000, 1750000000000, 1750000000000000, 1750000000000000000, 1750000000.0])
def test_times_of_no_declared_unit_are_told_by_their_size(value: Json) -> None:
    assert any_time(value) == 1750000000000000000


def test_an_id_in_the_form_of_x_ray_is_the_id_that_it_was_made_from() -> None:
    assert trace_id("1-5759e988-bd862e3fe1be46a994272793") == "5759e988bd862e3fe1be46a994272793"
    assert trace_id("1-5759e988-bd862e3fe1be46a99427279") != "5759e988bd862e3fe1be46a99427279"


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-03-01T09:00:00.000Z ",
        "2026-03-01T09:00:00 ",
        "2026-03-01T09:00:00.123456+00:00 otel-rt-logs ",
        "2026-03-01 09:00:00,5\t",
    ],
)
def test_the_time_and_stream_that_a_log_tool_writes_before_a_document_is_no_content(stamp: str) -> None:
    lines = [
        json.dumps({"traceId": TRACE, "spanId": f"{n:016x}", "name": f"{n}", "startTimeUnixNano": n}) for n in (1, 2)
    ]
    reading = read("".join(f"{stamp}{line}\n" for line in lines).encode(), "f")
    assert ([span.name for span in reading.spans], reading.rejected, reading.lines_in) == (["1", "2"], (), 2)


def test_zipkin_says_status_scope_and_events_in_tags_and_annotations() -> None:
    span = only(
        [
            {
                "traceId": TRACE, "id": SPAN, "parentId": OTHER, "name": "find", "timestamp": 1750000000000001,
                "duration": 250, "annotations": [{"timestamp": 1750000000000101, "value": "cache miss"}],
                "localEndpoint": {"serviceName": "desk"},
                "tags": {"error": "it broke", "otel.scope.name": "lib", "otel.scope.version": "2", "n": "5"},
            }
        ],
        "zipkin",
    )  # fmt: skip
    assert (span.parent_id, span.start_ns, span.end_ns) == (OTHER, 1750000000000001000, 1750000000000251000)
    assert (span.status, span.status_message) == ("error", "it broke")
    assert (span.scope, span.scope_version, span.resource) == ("lib", "2", {"service.name": "desk"})
    assert [(event.name, event.time_ns) for event in span.events] == [("cache miss", 1750000000000101000)]
    assert span.attributes == {"n": "5"}


@pytest.mark.parametrize(
    ("tags", "status"),
    [
        ({}, "unset"), ({"error": ""}, "error"), ({"error": "false"}, "unset"), ({"error": "true"}, "error"),
        ({"otel.status_code": "OK"}, "ok"), ({"otel.status_code": "ERROR", "error": "why"}, "error"),
    ],
)  # fmt: skip
def test_zipkin_s_error_tag_is_a_failure_unless_the_code_says_otherwise(tags: Json, status: str) -> None:
    assert only([{"traceId": TRACE, "id": SPAN, "duration": 1, "timestamp": 1, "tags": tags}]).status == status


def test_an_id_beyond_64_bits_is_exact_within_a_text_too() -> None:
    inner = json.dumps({"traceId": (1 << 100) + 1, "spanId": 7, "name": "x"})
    assert only({"events": [{"message": inner}]}).trace_id == f"{(1 << 100) + 1:032x}"
