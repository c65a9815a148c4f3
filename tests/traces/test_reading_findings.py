"""What fuzzing found, one test for each kind: the smallest input that showed it."""

import json

import pytest

from evalagent.adapters.files import dump
from evalagent.model import Json
from evalagent.rows import step_rows
from evalagent.traces.building import build
from evalagent.traces.reading import read
from fuzz.laws import hold
from fuzz.seeds import request
from tests.traces.loans import DIALECTS, span


def test_one_id_that_is_a_large_float_does_not_take_the_rest_of_its_request_along() -> None:
    told = request(*DIALECTS["genai in log records"]())
    told["resourceSpans"][2]["scopeSpans"][0]["spans"][0]["traceId"] = 1e15
    data = json.dumps(told).encode()
    hold(data)
    reading = read(data, "f")
    assert len(reading.spans) + len(reading.logs) + len(reading.rejected) == 6 + 15
    assert len(reading.rejected) == 1


@pytest.mark.parametrize("count", [10**39, 1 << 64, -1, 1e300, "9" * 30, "-4"])
def test_a_token_count_that_fits_no_column_is_unknown(count: Json) -> None:
    spans, _ = DIALECTS["langfuse"]()
    spans[1].attributes["langfuse.observation.usage_details"] = json.dumps({"input": count, "output": 9})  # type: ignore[index]
    built = build(spans)
    (tokens,) = [step.tokens for step in built.traces[0].steps if step.step_id == spans[1].span_id]
    assert tokens is not None
    assert (tokens.input, tokens.output) == (None, 9)
    dump(list(step_rows(built.traces)))


@pytest.mark.parametrize("kind", [{}, {"a": 1}, [], 7, None, True])
def test_a_part_whose_type_is_no_text_raises_nothing(kind: Json) -> None:
    messages = [{"role": "user", "parts": [{"type": kind, "content": "Hi"}]}]
    told = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(messages)}
    (trace,) = build([span(1, None, "chat", 0, 1, told)]).traces
    assert [step.kind for step in trace.steps] == ["llm"]


@pytest.mark.parametrize("operation", [[], {}, ["chat"], 7, None, True])
def test_an_operation_that_is_no_text_raises_nothing(operation: Json) -> None:
    told = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "desk"}
    assert len(build([span(1, None, "chat", 0, 1, told)]).traces) == 1


def test_half_a_surrogate_pair_beside_an_id_that_is_too_large_is_replaced_too() -> None:
    line = b'{"spans":[{"traceId":%d,"spanId":7,"name":"a\\ud800"}]}' % (1 << 100)
    hold(line)
    (one,) = read(line, "f").spans
    assert (one.trace_id, one.name) == (f"{1 << 100:032x}", "a\ufffd")


@pytest.mark.parametrize("data", [b"\x1e", b"\n\x1e\n", b"\xef\xbb\xbf\n\xef\xbb\xbf"])
def test_a_file_of_separators_alone_is_empty_and_says_so(data: bytes) -> None:
    assert [piece.reason for piece in read(data, "f").rejected] == ["the file is empty"]


def test_a_cost_below_nothing_is_not_known_as_told() -> None:
    spans, _ = DIALECTS["langfuse"]()
    for one in spans[1:4]:
        one.attributes["langfuse.observation.cost_details"] = json.dumps({"total": -0.5})  # type: ignore[index]
    costs = [step.cost_usd for step in build(spans).traces[0].steps if step.kind == "llm"]
    assert all(cost is not None and cost > 0 for cost in costs), "from the tokens, since the model's price is known"


def test_a_result_that_is_read_in_the_tool_s_own_trace_is_joined_within_it_wherever_it_was_asked_for() -> None:
    call = {"id": "call_1", "name": "find_loan", "arguments": '{"title": "Dune"}'}
    asked = {f"gen_ai.completion.0.tool_calls.0.{key}": value for key, value in call.items()}
    told = {f"gen_ai.prompt.2.tool_calls.0.{key}": value for key, value in call.items()}
    answer = {"gen_ai.prompt.3.role": "tool", "gen_ai.prompt.3.tool_call_id": "call_1"}
    spans = [
        span(3, 1, "openai.chat", 10, 20, {"gen_ai.request.model": "m", **asked}, trace="05" * 16),
        span(3, 1, "find_loan.tool", 21, 29, {
            "traceloop.span.kind": "tool", "traceloop.entity.input": '{"args": [], "kwargs": {"title": "Dune"}}',
        }),
        span(1, 1, "openai.chat", 30, 40, {
            "gen_ai.request.model": "m", "gen_ai.prompt.2.role": "assistant", **told, **answer,
            "gen_ai.completion.0.tool_calls.0.arguments": "{}",
        }),
    ]  # fmt: skip
    hold(json.dumps(request(spans, [])).encode())
    home = next(trace for trace in build(spans).traces if trace.trace_id == spans[1].trace_id)
    reader = next(step for step in home.steps if step.kind == "llm")
    assert ("0000000000000003", "data", None) in {(edge.step_id, edge.via, edge.trace_id) for edge in reader.parents}
    assert all(edge.trace_id != home.trace_id for edge in reader.parents)


def test_a_double_that_is_written_as_a_huge_integer_is_a_float() -> None:
    value = {"key": "ms", "value": {"doubleValue": 10**39}}
    line = json.dumps({"spans": [{"traceId": 1 << 100, "spanId": 7, "attributes": [value]}]}).encode()
    hold(line)
    assert read(line, "f").spans[0].attributes == {"ms": 1e39}


def test_an_empty_page_is_no_fault_and_an_object_that_lists_something_else_is() -> None:
    for page in ({"data": [], "total": 0, "errors": None}, {"traces": [], "meta": {"cursor": None}}, {"data": {}}):
        assert read(json.dumps(page).encode(), "f").rejected == ()
    (piece,) = read(json.dumps({"traces": [], "steps": [{"name": "x"}]}).encode(), "f").rejected
    assert piece.reason == "no known shape of a trace: 'traces', 'steps'"
