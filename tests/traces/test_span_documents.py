"""Spans and log records survive being stored, whatever they hold."""

import json
import math

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from evalagent.model import Event, Link, LogRecord, Span
from evalagent.traces.span_documents import columns_of, dump, load, log_columns_of, log_of, session_of, span_of

TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=6)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(TEXTS | st.sampled_from(["exact", "columns"]), VALUES, max_size=3)
TIMES = st.integers(min_value=0, max_value=1 << 66)
SPANS = st.builds(
    Span,
    trace_id=TEXTS,
    span_id=TEXTS,
    parent_id=st.none() | TEXTS,
    name=TEXTS,
    start_ns=TIMES,
    end_ns=st.none() | TIMES,
    status=st.sampled_from(["unset", "ok", "error"]),
    status_message=TEXTS,
    attributes=OBJECTS,
    events=st.lists(st.builds(Event, name=TEXTS, time_ns=TIMES, attributes=OBJECTS), max_size=2).map(tuple),
    links=st.lists(st.builds(Link, trace_id=TEXTS, span_id=TEXTS, attributes=OBJECTS), max_size=2).map(tuple),
    scope=TEXTS,
    scope_version=TEXTS,
    resource=OBJECTS,
    dropped_attributes=TIMES,
)
LOGS = st.builds(
    LogRecord, trace_id=TEXTS, span_id=TEXTS, time_ns=TIMES, event_name=TEXTS, body=VALUES, attributes=OBJECTS
)


def same(one: object, other: object) -> bool:
    """Equal in value and type throughout; a NaN equals a NaN."""
    return repr(one) == repr(other)


@given(SPANS)
@settings(max_examples=120, deadline=None)
def test_a_span_comes_back_as_it_was(span: Span) -> None:
    row = columns_of(span)
    assert same(span_of(row), span)
    for text in (row.resource, row.content):
        assert isinstance(json.loads(text, parse_constant=lambda name: 1 / 0), dict)
        orjson.loads(text)
    for value in row:
        assert not isinstance(value, str) or value.encode() is not None
        assert not isinstance(value, int) or -(2**63) <= value < 2**63


@given(LOGS)
@settings(max_examples=100, deadline=None)
def test_a_log_record_comes_back_as_it_was(log: LogRecord) -> None:
    assert same(log_of(log_columns_of(log)), log)


def test_nesting_beyond_the_fast_writer_comes_back() -> None:
    value: dict[str, object] = {}
    for _ in range(300):
        value = {"deeper": value}
    assert load(dump(value)) == value


def test_an_unknown_number_is_not_stored_as_null() -> None:
    assert math.isnan(load(dump({"a": [None, math.nan]}))["a"][1])
    assert dump({"a": None}) == b'{"a":null}'


def test_a_session_is_found_in_every_spelling_and_no_thread_of_the_machine_is_one() -> None:
    def told(**attributes: object) -> str | None:
        return session_of(Span("t", "s", None, "n", 0, 1, attributes=attributes))

    assert told(**{"session.id": "a"}) == "a"
    assert told(**{"gen_ai.conversation.id": "b"}) == "b"
    assert told(**{"traceloop.association.properties.thread_id": "c"}) == "c"
    assert told(**{"ai.telemetry.metadata.sessionId": "d"}) == "d"
    assert told(metadata='{"thread_id": "e"}') == "e"
    assert told(metadata="not JSON _id") is None
    assert told(**{"thread.id": 7}) is None
