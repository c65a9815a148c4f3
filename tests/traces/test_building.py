"""From spans to traces: nothing is lost, nothing counted twice, any order gives the same."""

import random
from dataclasses import replace

import pytest

from evalagent.model import LogRecord
from evalagent.traces.building import Built, build
from tests.traces.loans import DIALECTS, MODEL, genai
from tests.traces.spans import codes, only, places, step


@pytest.mark.parametrize("dialect", DIALECTS)
def test_spans_in_any_order_give_the_same_traces(dialect: str) -> None:
    spans, logs = DIALECTS[dialect]()
    expected = build(spans, logs)
    for seed in range(4):
        random.Random(seed).shuffle(spans)
        random.Random(seed).shuffle(logs)
        again = build(spans, logs)
        assert again == expected
        assert repr(again) == repr(expected)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_span_has_one_place_and_spans_sent_twice_change_no_step(dialect: str) -> None:
    spans, logs = DIALECTS[dialect]()
    once, twice = build(spans, logs), build(spans + spans, logs)
    assert places(once) == len(spans)
    assert places(twice) == 2 * len(spans)
    assert twice.duplicates == len(spans)
    assert [trace.steps for trace in twice.traces] == [trace.steps for trace in once.traces]
    assert codes(twice.traces[0]) == ["duplicate_span"]


def test_of_two_spans_with_one_id_the_fuller_is_kept_whichever_came_last() -> None:
    spans, _ = genai()
    poor = replace(
        spans[1], attributes={"gen_ai.operation.name": "chat"}, end_ns=spans[1].end_ns and spans[1].end_ns * 2
    )
    for order in ([poor, *spans], [*spans, poor]):
        assert step(only(order), 2).model == MODEL


def test_log_records_of_unknown_spans_are_counted_as_ignored() -> None:
    spans, logs = DIALECTS["genai in log records"]()
    stray = LogRecord(spans[0].trace_id, "f" * 16, 1, "gen_ai.user.message", {"content": "hi"})
    built = build(spans, [*logs, stray])
    assert (built.log_attached, built.log_ignored) == (len(logs), 1)


def test_equal_span_ids_in_two_traces_are_two_spans() -> None:
    spans, _ = genai()
    other = [replace(one, trace_id="7b" * 16) for one in spans]
    built = build([*spans, *other])
    assert [len(trace.steps) for trace in built.traces] == [5, 5]
    assert not any(edge.trace_id for trace in built.traces for s in trace.steps for edge in s.parents)


def test_nothing_at_all_gives_nothing() -> None:
    assert build([]) == Built(())
