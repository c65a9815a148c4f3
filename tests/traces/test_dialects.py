"""One run told in every dialect is one DAG."""

from itertools import pairwise

import pytest

from evalagent.model import Trace
from evalagent.traces.building import build
from tests.traces.loans import ANSWER, DIALECTS, FIND, FOUND, MODEL, RENEW, RENEWED, TASK, TOKENS, Told, genai


def trace_of(told: Told) -> Trace:
    (trace,) = build(*told).traces
    return trace


@pytest.fixture(params=DIALECTS, scope="module")
def trace(request: pytest.FixtureRequest) -> Trace:
    return trace_of(DIALECTS[request.param]())


def test_every_dialect_gives_the_same_steps_in_the_same_order(trace: Trace) -> None:
    assert [(step.kind, step.name) for step in trace.steps] == [
        ("llm", MODEL), ("tool", "find_loan"), ("llm", MODEL), ("tool", "renew_loan"), ("llm", MODEL),
    ]  # fmt: skip
    assert [step.step_id[-1] for step in trace.steps] == list("23456")


def test_every_dialect_gives_the_same_chain_with_evidence_for_each_edge(trace: Trace) -> None:
    edges = {(edge.step_id[-1], step.step_id[-1], edge.via) for step in trace.steps for edge in step.parents}
    assert edges == {("2", "3", "call"), ("3", "4", "data"), ("4", "5", "call"), ("5", "6", "data")}


def test_every_dialect_gives_the_same_arguments_and_results(trace: Trace) -> None:
    find, renew = (step for step in trace.steps if step.kind == "tool")
    assert find.arguments == FIND
    assert find.result == FOUND
    assert renew.arguments == RENEW
    assert renew.result in (RENEWED, {"result": RENEWED})


def test_every_dialect_joins_request_run_and_answer(trace: Trace) -> None:
    found = [(s.request_step, s.answered_in, s.executed, s.virtual) for s in trace.steps if s.kind == "tool"]
    ids = [step.step_id for step in trace.steps]
    assert [(f[0], f[1][:1]) for f in found] == [(ids[0], (ids[2],)), (ids[2], (ids[4],))]
    assert all(executed and not virtual for _, _, executed, virtual in found)


def test_every_dialect_counts_each_token_once(trace: Trace) -> None:
    said = [(step.tokens.input, step.tokens.output) for step in trace.steps if step.tokens is not None]
    assert said == TOKENS


def test_every_dialect_knows_the_task_the_answer_and_the_agent(trace: Trace) -> None:
    assert trace.task == TASK
    assert trace.answer == ANSWER
    assert {step.agent for step in trace.steps} <= {"desk", None}


def test_every_dialect_says_what_each_model_call_did(trace: Trace) -> None:
    assert [s.aspect for s in trace.steps if s.kind == "llm"] == ["choose_tool", "choose_tool", "answer"]


def test_every_dialect_is_healthy(trace: Trace) -> None:
    assert [finding.code for finding in trace.health] == []
    assert trace.quality == 1.0


def test_messages_are_whole_for_the_judge_and_only_new_ones_are_written(trace: Trace) -> None:
    calls = [step for step in trace.steps if step.kind == "llm"]
    assert [len([m for m in step.messages if m.role != "system"]) for step in calls] == [1, 3, 5]
    assert [len([m for m in step.input if m["role"] != "system"]) for step in calls] == [1, 2, 2]


def test_equal_messages_are_one_object(trace: Trace) -> None:
    calls = [step for step in trace.steps if step.kind == "llm"]
    for earlier, later in pairwise(calls):
        for message in earlier.messages:
            assert any(message is other for other in later.messages)


def test_calls_without_a_span_become_virtual_steps_with_the_answer_of_the_history() -> None:
    trace = trace_of(genai(tools=False))
    tools = [step for step in trace.steps if step.kind == "tool"]
    assert [step.step_id for step in tools] == ["0000000000000002#call_1", "0000000000000004#call_2"]
    assert [(step.arguments, step.result) for step in tools] == [(FIND, FOUND), (RENEW, RENEWED)]
    assert all(step.virtual and step.executed and step.span_ids == () for step in tools)
    edges = {(edge.step_id[-1], step.step_id[-1]) for step in trace.steps for edge in step.parents}
    assert edges == {("2", "1"), ("1", "4"), ("4", "2"), ("2", "6")}
