"""What was taken out of spans and sent as log records is put back where it was, whatever dialect the spans speak."""

import json
from dataclasses import replace

import pytest

from evalagent.model import Event, Json, LogRecord, Span
from evalagent.rows import step_rows
from evalagent.traces.agentcore import restored
from evalagent.traces.building import Built, build, event_of
from tests.traces.loans import DIALECTS, span
from tests.traces.taken_out import taken_out

SPOKEN = ["genai", "openinference", "openllmetry 0.44", "openllmetry langchain", "langsmith", "strands"]


def taken_apart(spans: list[Span]) -> tuple[list[Span], list[LogRecord]]:
    pairs = [taken_out(one) for one in spans]
    return [bare for bare, _ in pairs], [record for _, records in pairs for record in records]


def rows(built: Built) -> Json:
    return json.loads(json.dumps(list(step_rows(built.traces))))


def without(row: dict[str, Json], keys: tuple[str, ...]) -> dict[str, Json]:
    return {key: value for key, value in row.items() if key not in keys}


@pytest.mark.parametrize("name", SPOKEN)
def test_the_steps_are_those_of_spans_that_were_left_whole(name: str) -> None:
    spans, _ = DIALECTS[name]()
    bare, records = taken_apart(spans)
    assert len(records) >= 4
    whole, built = build(spans), build(bare, records)
    assert (built.log_attached, built.log_ignored) == (len(records), 0)
    told = ("input",) if name == "strands" else ()  # of its events of one name only the last is left
    assert [without(row, told) for row in rows(built)] == [without(row, told) for row in rows(whole)]
    assert (built.traces[0].task, built.traces[0].answer) == (whole.traces[0].task, whole.traces[0].answer)
    assert [finding.code for finding in built.traces[0].health] == []


@pytest.mark.parametrize("name", ["genai", "openinference", "openllmetry 0.44", "openllmetry langchain", "langsmith"])
def test_attributes_come_back_under_their_names(name: str) -> None:
    for one in DIALECTS[name]()[0]:
        bare, records = taken_out(one)
        found, events = restored(bare, tuple(map(event_of, records)))
        assert found.attributes == one.attributes
        assert events == ()


def test_what_a_span_says_itself_is_not_overwritten_and_other_events_stay() -> None:
    one = span(
        1, None, "find", 0, 1, {"openinference.span.kind": "TOOL", "input.value": "kept", "output.value": "also"}
    )
    _, records = taken_out(replace(one, attributes={**one.attributes, "input.value": "other"}))
    event = Event("exception", 1, {"exception.type": "KeyError"})
    found, events = restored(one, (event, *map(event_of, records)))
    assert found.attributes == one.attributes
    assert events == (event,)


@pytest.mark.parametrize(
    "body",
    [
        {"input": {"messages": None}}, {"input": {"messages": [None, 7, "x", []]}}, {"output": {"messages": [{}]}},
        {"input": {"messages": [{"role": 5, "content": {"content": 1}}]}, "output": "text"}, {"input": []},
        {"output": {"messages": [{"role": "assistant", "content": [{"role": {}}]}]}},
        {"input": {"messages": [{"role": "system", "content": "[{\"type\": 1}]"}, {"role": "", "content": None}]}},
    ],
)  # fmt: skip
def test_senseless_bodies_raise_nothing(body: Json) -> None:
    for name in SPOKEN:
        spans, _ = DIALECTS[name]()
        records = [LogRecord(one.trace_id, one.span_id, 1, "x", body, {}) for one in spans]
        built = build(spans, records)
        assert built.log_attached == len(records)
        json.dumps(rows(built))
