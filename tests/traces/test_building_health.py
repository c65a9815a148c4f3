"""What had to be guessed, cut or done without is said."""

import json

import pytest

from evalagent.model import Json
from evalagent.traces.building import build
from tests.traces.loans import GENAI, genai, span
from tests.traces.spans import AGENT, answers, asks, chat, codes, only, pairs, places, said, step, tool


def test_a_missing_root_is_said_and_costs_no_edge() -> None:
    spans, _ = genai()
    trace = only(spans[1:])
    assert codes(trace) == ["orphan_span", "missing_root"]
    assert 0.8 < trace.quality < 1
    assert pairs(trace) == {("2", "3"), ("3", "4"), ("4", "5"), ("5", "6")}


def test_spans_that_are_each_others_parents_are_cut_and_said() -> None:
    trace = only([chat(2, 3, 0, 9, [said("a", "user")], said("b")), chat(3, 2, 1, 5, [said("c", "user")], said("d"))])
    assert "span_cycle" in codes(trace)
    assert places(build([chat(2, 2, 0, 9, [], None)])) == 1


def test_json_that_was_cut_is_no_fault_of_the_agent() -> None:
    trace = only(
        [tool(3, None, "renew", 0, 5, attributes={"gen_ai.tool.call.arguments": '{"loan": "L-7", "weeks": 3, "no'})]
    )
    assert codes(trace) == ["truncated_json"]
    assert trace.health[0].step_id == f"{3:016x}"
    assert trace.steps[0].arguments == '{"loan": "L-7", "weeks": 3, "no'


def test_messages_that_were_cut_keep_what_stands_before_the_cut() -> None:
    whole = json.dumps(GENAI[:4])
    trace = only([chat(2, None, 0, 5, [], None, attributes={"gen_ai.input.messages": whole[:-30]})])
    messages = trace.steps[0].messages
    assert [m.role for m in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[-1].requests[0].truncated
    assert trace.steps[0].truncated


def test_spans_without_any_step_are_an_error_only_if_nothing_else_has_steps() -> None:
    http = span(1, None, "GET /", 0, 5, trace="7b" * 16)
    (alone,) = build([http]).traces
    assert [(f.code, f.severity) for f in alone.health] == [("no_agent_steps", "error")]
    assert alone.quality == 0
    beside = next(t for t in build([http, *genai()[0]]).traces if not t.steps)
    assert [(f.code, f.severity) for f in beside.health] == [("no_agent_steps", "info")]


def test_odd_spans_are_named_in_health() -> None:
    trace = only(
        [
            tool(2, None, "a", 5, 1, None, {}, "x"),
            tool(3, None, "b", 6, None, None, {}, "y", dropped_attributes=3),
            span(4, None, "strange", 7, 8, {"llm.something": 1}),
        ]
    )
    assert codes(trace) == ["negative_duration", "attribute_limit", "unknown_dialect"]
    assert step(trace, 3).end_ns is None


def test_a_price_is_known_counted_with_the_cache_or_not_given() -> None:
    usage = {"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 100}

    def cost(model: str, prices: dict[str, Json] | None = None, **more: Json) -> float | None:
        (trace,) = build(
            [chat(2, None, 0, 5, [], None, attributes={**usage, "gen_ai.request.model": model, **more})], (), prices
        ).traces
        return trace.steps[0].cost_usd

    assert cost("gpt-4o-mini-2024-07-18") == pytest.approx(0.00021)
    assert cost("us.anthropic.claude-sonnet-4-5-20250929-v1:0") == pytest.approx(0.0045)
    assert cost("gpt-4o", **{"gen_ai.usage.cache_read.input_tokens": 400}) == pytest.approx(0.0030)
    assert cost("claude-haiku-4-5", **{"gen_ai.usage.cache_read.input_tokens": 400}) == pytest.approx(0.00114)
    apart = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
    assert cost(apart, **{"gen_ai.usage.cache_read.input_tokens": 400}) == pytest.approx(0.00154)
    assert cost("our-own-model") is None
    assert cost("our-own-model", {"our-own-model": {"input": 1, "output": 10}}) == pytest.approx(0.002)


def test_tokens_that_only_a_crew_knows_are_counted_once_and_said_to_be_coarse() -> None:
    crew = {
        "traceloop.span.kind": "workflow",
        "crewai.crew.token_usage": "total_tokens=50 prompt_tokens=40 cached_prompt_tokens=3 completion_tokens=10",
    }
    trace = only(
        [
            span(1, None, "crewai.workflow", 0, 50, AGENT | crew),
            span(2, 1, "A.agent", 1, 20, AGENT | {"traceloop.span.kind": "agent", "gen_ai.agent.name": "A"}),
            span(3, 1, "B.agent", 21, 40, AGENT | {"traceloop.span.kind": "agent", "gen_ai.agent.name": "B"}),
        ]
    )
    assert [s.tokens and (s.tokens.input, s.tokens.output) for s in trace.steps] == [None, (40, 10)]
    assert codes(trace) == ["tokens_unknown"]


def test_deep_and_long_traces_need_no_recursion() -> None:
    nested = [span(n, n - 1 if n > 1 else None, "n", n / 1000, 9000 - n / 1000) for n in range(1, 5001)]
    nested.append(chat(5001, 5000, 10, 20, [said("deep", "user")], said("down")))
    trace = only(nested)
    assert [s.kind for s in trace.steps] == ["llm"]
    spans, history = [span(1, None, "d", 0, 10**6, AGENT)], [said("go", "user")]
    for turn in range(400):
        ask = asks((f"c{turn}", "look", {"n": turn}))
        spans.append(chat(2 * turn + 2, 1, 10 * turn, 10 * turn + 4, history, ask))
        spans.append(
            tool(2 * turn + 3, 1, "look", 10 * turn + 5, 10 * turn + 9, f"c{turn}", {"n": turn}, f"got {turn}")
        )
        history = [*history, ask, answers((f"c{turn}", f"got {turn}"))]
    trace = only(spans)
    assert len(pairs(trace)) == 799
    assert max(len(s.input) for s in trace.steps if s.kind == "llm") == 2
