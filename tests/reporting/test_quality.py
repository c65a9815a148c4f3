"""How far a trace can be trusted, and the date of the prices, stand beside every result in every form."""

import json
from dataclasses import replace

import pytest

from evalagent.adapters.versions import versions
from evalagent.model import Trace
from evalagent.records import RunRecord
from evalagent.reporting import html, junit, markdown, text
from evalagent.reporting import json as report_json
from evalagent.reporting.composing import compose
from evalagent.reporting.quality import decimals, in_words, quality
from evalagent.summaries import summary
from tests.reporting.library_desk import library_desk


def small_run() -> RunRecord:
    return library_desk(only=("reserve-copy", "waive-wrong-fee", "hostile-note"))


def doubtful(record: RunRecord, found: float) -> RunRecord:
    first, *rest = record.traces
    return replace(record, traces=(replace(first, quality=found), *rest))


def given(record: RunRecord) -> RunRecord:
    """The same traces without trials, as `evaluate` has them."""
    return replace(record, trials=(), outcomes=(), versions=versions("rules"))


@pytest.mark.parametrize("record", [small_run(), given(small_run())], ids=["trials", "traces"])
def test_every_form_says_the_quality_of_each_result(record: RunRecord) -> None:
    shown = doubtful(record, 0.876)
    report = compose(shown)
    assert "0.87" in markdown.render(report)
    assert "trace quality 0.87" in html.render(report) or ">0.87<" in html.render(report)
    assert "lowest 0.87; 1 of 12 below 1" in text.render(shown)
    assert 'name="trace_quality" value="mean 0.98, lowest 0.87; 1 of 12 below 1"' in junit.render(report)
    told = json.loads(report_json.render(report))
    assert sorted(run["quality"] for run in told["runs"])[:2] == [0.876, 1.0]
    assert summary(shown)["trace_quality"] == {
        "mean": round((11 + 0.876) / 12, 6),
        "lowest": 0.876,
        "damaged": 0,
        "below_1": {shown.traces[0].trace_id: 0.876},
    }


def test_whole_traces_are_said_to_be_whole() -> None:
    record = small_run()
    assert "1.00 in all 12" in text.render(record)
    assert "Quality: 1.00 in all 12." in markdown.render(compose(record))
    assert summary(record)["trace_quality"]["below_1"] == {}


def test_the_date_of_the_prices_stands_beside_the_cost() -> None:
    record = replace(small_run(), versions=versions("rules"))
    said = record.versions["prices"]
    assert said.startswith("public lists up to 20")
    assert f"by {said}" in text.render(record)
    assert f"Cost by {said}." in markdown.render(compose(record))
    assert f"Cost by {said}." in html.render(compose(record))
    assert f'value="{said}"' in junit.render(compose(record))
    assert summary(record)["versions"]["prices"] == said
    assert versions("rules", own_prices=True)["prices"] == f"the suite's own, then {said}"


def test_no_fault_is_rounded_away() -> None:
    assert [decimals(one) for one in (1.0, 0.9999, 0.995, 0.87, 0.0, None)] == [
        "1.00",
        "0.99",
        "0.99",
        "0.87",
        "0.00",
        "–",
    ]
    trace = small_run().traces[0]
    cases: list[tuple[list[float], str]] = [
        ([], "no trace"),
        ([1.0], "1.00"),
        ([0.94], "0.94"),
        ([0.2], "0.20, damaged"),
        ([1.0, 0.2, 0.9], "mean 0.70, lowest 0.20; 2 of 3 below 1, 1 damaged"),
    ]
    for found, words in cases:
        traces: list[Trace] = [replace(trace, quality=one) for one in found]
        assert in_words(quality(traces)) == words
        assert quality(traces) == quality(traces[::-1])
