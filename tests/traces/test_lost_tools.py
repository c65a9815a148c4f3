"""A tool that ran in a trace of its own belongs to a call of another by the call's id, or by what cannot be else."""

import itertools

import pytest

from evalagent.model import Json, Span, Step, Trace
from evalagent.traces.building import build
from tests.traces.loans import span
from tests.traces.spans import AGENT, answers, asks, chat, codes, said, tool

OTHER = "7b" * 16
GO = said("go", "user")


def run(identity: str | None, given: Json = "12 C") -> list[Span]:
    """A run whose second model call, at 20 ms, was given what its first one, at 10 ms, asked for."""
    asked = asks((identity, "weather", {"city": "Oslo"}))
    return [
        span(1, None, "invoke", 9, 23, AGENT),
        chat(2, 1, 10, 13, [GO], asked),
        chat(3, 1, 20, 22, [GO, asked, answers((identity, given))], said("done")),
    ]


def lost(start: float, end: float, identity: str | None, returned: Json) -> Span:
    return tool(5, None, "weather", start, end, identity, {"city": "Oslo"}, returned, trace=OTHER)


def built(*spans: Span) -> tuple[Trace, Step]:
    """The run's trace, and the lost tool's step."""
    traces = {trace.trace_id: trace for trace in build(spans).traces}
    (ran,) = traces.pop(OTHER).steps
    (rest,) = traces.values()
    return rest, ran


@pytest.mark.parametrize("identity", [None, "call_91fe"])
def test_a_tool_that_ran_between_its_request_and_its_reader_is_joined_by_name_and_arguments(
    identity: str | None,
) -> None:
    trace, ran = built(*run(identity), lost(14, 19, None, "12 C"))
    assert ran.request_step == "0000000000000002"
    assert not any(step.virtual for step in trace.steps)


@pytest.mark.parametrize("identity", [None, "call_91fe"])
@pytest.mark.parametrize(
    ("start", "end", "returned"),
    [(14, 19, "25 C"), (610, 700, "12 C"), (4, 5, "12 C"), (18, 24, "12 C")],
    ids=["other result", "after the reader", "before the request", "ended after the reader began"],
)
def test_a_tool_of_another_run_leaves_the_call_alone(
    identity: str | None, start: float, end: float, returned: Json
) -> None:
    trace, ran = built(*run(identity), lost(start, end, None, returned))
    assert (ran.request_step, ran.parents) == (None, ())
    assert trace.steps == build(run(identity)).traces[0].steps


def test_results_are_the_same_in_whatever_wrapping_they_were_given() -> None:
    wrapped = [{"type": "text", "text": '{"celsius": 12}'}]
    _, ran = built(*run(None, wrapped), lost(14, 19, None, {"celsius": 12}))
    assert ran.request_step == "0000000000000002"


def test_a_tool_whose_result_is_not_known_is_joined_by_time() -> None:
    assert built(*run(None), lost(14, 19, None, None))[1].request_step == "0000000000000002"
    assert built(*run(None), lost(24, 29, None, None))[1].request_step is None


def test_the_reader_of_the_call_counts_and_not_that_of_an_equal_one_before() -> None:
    asked = asks((None, "weather", {"city": "Oslo"}))
    earlier = [asked, answers((None, "11 C"))]
    spans = [
        span(1, None, "invoke", 9, 23, AGENT),
        chat(2, 1, 10, 13, [GO, *earlier], asked),
        chat(3, 1, 20, 22, [GO, *earlier, asked, answers((None, "12 C"))], said("done")),
    ]
    assert built(*spans, lost(14, 19, None, "12 C"))[1].request_step == "0000000000000002"
    assert built(*spans, lost(14, 19, None, "11 C"))[1].request_step is None


@pytest.mark.parametrize(
    ("start", "end", "returned", "skewed"),
    [(14, 19, "12 C", False), (14, 19, "25 C", True), (40, 50, "12 C", True), (1, 2, "12 C", False)],
    ids=["fits", "other result", "after the reader", "before the request"],
)
def test_the_call_s_id_joins_whatever_clock_and_result_say_and_the_doubt_is_told(
    start: float, end: float, returned: Json, skewed: bool
) -> None:
    trace, ran = built(*run("call_91fe"), lost(start, end, "call_91fe", returned))
    assert ran.request_step == "0000000000000002"
    assert ("clock_skew" in codes(trace)) is skewed


def test_a_tool_that_ran_before_the_call_that_asked_is_said_to_be_askew() -> None:
    traces = build([*run("call_91fe"), lost(1, 2, "call_91fe", "12 C")]).traces
    assert "clock_skew" in codes(next(trace for trace in traces if trace.trace_id == OTHER))


def test_the_order_in_which_lost_tools_arrive_changes_nothing() -> None:
    spans = [*run(None), lost(14, 19, None, "12 C")]
    assert len({repr(build(order).traces) for order in itertools.permutations(spans)}) == 1
