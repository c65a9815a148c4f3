"""Who asked for a tool, who ran it, who read its result."""

from dataclasses import replace

import pytest

from tests.traces.loans import genai, span
from tests.traces.spans import AGENT, answers, asks, chat, codes, only, pairs, said, step, tool


def test_a_call_that_nothing_ran_and_nothing_answered_is_not_executed() -> None:
    trace = only(
        [
            span(1, None, "d", 0, 9, AGENT),
            chat(2, 1, 1, 2, [said("go", "user")], asks(("c1", "send", {"to": "Ann"}))),
            chat(
                3,
                1,
                3,
                4,
                [said("go", "user"), asks(("c1", "send", {"to": "Ann"})), said("well?", "user")],
                said("sent"),
            ),
        ]
    )
    (lost,) = [s for s in trace.steps if s.virtual]
    assert (lost.step_id, lost.executed, lost.result, lost.request_step) == (f"{2:016x}#c1", False, None, f"{2:016x}")


@pytest.mark.parametrize("name", ["final_answer", "final_result", "StructuredOutput"])
def test_tools_that_end_a_run_are_no_lost_calls(name: str) -> None:
    trace = only([chat(2, None, 1, 2, [said("go", "user")], asks(("c1", name, {"answer": "42"})))])
    assert [s.executed for s in trace.steps if s.virtual] == [True]
    assert trace.answer == "42"


def test_two_calls_at_once_fan_out_and_in_without_depending_on_each_other() -> None:
    both = asks(("a", "look", {"n": 1}), ("b", "look", {"n": 2}))
    trace = only(
        [
            span(1, None, "d", 0, 9, AGENT),
            chat(2, 1, 1, 2, [said("go", "user")], both),
            tool(3, 1, "look", 3, 5, "a", {"n": 1}, "one"),
            tool(4, 1, "look", 3, 5, "b", {"n": 2}, "two"),
            chat(5, 1, 6, 7, [said("go", "user"), both, answers(("a", "one"), ("b", "two"))], said("done")),
        ]
    )
    assert pairs(trace) == {("2", "3"), ("2", "4"), ("3", "5"), ("4", "5")}


def test_the_same_call_twice_is_matched_to_the_latest_request_each_time() -> None:
    ask, reply = asks((None, "look", {"n": 1})), answers((None, "one"))
    history = [said("go", "user")]
    spans = [span(1, None, "d", 0, 99, AGENT)]
    for turn in range(4):
        spans.append(chat(10 * turn + 10, 1, 20 * turn, 20 * turn + 5, history, ask))
        spans.append(tool(10 * turn + 11, 1, "look", 20 * turn + 6, 20 * turn + 9, None, {"n": 1}, "one"))
        history = [*history, ask, reply]
    asked = {s.step_id: s.request_step for s in only(spans).steps if s.kind == "tool"}
    assert asked == {f"{10 * t + 11:016x}": f"{10 * t + 10:016x}" for t in range(4)}


def test_call_ids_that_start_again_each_turn_do_not_mix_the_turns() -> None:
    history, spans = [said("go", "user")], [span(1, None, "d", 0, 99, AGENT)]
    for turn in range(3):
        ask = asks(("call_0", "look", {"n": turn}))
        spans.append(chat(10 * turn + 10, 1, 20 * turn, 20 * turn + 5, history, ask))
        spans.append(
            tool(10 * turn + 11, 1, "look", 20 * turn + 6, 20 * turn + 9, "call_0", {"n": turn}, f"got {turn}")
        )
        history = [*history, ask, answers(("call_0", f"got {turn}"))]
    trace = only(spans)
    expected = {(f"{a:x}", f"{b:x}") for a, b in ((10, 11), (11, 20), (20, 21), (21, 30), (30, 31))}
    assert pairs(trace) == expected


def test_results_without_ids_are_joined_by_their_place_in_the_history() -> None:
    both = asks((None, "look", {"n": 1}), (None, "look", {"n": 2}))
    trace = only(
        [
            span(1, None, "d", 0, 9, AGENT),
            chat(2, 1, 1, 2, [said("go", "user")], both),
            tool(3, 1, "look", 3, 4, None, {"n": 1}, "?"),
            tool(4, 1, "look", 4.5, 5, None, {"n": 2}, "?"),
            chat(5, 1, 6, 7, [said("go", "user"), both, answers((None, "one"), (None, "two"))], said("done")),
        ]
    )
    assert pairs(trace) == {("2", "3"), ("2", "4"), ("3", "5"), ("4", "5")}


def test_a_tool_started_while_the_model_still_streams_is_joined_to_that_call() -> None:
    trace = only(
        [
            span(1, None, "d", 0, 99, AGENT),
            chat(2, 1, 0, 10, [], None),
            tool(3, 1, "look", 8, 20),
            chat(4, 1, 21, 30, [], None),
        ]
    )
    assert pairs(trace) == {("2", "3"), ("3", "4")}
    assert "content_not_captured" in codes(trace)


def test_a_tool_whose_clock_is_early_still_depends_on_its_request() -> None:
    spans, _ = genai()
    early = [
        replace(s, start_ns=s.start_ns - 10**9, end_ns=(s.end_ns or 0) - 10**9) if "tool" in s.name else s
        for s in (replace(s, start_ns=s.start_ns + 2 * 10**9, end_ns=(s.end_ns or 0) + 2 * 10**9) for s in spans)
    ]
    trace = only(early)
    assert pairs(trace) == {("2", "3"), ("3", "4"), ("4", "5"), ("5", "6")}
    assert "clock_skew" in codes(trace)
    ids = [s.step_id for s in trace.steps]
    assert all(ids.index(edge.step_id) < ids.index(s.step_id) for s in trace.steps for edge in s.parents)


def test_an_agent_called_as_a_tool_stands_between_its_caller_and_the_reader() -> None:
    ask = asks(("c1", "ask_expert", {"q": "why"}))
    trace = only(
        [
            span(1, None, "boss", 0, 99, AGENT),
            chat(2, 1, 1, 5, [said("why", "user")], ask),
            tool(3, 1, "ask_expert", 6, 40, "c1", {"q": "why"}, "because it is so"),
            span(4, 3, "invoke_agent expert", 7, 39, AGENT | {"gen_ai.agent.name": "expert"}),
            chat(5, 4, 8, 30, [said("explain", "user")], said("because it is so")),
            chat(6, 1, 41, 50, [said("why", "user"), ask, answers(("c1", "because it is so"))], said("ok")),
        ]
    )
    assert pairs(trace) == {("2", "3"), ("3", "5"), ("5", "6")}
    assert step(trace, 2).aspect == "delegate"


def test_equal_results_without_ids_or_history_are_each_read_once() -> None:
    both = asks((None, "look", {"n": 1}), (None, "look", {"n": 2}))
    spans = [span(1, None, "d", 0, 99, AGENT)]
    for turn in range(2):
        at = 20 * turn
        spans += [
            chat(10 * turn + 2, 1, at, at + 2, [said(f"go {turn}", "user")], both),
            tool(10 * turn + 3, 1, "look", at + 3, at + 5, None, {"n": 1}, "[]"),
            tool(10 * turn + 4, 1, "look", at + 3, at + 5, None, {"n": 2}, "[]"),
            chat(10 * turn + 5, 1, at + 6, at + 8, [answers((None, []), (None, []))], said(f"none {turn}")),
        ]
    trace = only(spans)
    assert {("3", "5"), ("4", "5"), ("d", "f"), ("e", "f")} <= pairs(trace)
    assert ("3", "f") not in pairs(trace)


def test_a_call_goes_to_the_tool_that_ran_with_its_arguments_before_another_of_the_name_may_have_it() -> None:
    trace = only(
        [
            chat(1, None, 0, 1, [said("Find it", "user")], asks((None, "find", {"book": "Dune"}))),
            tool(2, None, "find", 2, 3, arguments={"book": "Emma"}),
            tool(3, None, "find", 4, 5, arguments={"book": "Dune"}),
        ]
    )
    assert step(trace, 3).request_step == step(trace, 1).step_id
    assert step(trace, 2).request_step is None
