"""The same run read from every wire format, and what becomes of bad content."""

import gzip
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import zstandard

from evalagent.model import Json, Span
from evalagent.traces.reading import Reading, read

HERE = Path(__file__).parent / "readers"
RUN = (HERE / "renewal.otlp.jsonl").read_bytes()
REQUESTS = [json.loads(line) for line in RUN.splitlines()]


def golden(name: str) -> list[Json]:
    return json.loads((HERE / name).read_text())


def told(reading: Reading) -> list[Json]:
    """Spans as a golden file holds them, in the order of their ids."""
    spans = sorted(reading.spans, key=lambda span: (span.trace_id, span.span_id))
    return json.loads(json.dumps([asdict(span) for span in spans]))


def the_run(data: bytes, format: str = "auto") -> Reading:
    """The reading of a file that must hold the golden run and nothing bad."""
    reading = read(data, "run", format)
    assert reading.rejected == ()
    assert told(reading) == golden("renewal.spans.json")
    return reading


def lines(requests: list[Json]) -> bytes:
    return b"".join(json.dumps(request).encode() + b"\n" for request in requests)


def changed(change: Callable[[str, Json], Json], value: Json, key: str = "") -> Json:
    """The value with `change(key, leaf)` in place of each leaf."""
    if isinstance(value, dict):
        return {name: changed(change, inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [changed(change, inner, key) for inner in value]
    return change(key, value)


def renamed(names: dict[str, str], value: Json) -> Json:
    if isinstance(value, dict):
        return {names.get(key, key): renamed(names, inner) for key, inner in value.items()}
    return [renamed(names, inner) for inner in value] if isinstance(value, list) else value


def spans_of(request: Json) -> list[Json]:
    return request["resourceSpans"][0]["scopeSpans"][0]["spans"]


# --- one run, many spellings -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "format"),
    [
        ("renewal.otlp.jsonl", "otlp"),
        ("renewal.tempo.json", "tempo"),
        ("renewal.jaeger.json", "jaeger"),
        ("renewal.cloudwatch.jsonl", "otlp"),
    ],
)
def test_every_wire_format_gives_the_same_spans(file: str, format: str) -> None:
    data = (HERE / file).read_bytes()
    assert the_run(data).format == format
    the_run(data, format)


@pytest.mark.parametrize("file", ["renewal.console.json", "renewal.sdk.json"])
def test_dumps_of_an_sdk_give_the_same_spans_but_for_the_scope_that_they_do_not_hold(file: str) -> None:
    reading = read((HERE / file).read_bytes(), file)
    scoped = tuple(replace(span, scope="desk.tracing", scope_version="3") for span in reading.spans)
    assert (reading.format, reading.rejected) == ("sdk", ())
    assert told(replace(reading, spans=scoped)) == golden("renewal.spans.json")


def test_a_request_may_be_pretty_printed_listed_or_follow_another_without_a_line_end() -> None:
    the_run("\n".join(json.dumps(request, indent=2) for request in REQUESTS).encode())
    the_run("".join(json.dumps(request, indent=0) for request in REQUESTS).encode())
    the_run(json.dumps(REQUESTS).encode())
    the_run(json.dumps(REQUESTS, indent="\t").encode())
    the_run(b"[\n" + b",\n".join(RUN.splitlines()) + b"\n]")
    the_run(b"".join(RUN.splitlines()))


def test_byte_order_marks_line_ends_and_utf16_are_no_content() -> None:
    the_run(b"\xef\xbb\xbf" + RUN.replace(b"\n", b"\r\n") + b"\r\n\r\n")
    the_run(RUN.decode().encode("utf-16"))
    the_run(b"".join(b"\xef\xbb\xbf" + line + b"\n" for line in RUN.splitlines()))


def test_packed_files_are_told_by_their_first_bytes() -> None:
    the_run(gzip.compress(RUN))
    the_run(gzip.compress(RUN.splitlines()[0] + b"\n") + gzip.compress(RUN.splitlines()[1]))
    the_run(zstandard.compress(RUN))
    frames = [zstandard.compress(line) for line in RUN.splitlines()]
    the_run(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))


def test_proto_names_and_the_names_from_before_2021_are_taken() -> None:
    snake = {
        "resourceSpans": "resource_spans", "scopeSpans": "scope_spans", "traceId": "trace_id", "spanId": "span_id",
        "parentSpanId": "parent_span_id", "startTimeUnixNano": "start_time_unix_nano",
        "endTimeUnixNano": "end_time_unix_nano", "timeUnixNano": "time_unix_nano", "stringValue": "string_value",
        "intValue": "int_value", "boolValue": "bool_value", "doubleValue": "double_value",
    }  # fmt: skip
    the_run(lines(renamed(snake, REQUESTS)))
    the_run(lines(renamed({"scopeSpans": "instrumentationLibrarySpans", "scope": "instrumentationLibrary"}, REQUESTS)))


def test_parts_of_a_request_and_wrapped_requests_are_taken() -> None:
    the_run(lines([request["resourceSpans"][0] for request in REQUESTS]))
    the_run(lines([{"trace": request} for request in REQUESTS]))
    the_run(lines([{"result": {"batches": request["resourceSpans"]}} for request in REQUESTS]))
    documents = (HERE / "renewal.cloudwatch.jsonl").read_text().splitlines()
    the_run(json.dumps({"events": [{"timestamp": 1, "message": text} for text in documents]}).encode())


def hexed(spelling: Callable[[bytes], Json]) -> Callable[[str, Json], Json]:
    return lambda key, leaf: (
        spelling(bytes.fromhex(leaf)) if key.lower().endswith("spanid") or key == "traceId" else leaf
    )


@pytest.mark.parametrize("spelling", ["upper", "base64", "0x", "number", "decimal", "uuid"])
def test_ids_may_be_spelled_in_many_ways(spelling: str) -> None:
    import base64
    import uuid

    spell: dict[str, Callable[[bytes], Json]] = {
        "upper": lambda raw: raw.hex().upper(),
        "base64": lambda raw: base64.b64encode(raw).decode(),
        "0x": lambda raw: "0x" + raw.hex(),
        "number": lambda raw: int.from_bytes(raw, "big"),
        "decimal": lambda raw: str(int.from_bytes(raw, "big")),
        "uuid": lambda raw: str(uuid.UUID(bytes=raw)) if len(raw) == 16 else raw.hex(),
    }
    the_run(lines(changed(hexed(spell[spelling]), REQUESTS)))


def test_numbers_may_be_text_and_enums_names() -> None:
    def numbers(key: str, leaf: Json) -> Json:
        return int(leaf) if key.endswith("UnixNano") or key == "intValue" else leaf

    def names(key: str, leaf: Json) -> Json:
        return ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"][leaf] if key == "code" else leaf

    the_run(lines(changed(numbers, REQUESTS)))
    the_run(lines(changed(names, REQUESTS)))
    the_run(lines(changed(lambda key, leaf: str(leaf) if key == "code" else leaf, REQUESTS)))


def test_a_parent_id_of_zeros_is_no_parent_and_unknown_fields_are_passed_over() -> None:
    requests = changed(lambda key, leaf: leaf or "0" * 16 if key == "parentSpanId" else leaf, REQUESTS)
    requests[0]["later"] = {"version": 9}
    spans_of(requests[0])[0]["mood"] = "good"
    the_run(lines(requests))


# --- values ----------------------------------------------------------------------------------------


def span_with(attributes: Json, **fields: Json) -> Span:
    raw = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "name": "x",
        "startTimeUnixNano": "5",
        "attributes": attributes,
        **fields,
    }
    reading = read(lines([{"resourceSpans": [{"scopeSpans": [{"spans": [raw]}]}]}]), "f")
    assert reading.rejected == ()
    return reading.spans[0]


def test_values_that_are_no_number_are_not_known_and_bytes_and_lists_are_kept() -> None:
    values = {
        "nan": {"doubleValue": "NaN"}, "infinite": {"doubleValue": "-Infinity"}, "null": {"doubleValue": None},
        "empty": {}, "bytes": {"bytesValue": "AP+A"}, "text": {"doubleValue": "2.5"}, "absent": None,
        "list": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "a"}, {}]}},
        "map": {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}},
        "big": {"intValue": str(1 << 70)}, "none": {"arrayValue": {}},
    }  # fmt: skip
    span = span_with([{"key": key, "value": value} for key, value in values.items()])
    assert span.attributes == {
        "nan": None, "infinite": None, "null": None, "empty": None, "bytes": "AP+A", "text": 2.5, "absent": None,
        "list": [1, "a", None], "map": {"k": True}, "big": str(1 << 70), "none": [],
    }  # fmt: skip


def test_a_bad_attribute_costs_itself_alone_and_is_counted_as_dropped() -> None:
    good = {"key": "a", "value": {"stringValue": "1"}}
    span = span_with([good, "bad", {"value": {}}, {"key": 7, "value": {}}], droppedAttributesCount=2)
    assert dict(span.attributes) == {"a": "1"}
    assert span.dropped_attributes == 5


def test_of_two_attributes_with_one_key_the_last_wins() -> None:
    assert span_with([{"key": "k", "value": {"stringValue": text}} for text in "ab"]).attributes == {"k": "b"}


def test_values_nested_too_deeply_become_text() -> None:
    value: Json = {"stringValue": "core"}
    for _ in range(90):
        value = {"arrayValue": {"values": [value]}}
    found = span_with([{"key": "deep", "value": value}]).attributes["deep"]
    depth = 0
    while isinstance(found, list):
        found, depth = found[0], depth + 1
    assert depth < 65
    assert "core" in found


def test_a_span_without_an_end_or_with_senseless_times_stays() -> None:
    assert span_with([], endTimeUnixNano="0").end_ns is None
    assert span_with([], endTimeUnixNano="soon").end_ns is None
    assert span_with([], startTimeUnixNano=-4, endTimeUnixNano=9).start_ns == 9
    assert span_with([], endTimeUnixNano="9" * 60).end_ns is None


def test_a_span_without_ids_gets_one_from_its_content() -> None:
    raw = {"name": "lost", "attributes": []}
    data = lines([{"resourceSpans": [{"scopeSpans": [{"spans": [raw, {**raw, "name": "other"}, raw]}]}]}])
    first, other, again = read(data, "f").spans
    assert first == again
    assert first.span_id != other.span_id
    assert first.trace_id == other.trace_id


def test_lone_surrogates_escaped_nulls_and_broken_utf8_are_replaced_and_nothing_else_changes() -> None:
    line = (
        rb'{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"b","name":"a\ud800 \ud83d\ude00 \\ud800 \u0000'
        + b"\xff"
    )
    reading = read(line + b'"}]}]}]}', "f")
    assert reading.spans[0].name == "a\ufffd \U0001f600 \\ud800 \0\ufffd"
    json.dumps(reading.spans[0].name, ensure_ascii=False).encode()


def test_python_spellings_of_numbers_and_huge_integers_are_taken() -> None:
    line = b'{"spans":[{"traceId":1,"spanId":2,"attributes":{"a":NaN,"b":-Infinity,"c":%s}}]}'
    (span,) = read(line % (b"9" * 6000), "f").spans
    assert (span.attributes["a"], span.attributes["b"]) == (None, None)
    assert span.attributes["c"] == "9" * 6000
    assert span.trace_id == "0" * 31 + "1"


# --- logs and transcripts --------------------------------------------------------------------------


def test_log_records_keep_their_event_body_and_span() -> None:
    reading = read((HERE / "renewal.logs.jsonl").read_bytes(), "logs")
    event, plain = reading.logs
    assert event.event_name == "gen_ai.user.message"
    assert event.body == {"content": "Renew B-7.", "tags": [1, True]}
    assert event.span_id == "00f067aa0ba902b2"
    assert (plain.event_name, plain.body, plain.trace_id) == ("desk.start", "started", "")
    assert plain.time_ns == 1750000000012000000


def test_spans_and_log_records_may_share_a_file() -> None:
    reading = read(RUN + (HERE / "renewal.logs.jsonl").read_bytes(), "both")
    assert (len(reading.spans), len(reading.logs), reading.lines_in) == (4, 2, 3)


def test_a_log_document_of_agentcore_is_no_span() -> None:
    document = {
        "traceId": "a" * 32, "spanId": "b" * 16, "timeUnixNano": 7, "observedTimeUnixNano": 8, "severityNumber": 9,
        "body": {"input": {"messages": [{"role": "user", "content": "hi"}]}}, "attributes": {"event.name": "strands"},
    }  # fmt: skip
    reading = read(json.dumps(document).encode(), "f")
    assert reading.spans == ()
    assert reading.logs[0].body == document["body"]
    assert reading.logs[0].event_name == "strands"


@pytest.mark.parametrize("name", ["chat.openai.json", "chat.anthropic.jsonl"])
def test_a_transcript_becomes_the_spans_of_an_agent(name: str) -> None:
    reading = read((HERE / name).read_bytes(), name, "messages")
    assert reading.rejected == ()
    assert told(reading) == golden(name.rsplit(".", 1)[0] + ".spans.json")


def test_transcripts_have_the_same_ids_in_every_file_and_repeats_are_runs_of_their_own() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    alone = read(json.dumps(messages).encode(), "a").spans
    assert read(json.dumps({"messages": messages}).encode(), "b").spans == alone
    assert read("\n".join(map(json.dumps, messages)).encode(), "c").spans == alone
    twice = read(json.dumps([messages, messages]).encode(), "d").spans
    assert twice[:2] == alone
    assert len({span.trace_id for span in twice}) == 2


def test_items_of_the_responses_api_are_messages() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Renew B-7."}]},
        {"type": "function_call", "call_id": "c1", "name": "renew_loan", "arguments": '{"book": "B-7"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ]
    spans = read(json.dumps(items).encode(), "f").spans
    assert [span.name for span in spans] == ["invoke_agent", "chat", "execute_tool renew_loan", "chat"]
    assert spans[2].attributes["gen_ai.tool.call.result"] == "done"
