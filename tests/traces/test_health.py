"""Every fault of a trace is named, its near-miss is not, it costs what is documented, and no agent pays for it."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from evalagent.evaluating import Bench, Terms, damaged, failing
from evalagent.model import Event, Json, Link, Span, Trace
from evalagent.traces.building import build
from evalagent.traces.health import COSTS
from evalagent.traces.otlp_json import Origin, to_span
from tests.traces.loans import DIALECTS, GENAI, MS, genai, span
from tests.traces.spans import chat, codes, only, said

RUN = tuple(genai()[0])
"""A run in which all is well: root 1, model calls 2, 4, 6, tools 3 and 5."""
DOCUMENT = Path(__file__).resolve().parents[2] / "docs/health.md"


def number(one: Span) -> int:
    return int(one.span_id, 16)


def changed(which: int, by: Callable[[Span], Span]) -> list[Span]:
    return [by(one) if number(one) == which else one for one in RUN]


def without(*numbers: int) -> list[Span]:
    return [one for one in RUN if number(one) not in numbers]


def given(which: int, key: str, by: Callable[[str], Json]) -> list[Span]:
    def change(one: Span) -> Span:
        value = by(one.attributes[key])
        rest = {name: old for name, old in one.attributes.items() if name != key}
        return replace(one, attributes=rest if value is None else {**rest, key: value})

    return changed(which, change)


def bare(one: Span) -> Span:
    """As an instrumentor leaves a span that is told to keep contents to itself."""
    kept = {k: v for k, v in one.attributes.items() if not re.search("messages|instructions|arguments|result", k)}
    return replace(one, attributes=kept)


def moved(one: Span, by_ms: float) -> Span:
    end = None if one.end_ns is None else one.end_ns + round(by_ms * MS)
    return replace(one, start_ns=one.start_ns + round(by_ms * MS), end_ns=end)


ARGUMENTS, MESSAGES = "gen_ai.tool.call.arguments", "gen_ai.input.messages"
USAGE = "gen_ai.usage.output_tokens"
FAULTS: dict[str, tuple[list[Span], list[Span]]] = {
    "orphan_span": (
        changed(4, lambda s: replace(s, parent_id="f" * 16)),
        changed(4, lambda s: replace(s, parent_id=None, links=(Link("e" * 32, "f" * 16),))),
    ),
    "missing_root": (without(1), changed(4, lambda s: replace(s, parent_id="f" * 16))),
    "duplicate_span": ([*RUN, RUN[3]], [*RUN, replace(RUN[3], trace_id="7c" * 16)]),
    "span_cycle": (
        changed(1, lambda s: replace(s, parent_id=f"{2:016x}")),
        changed(3, lambda s: replace(s, parent_id=f"{2:016x}")),
    ),
    "truncated_json": (given(5, ARGUMENTS, lambda text: text[:-4]), given(5, ARGUMENTS, lambda text: "Dune, please")),
    "negative_duration": (
        changed(5, lambda s: replace(s, end_ns=s.start_ns - 1)),
        changed(5, lambda s: replace(s, end_ns=s.start_ns)),
    ),
    "clock_skew": (changed(3, lambda s: moved(s, -15)), changed(3, lambda s: moved(s, -1))),
    "content_not_captured": ([bare(one) for one in RUN], changed(1, bare)),
    "tokens_unknown": (given(4, USAGE, lambda _: None), given(4, USAGE, lambda _: 0)),
    "attribute_limit": (
        changed(6, lambda s: replace(s, dropped_attributes=3)),
        changed(6, lambda s: replace(s, attributes={**s.attributes, "app.note": "x" * 4096})),
    ),
    "unknown_dialect": (
        [*RUN, span(9, 1, "generate", 61, 62, {"llm.vendor": "acme"})],
        [*RUN, span(9, 1, "SELECT", 61, 62, {"db.system": "sqlite", "http.method": "GET"})],
    ),
    "no_agent_steps": (
        [span(1, None, "GET /", 0, 5, {"http.method": "GET"})],
        [span(1, None, "GET /", 0, 9, {"http.method": "GET"}), chat(2, 1, 1, 5, [said("hi", "user")], said("hello"))],
    ),
}


def traces(spans: Sequence[Span]) -> tuple[Trace, ...]:
    return build(spans).traces


def test_the_run_itself_is_whole() -> None:
    (trace,) = traces(RUN)
    assert (codes(trace), trace.quality) == ([], 1.0)


def test_every_code_has_a_fault_here_and_a_cost() -> None:
    assert FAULTS.keys() == COSTS.keys()


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_is_named_and_its_near_miss_is_not(code: str) -> None:
    fault, near = FAULTS[code]
    (trace,) = traces(fault)
    found = [finding for finding in trace.health if finding.code == code]
    assert len(found) == 1
    assert found[0].severity == ("error" if code == "no_agent_steps" else "warning")
    assert all(code not in codes(one) for one in traces(near))


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_costs_quality_by_its_share_as_documented(code: str) -> None:
    (trace,) = traces(FAULTS[code][0])
    cost, of = COSTS[code]
    spans, steps, calls = 6, 5, 3
    if code == "unknown_dialect":
        spans += 1
    share = {"trace": 1.0, "spans": 1 / spans, "steps": 1 / steps, "model calls": 1 / calls}[of]
    if code == "content_not_captured":
        share = 1.0
    others = [c for c in codes(trace) if c != code]
    if code == "missing_root":
        assert others == ["orphan_span"]
        expected = 1 - cost - COSTS["orphan_span"][0]
    else:
        assert others == []
        expected = 1 - cost * share
    assert trace.quality == pytest.approx(expected, abs=0.0001)


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_of_the_trace_is_never_held_against_the_agent(code: str) -> None:
    bench = Bench(Terms(judge="rules", unasked="no model is asked"))
    (trace,) = traces(FAULTS[code][0])
    told = bench.concluded(bench.examined(trace))
    assert failing(told.findings) == ()
    assert [v for v in told.verdicts if v.verdict == "fail"] == []
    assert told.verdicts[-1].step_id is None, "the verdict on the whole"
    assert told.attribution.root_causes == ()
    assert told.attribution.first_failing_step is None


def test_everything_wrong_at_once_is_damaged_and_still_not_the_agents_fault() -> None:
    spans = [
        replace(moved(bare(one), -20 * number(one)), parent_id="f" * 16, dropped_attributes=9)
        for one in RUN
        if number(one) != 1
    ]
    spans = [replace(one, end_ns=one.start_ns - 1) for one in spans]
    (trace,) = traces(spans)
    bench = Bench(Terms(judge="rules", unasked="no model is asked"))
    told = bench.concluded(bench.examined(trace))
    assert damaged(trace)
    assert told.verdicts[-1].verdict == "not_judged"
    assert "damaged" in told.verdicts[-1].reason


def test_an_agent_that_errs_in_a_faulty_trace_is_still_told_so_where_the_trace_shows_it() -> None:
    failed = [replace(one, status="error", status_message="no such loan") if number(one) == 5 else one for one in RUN]
    (trace,) = traces([one for one in failed if number(one) != 1])
    bench = Bench(Terms(judge="rules", unasked="no model is asked"))
    told = bench.concluded(bench.examined(trace))
    assert "missing_root" in codes(trace)
    assert told.attribution.first_failing_step is not None


def test_a_cut_message_shows_what_stood_before_the_cut_and_blames_nobody_for_the_rest() -> None:
    whole = json.dumps(GENAI)
    bench = Bench(Terms(judge="rules", unasked="no model is asked"))
    for cut in range(5, len(whole) - 5, 23):
        (trace,) = traces(given(6, MESSAGES, lambda _, cut=cut: whole[:cut]))  # type: ignore[misc]
        assert "truncated_json" in codes(trace)
        assert failing(bench.examined(trace).findings) == ()


def test_events_that_a_limit_dropped_are_said_like_attributes() -> None:
    raw = {"traceId": "a" * 32, "spanId": "b" * 16, "droppedEventsCount": 2, "droppedAttributesCount": 1}
    assert to_span(raw, Origin()).dropped_attributes == 3
    assert to_span({"traceId": "a" * 32, "spanId": "b" * 16}, Origin()).dropped_attributes == 0


def test_health_is_found_in_linear_time() -> None:
    orphans = [span(n, 10**9 + n, "GET", n, n + 1) for n in range(1, 30_001)]
    trace = only([*orphans, chat(0, None, 0, 5, [said("a", "user")], said("b"), events=(Event("e", 1, {}),))])
    assert "orphan_span" in codes(trace)


def test_every_code_is_documented_with_what_it_costs() -> None:
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert [code for code, _ in rows] == list(COSTS)
    for code, row in rows:
        cost, of = COSTS[code]
        written = {"trace": "", "spans": " × its share of spans", "steps": " × its share of steps"}.get(
            of, " × its share of model calls"
        )
        assert row.split("|")[-1].strip() == f"{cost:g}{written}", code


@pytest.mark.parametrize("dialect", DIALECTS)
def test_whatever_attributes_a_limit_dropped_no_dialects_agent_is_blamed(dialect: str) -> None:
    bench = Bench(Terms(judge="rules", unasked="no model is asked"))
    spans = list(DIALECTS[dialect]()[0])
    for at, one in enumerate(spans):
        names = list(one.attributes)
        for lost in range(1, len(names) + 1, 2):
            for kept in (names[lost:], names[:-lost]):
                less = replace(one, attributes={n: one.attributes[n] for n in kept}, dropped_attributes=lost)
                for trace in traces([*spans[:at], less, *spans[at + 1 :]]):
                    assert [f.code for f in failing(bench.examined(trace).findings)] == []


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_whichever_spans_are_missing_the_agent_is_not_blamed(lost: int) -> None:
    bench = Bench(Terms(judge="rules", unasked="no model is asked"))
    for gone in combinations(range(1, 7), lost):
        for trace in traces(without(*gone)):
            assert failing(bench.examined(trace).findings) == (), gone
