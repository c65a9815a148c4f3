"""What is a step, what holds steps, and what is an error."""

import pytest

from evalagent.model import Event
from tests.traces.loans import MODEL, span
from tests.traces.spans import AGENT, chat, codes, only, pairs, said, step, tool


def test_one_call_reported_by_two_layers_is_one_step_with_its_tokens_once() -> None:
    usage = {"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2}
    outer = chat(2, 1, 1, 9, [said("hi", "user")], said("hello"), attributes=usage)
    inner = span(
        3,
        2,
        "anthropic.messages.create",
        2,
        8,
        {"gen_ai.operation.name": "chat", **usage},
        scope="com.anthropic.sdk.python",
    )
    trace = only([span(1, None, "app", 0, 10), outer, inner])
    assert [s.span_ids for s in trace.steps] == [(outer.span_id, inner.span_id)]
    assert trace.steps[0].tokens is not None and trace.steps[0].tokens.input == 7


def test_a_streamed_twin_beside_the_instrumentors_span_is_the_same_step() -> None:
    outer = chat(2, 1, 1, 9, [said("hi", "user")], said("hello"))
    twin = span(
        3,
        1,
        "anthropic.messages.create",
        2,
        8,
        {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL, "gen_ai.usage.output_tokens": 4},
        scope="com.anthropic.sdk.python",
    )
    trace = only([span(1, None, "app", 0, 10), outer, twin])
    assert [s.step_id for s in trace.steps] == [outer.span_id]
    assert trace.steps[0].tokens is not None and trace.steps[0].tokens.output == 4


def test_calls_that_share_a_made_up_response_id_one_after_the_other_are_two_steps() -> None:
    same = {"gen_ai.response.id": "resp-0"}
    trace = only(
        [
            chat(2, None, 0, 5, [said("a", "user")], said("b"), attributes=same),
            chat(3, None, 6, 9, [said("c", "user")], said("d"), attributes=same),
        ]
    )
    assert len(trace.steps) == 2


def test_a_tool_inside_a_tool_of_the_same_name_is_one_step_and_keeps_the_inner_error() -> None:
    server = tool(3, 2, "lookup", 2, 8, status="error", status_message="no such city")
    trace = only([span(1, None, "app", 0, 10), tool(2, 1, "lookup", 1, 9), server])
    assert [(s.step_id[-1], s.error) for s in trace.steps] == [("2", "no such city")]


def test_an_agent_without_steps_is_a_step_and_holds_its_own_tokens() -> None:
    usage = {"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 1}
    trace = only(
        [
            span(1, None, "w", 0, 9, {"gen_ai.operation.name": "invoke_workflow"}),
            span(2, 1, "invoke_agent a", 1, 4, AGENT | {"gen_ai.agent.name": "a"} | usage),
            span(3, 1, "invoke_agent b", 5, 8, AGENT | {"gen_ai.agent.name": "b"}),
        ]
    )
    assert [(s.kind, s.name) for s in trace.steps] == [("agent", "a"), ("agent", "b")]
    assert pairs(trace) == {("2", "3")}
    assert trace.steps[0].tokens is not None and trace.steps[0].tokens.input == 9


def test_an_empty_agent_is_no_step_where_its_work_lost_its_parent() -> None:
    trace = only(
        [span(1, None, "invoke_agent desk", 0, 90, AGENT), chat(5, 77, 10, 20, [said("hi", "user")], said("yes"))]
    )
    assert [s.kind for s in trace.steps] == ["llm"]
    assert codes(trace) == ["orphan_span", "tokens_unknown"]


def test_a_person_turn_is_a_step_and_the_source_of_what_was_asked() -> None:
    person = span(2, 1, "user", 1, 2, {"gen_ai.agent.name": "user", "output.value": "Where is my parcel?"})
    trace = only(
        [
            span(1, None, "run", 0, 9, AGENT),
            person,
            chat(3, 1, 3, 4, [said("Where is my parcel?", "user")], said("Here")),
        ]
    )
    assert [s.kind for s in trace.steps] == ["human", "llm"]
    assert [edge.via for edge in step(trace, 3).parents] == ["data"]


@pytest.mark.parametrize("kind", ["ParentCommand", "langgraph.errors.GraphInterrupt", "GraphBubbleUp"])
def test_control_flow_is_no_error(kind: str) -> None:
    event = Event("exception", 1, {"exception.type": kind, "exception.message": "x"})
    trace = only([tool(2, None, "transfer_to_desk", 0, 5, status="error", events=[event])])
    assert trace.steps[0].error is None
    assert trace.steps[0].kind == "handoff"


def test_an_exception_without_a_status_is_an_error_and_an_ok_status_clears_it() -> None:
    event = Event("exception", 1, {"exception.type": "app.Lost", "exception.message": "gone"})
    assert only([tool(2, None, "find", 0, 5, events=[event])]).steps[0].error == "Lost: gone"
    assert only([tool(2, None, "find", 0, 5, events=[event], status="ok")]).steps[0].error is None


def test_a_result_that_says_it_failed_keeps_saying_so() -> None:
    failed = {"isError": True, "content": [{"type": "text", "text": "no such loan"}]}
    trace = only([tool(2, None, "find", 0, 5, result=failed)])
    assert trace.steps[0].error is None
    assert trace.steps[0].result == {"status": "error", "content": "no such loan"}
