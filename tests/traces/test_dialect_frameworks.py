"""Small runs of agents as frameworks and instrumentors really write them, with what must be read out of them.

`dialects/NAME.jsonl` is the run, `dialects/NAME.expected.json` its steps and the edges between them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evalagent.evaluating import examine, failing
from evalagent.model import Json, Span, Trace
from evalagent.traces.building import build
from evalagent.traces.reading import read
from tests.traces.spans import chat, only, said

FOLDER = Path(__file__).parent / "dialects"
RUNS = (
    "adk_v1_agent_as_tool",
    "adk_v1_loop",
    "adk_v2_confirmation",
    "adk_v2_parallel_calls",
    "adk_v2_transfer_and_back",
    "adk_v2_without_contents",
    "agent_framework_approval",
    "agent_framework_fan_out_and_in",
    "agent_framework_group_chat",
    "agent_framework_handoff",
    "agent_framework_responses",
    "agent_framework_without_contents",
    "agno_openinference_confirmation",
    "agno_openllmetry_lost_context",
    "agno_openllmetry_team",
    "autogen_openinference_stream",
    "azure_inference",
    "claude_code_detailed",
    "claude_code_logs",
    "codex_logs",
    "crewai_openinference_delegation",
    "crewai_openinference_events",
    "crewai_openllmetry_alone",
    "crewai_openllmetry_litellm",
    "gemini_cli_calls",
    "langfuse_langgraph_wait",
    "langsmith_langgraph_wait",
    "llama_index_openinference_handoff",
    "llama_index_openinference_react",
    "llama_index_openinference_retrieval",
    "llama_index_openllmetry_alone",
    "mastra_steps",
    "mlflow_stream",
    "openai_agents_genai_handoffs",
    "openai_agents_openinference_stream",
    "openai_agents_openllmetry_agent_as_tool",
    "openai_agents_openllmetry_handoffs",
    "openai_agents_v2_handoffs",
    "openai_agents_v2_parallel_calls",
    "openinference_js_langgraph",
    "openinference_langchain_echoes",
    "openllmetry_js_without_contents",
    "pydantic_ai_embedding",
    "pydantic_ai_fallback",
    "pydantic_ai_openinference_processor",
    "pydantic_ai_output_tool",
    "pydantic_ai_turns",
    "pydantic_ai_v1_events",
    "pydantic_ai_v2_output_function",
    "pydantic_ai_v4_approval",
    "pydantic_ai_v6_without_contents",
    "smolagents_code",
    "strands_latest_interrupt",
    "strands_openinference_processor",
    "strands_structured",
    "strands_swarm",
    "strands_v02_error",
    "vercel_v6_delegation",
    "vercel_v6_embedding",
    "vercel_v7_approval",
)


def told(traces: Sequence[Trace]) -> Json:
    """What a person checks of a run: steps in order, with what they were and what they depend on."""
    return [
        {
            "task": trace.task,
            "answer": trace.answer,
            "session": trace.session,
            "health": [finding.code for finding in trace.health],
            "containers": sorted(f"{c.kind} {c.name}" for c in trace.containers),
            "ignored": sorted(trace.ignored.values()),
            "steps": [
                {
                    "id": _short(step.step_id),
                    "what": f"{step.kind} {step.name}",
                    "agent": step.agent,
                    "after": [
                        f"{_short(e.step_id)} {e.via}" + ("" if e.trace_id in (None, trace.trace_id) else " afar")
                        for e in step.parents
                    ],
                    **({"tokens": [step.tokens.input, step.tokens.output]} if step.tokens else {}),
                    **({"arguments": step.arguments} if step.arguments is not None else {}),
                    **({"result": step.result} if step.result is not None else {}),
                    **({"error": step.error} if step.error else {}),
                    **({"twins": len(step.span_ids) - 1} if len(step.span_ids) > 1 else {}),
                    **({} if step.executed else {"executed": False}),
                }
                for step in trace.steps
            ],
        }
        for trace in traces
    ]


def _short(step_id: str) -> str:
    return step_id.lstrip("0")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_a_framework_is_read_as_its_expectation_says(name: str) -> None:
    reading = read((FOLDER / f"{name}.jsonl").read_bytes(), f"{name}.jsonl")
    assert not reading.rejected
    traces = build(reading.spans, reading.logs).traces
    assert told(traces) == json.loads((FOLDER / f"{name}.expected.json").read_text())
    kept = sum(sum(len(s.span_ids) for s in t.steps) + len(t.containers) + len(t.ignored) for t in traces)
    assert kept == len(reading.spans)


def cut(span: Span, size: int) -> Span:
    """The span as a limit on the length of attribute values leaves it."""

    def short(values: Mapping[str, Json]) -> dict[str, Json]:
        return {key: value[:size] if isinstance(value, str) else value for key, value in values.items()}

    events = tuple(replace(event, attributes=short(event.attributes)) for event in span.events)
    return replace(span, attributes=short(span.attributes), events=events)


@pytest.mark.parametrize("size", [64, 120, 256])
@pytest.mark.parametrize("name", RUNS)
def test_what_a_length_limit_cut_off_is_never_held_against_the_agent(name: str, size: int) -> None:
    spans = read((FOLDER / f"{name}.jsonl").read_bytes(), f"{name}.jsonl").spans
    whole = {finding.code for trace in build(spans).traces for finding in failing(examine(trace))}
    left = {
        finding.code
        for trace in build([cut(span, size) for span in spans]).traces
        for finding in failing(examine(trace))
    }
    assert left <= whole


def test_what_pydantic_ai_says_that_a_call_cost_is_what_it_cost() -> None:
    given = {"attributes": {"operation.cost": 0.0125, "model_request_parameters": "{}"}}
    trace = only([chat(1, None, 0, 1, [said("hi", "user")], said("hello"), **given)])
    assert [(s.dialect, s.cost_usd) for s in trace.steps] == [("pydantic_ai", 0.0125)]
