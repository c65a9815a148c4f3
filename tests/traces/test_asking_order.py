"""Steps of one moment stay in the order in which they were asked for; a transcript's times are that order alone."""

import itertools
import json
import random

import pytest

from evalagent.model import Json, Trace
from evalagent.traces.building import build
from evalagent.traces.reading import read
from tests.traces.conversations import TRANSCRIPTS
from tests.traces.loans import span
from tests.traces.spans import AGENT, answers, asks, chat, codes, only, said, tool

GO = said("go", "user")
NAMES = ["first", "second", "third"]


def transcript(*answered: str, ids: tuple[str, ...] = ("z", "m", "a")) -> Trace:
    """Three calls asked for at once, of which some were answered, in the order given."""
    calls: list[Json] = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for one, name in zip(ids, NAMES, strict=True)
    ]
    messages: list[Json] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": ids[NAMES.index(name)], "content": name} for name in answered),
        {"role": "assistant", "content": "done"},
    ]
    (trace,) = build(read(json.dumps(messages).encode(), "f").spans).traces
    return trace


def tools(trace: Trace) -> list[str]:
    return [step.name for step in trace.steps if step.kind == "tool"]


@pytest.mark.parametrize("ids", list(itertools.permutations("amz")))
@pytest.mark.parametrize("answered", [NAMES, NAMES[::-1], ["second"], ["third", "first"], []])
def test_the_calls_of_a_message_stay_in_the_order_in_which_they_were_asked_for(
    answered: list[str], ids: tuple[str, ...]
) -> None:
    assert tools(transcript(*answered, ids=ids)) == NAMES


def test_more_calls_than_one_digit_counts_stay_in_order_without_spans_and_ids() -> None:
    names = [f"t{number}" for number in range(12)]
    random.Random(7).shuffle(names)
    trace = only([chat(2, None, 0, 3, [GO], asks(*((None, name, {}) for name in names)))])
    assert tools(trace) == names


def test_tools_that_start_together_are_in_the_order_of_their_calls_however_their_spans_arrive() -> None:
    asked = asks(("z", "first", {}), ("m", "second", {}), ("a", "third", {}))
    spans = [
        span(1, None, "invoke", 0, 30, AGENT),
        chat(2, 1, 0, 3, [GO], asked),
        tool(9, 1, "first", 4, 8, "z", {}, "1"),
        tool(5, 1, "second", 4, 6, "m", {}, "2"),
        tool(7, 1, "third", 4, 5, "a", {}, "3"),
        chat(8, 1, 10, 12, [GO, asked, answers(("a", "3"), ("z", "1"), ("m", "2"))], said("done")),
    ]
    orders = [build(order).traces for order in itertools.permutations(spans)]
    assert tools(orders[0][0]) == NAMES
    assert all(order == orders[0] for order in orders)


@pytest.mark.parametrize("form", TRANSCRIPTS)
def test_a_transcript_has_no_durations_and_nothing_is_wrong_with_that(form: str) -> None:
    traces = build(read(TRANSCRIPTS[form](), form).spans).traces
    assert {step.end_ns for trace in traces for step in trace.steps} == {None}
    assert {trace.end_ns for trace in traces} == {None}
    assert not {"negative_duration", "clock_skew"} & {code for trace in traces for code in codes(trace)}


def test_a_call_that_nobody_answered_has_no_duration_either() -> None:
    assert {step.end_ns for step in transcript("second").steps} == {None}
