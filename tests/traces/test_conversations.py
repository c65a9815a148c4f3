"""Runs that come as many traces, of which none names a session: what their messages say is what joins them."""

from evalagent.model import Json, Span, Trace
from evalagent.traces.building import build
from tests.traces.spans import answers, asks, chat, said, tool

OTHER = "7b" * 16
THIRD = "8c" * 16
ASKED = asks(("call_17ab", "look", {"n": 1}))
GO = said("go", "user")


def parents(traces: tuple[Trace, ...], number: str) -> set[tuple[str, str]]:
    steps = (step for trace in traces for step in trace.steps)
    return {(edge.step_id, edge.via) for step in steps if step.step_id.endswith(number) for edge in step.parents}


def bare(arguments: Json = None, trace: str = OTHER, start: float = 5) -> list[Span]:
    """Two model calls of one run, each the root of its own trace; nothing tells who ran the tool between them."""
    told = asks(("call_17ab", "look", arguments or {"n": 1}))
    return [
        chat(2, None, 0, 3, [GO], ASKED),
        chat(3, None, start, start + 2, [GO, told, answers(("call_17ab", "one"))], said("done"), trace=trace),
    ]


def test_a_result_that_only_the_next_trace_shows_is_the_call_s() -> None:
    traces = build(bare()).traces
    (looked,) = (step for step in traces[0].steps if step.virtual)
    assert (looked.executed, looked.result, looked.answered_in) == (True, "one", ("0000000000000003",))
    assert parents(traces, "3") == {(looked.step_id, "data")}


def test_the_same_id_of_another_call_joins_nothing() -> None:
    traces = build(bare({"n": 2})).traces
    assert not any(edge.trace_id for trace in traces for step in trace.steps for edge in step.parents)


def test_a_call_that_two_traces_made_alike_joins_nothing() -> None:
    again = chat(4, None, 1, 4, [GO], ASKED, trace=THIRD)
    traces = build([*bare(), again]).traces
    assert not any(edge.trace_id for trace in traces for step in trace.steps for edge in step.parents)


def test_a_history_of_long_ago_joins_nothing() -> None:
    traces = build(bare(start=11 * 60 * 1000)).traces
    assert not any(edge.trace_id for trace in traces for step in trace.steps for edge in step.parents)


def test_a_tool_that_waited_for_leave_runs_in_the_trace_that_goes_on() -> None:
    spans = [
        *bare(),
        tool(5, None, "look", 4, 4.5, "call_17ab", {"n": 1}, "one", trace=OTHER),
    ]
    traces = build(spans).traces
    assert not any(step.virtual for trace in traces for step in trace.steps)
    assert parents(traces, "5") == {("0000000000000002", "call")}
    assert parents(traces, "3") == {("0000000000000005", "data")}


def test_each_trace_of_a_long_run_goes_on_from_the_one_before_alone() -> None:
    second = asks(("call_28cd", "look", {"n": 2}))
    history = [GO, ASKED, answers(("call_17ab", "one"))]
    spans = [
        chat(2, None, 0, 3, [GO], ASKED),
        chat(3, None, 5, 7, history, second, trace=OTHER),
        chat(4, None, 9, 11, [*history, second, answers(("call_28cd", "two"))], said("done"), trace=THIRD),
    ]
    traces = build(spans).traces
    assert parents(traces, "0003") == {("0000000000000002#call_17ab", "data")}
    assert parents(traces, "0004") == {("0000000000000003#call_28cd", "data")}
