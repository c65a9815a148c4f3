"""However a run is spelled, laid out, packed, cut, ordered and repeated, it gives the same steps, byte for byte."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalagent.adapters.files import dump
from evalagent.model import Json, Link, LogRecord, Span
from evalagent.rows import step_rows
from evalagent.traces.building import build
from evalagent.traces.reading import Reading, read
from evalagent.traces.receipt import adds_up, receipt
from fuzz.seeds import request
from fuzz.traces import spans as any_spans
from tests.traces.loans import DIALECTS
from tests.traces.wrappings import LAYOUTS, PACKINGS, PROTOBUF, SPELLINGS, messages

Told = tuple[list[Span], list[LogRecord]]


def steps(readings: Sequence[Reading]) -> bytes:
    """steps.jsonl of all these files together; nothing rejected and the receipt adds up."""
    assert [piece.reason for reading in readings for piece in reading.rejected] == []
    built = build([s for r in readings for s in r.spans], [log for r in readings for log in r.logs])
    assert adds_up(receipt(readings, built))
    return b"\n".join(map(dump, step_rows(built.traces)))


def requests(told: Told) -> list[Json]:
    """Two requests: the spans in two parts, the log records in the second."""
    spans, logs = told
    return [request(spans[:3], []), request(spans[3:], logs)]


RUNS = {name: requests(tell()) for name, tell in DIALECTS.items()}
EXPECTED = {name: steps([read(LAYOUTS["lines"](run), "f")]) for name, run in RUNS.items()}
NAMES = sorted(RUNS)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_or_layout_changes_a_step(spelling: str, layout: str) -> None:
    for name in NAMES[:: 1 if layout == "lines" else 5]:
        spelled = [SPELLINGS[spelling](one) for one in RUNS[name]]
        if layout == "parts" and spelling == "snake case":
            spelled = [{"resourceSpans": r["resource_spans"], "resourceLogs": r["resource_logs"]} for r in spelled]
        assert steps([read(LAYOUTS[layout](spelled), "f")]) == EXPECTED[name], name


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_packing_changes_a_step(layout: str, packing: str) -> None:
    for name in NAMES[::4]:
        assert steps([read(PACKINGS[packing](LAYOUTS[layout](RUNS[name])), "f")]) == EXPECTED[name], name


@pytest.mark.parametrize("way", PROTOBUF)
def test_protobuf_gives_the_steps_of_json(way: str) -> None:
    for name in NAMES:
        assert steps([read(data, "f") for data in PROTOBUF[way](messages(RUNS[name]))]) == EXPECTED[name], name


# --- order, cutting, repetition -------------------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn) -> Told:
    """Runs of several dialects: some in one trace or session, some joined by links, at their own times."""
    spans: list[Span] = []
    logs: list[LogRecord] = []
    for number in range(draw(st.integers(1, 4))):
        told, records = DIALECTS[draw(st.sampled_from(NAMES))]()
        trace = f"{draw(st.integers(1, 3)):032x}"
        offset = 1000 * draw(st.integers(0, 2)) + 10 * number
        shift = draw(st.integers(0, 200)) * 1_000_000
        session = draw(st.sampled_from([None, "s1", "s2"]))
        links = (
            [Link(one.trace_id, one.span_id) for one in draw(st.lists(st.sampled_from(spans), max_size=2))]
            if spans
            else []
        )
        for one in told:
            named = {**one.attributes, "session.id": session} if session else dict(one.attributes)
            spans.append(
                replace(
                    one,
                    trace_id=trace,
                    span_id=_moved(one.span_id, offset),
                    parent_id=one.parent_id and _moved(one.parent_id, offset),
                    start_ns=one.start_ns + shift,
                    end_ns=None if one.end_ns is None else one.end_ns + shift,
                    attributes=named,
                    links=tuple(links) if one.parent_id is None else one.links,
                )
            )
        logs.extend(replace(log, trace_id=trace, span_id=_moved(log.span_id, offset)) for log in records)
    return spans, logs


def _moved(identity: str, offset: int) -> str:
    return f"{int(identity, 16) + offset:016x}"


def _holds(told: Told, data: st.DataObject) -> None:
    spans, logs = told
    pieces = [request([span], []) for span in spans] + [request([], [log]) for log in logs]
    whole = steps([read(b"\n".join(json.dumps(piece).encode() for piece in pieces), "whole")])
    again = data.draw(st.lists(st.sampled_from(pieces), max_size=4)) if pieces else []
    order = data.draw(st.permutations([*pieces, *again]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), max_size=3)))
    files = [order[start:end] for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    layouts = [data.draw(st.sampled_from(sorted(LAYOUTS))) for _ in files]
    readings = [
        read(LAYOUTS[layout](file), str(number))
        for number, (layout, file) in enumerate(zip(layouts, files, strict=True))
        if file
    ]
    assert steps(readings) == whole


def test_log_records_that_come_again_change_no_step_and_are_ignored() -> None:
    spans, logs = DIALECTS["genai in log records"]()
    once, twice = build(spans, logs), build(spans, logs + logs)
    assert list(step_rows(twice.traces)) == list(step_rows(once.traces))
    assert (twice.log_attached, twice.log_ignored) == (len(logs), len(logs))


@given(worlds(), st.data())
@settings(max_examples=40, deadline=None)
def test_any_order_cutting_and_repetition_of_runs_gives_the_same_bytes(told: Told, data: st.DataObject) -> None:
    _holds(told, data)


@given(any_spans(), st.data())
@settings(max_examples=40, deadline=None)
def test_any_order_cutting_and_repetition_of_senseless_traces_gives_the_same_bytes(
    found: list[Span], data: st.DataObject
) -> None:
    _holds((found, []), data)
