"""What dialects wrap around values comes off, and nothing raises."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalagent.model import Json
from evalagent.traces.messages import Reader
from evalagent.traces.unwrapping import arguments, canonical, collapsed, looks_cut, parse, plain, result

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=4) | st.lists(JSON, max_size=4))
def test_json_in_text_is_the_value_and_never_looks_cut(value: Json) -> None:
    text = json.dumps(value)
    assert canonical(parse(text).value) == canonical(value)
    assert not parse(text).truncated
    assert not looks_cut(text)


_TEXTS = st.text() | st.sampled_from((':1.0,"', "\\ 2.0", "-0.0", "[7e-3]", "3.0"))
_NUMBERED = st.recursive(
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-99, 99).map(float) | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=8,
)


@given(_NUMBERED)
def test_canonical_text_is_that_of_the_value_with_whole_numbers_for_floats_without_fraction(value: Json) -> None:
    parsed = json.loads(json.dumps(value), parse_float=lambda t: int(float(t)) if float(t).is_integer() else float(t))
    assert canonical(value) == json.dumps(parsed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(st.dictionaries(st.text(min_size=1), JSON, min_size=1, max_size=4), st.data())
def test_json_cut_anywhere_is_marked_and_never_raises(value: dict[str, Json], data: st.DataObject) -> None:
    text = json.dumps(value)
    parsed = parse(text[: data.draw(st.integers(2, len(text) - 1))])
    assert parsed.truncated


@given(JSON)
def test_any_value_passes_through_every_unwrapping(value: Json) -> None:
    for text in (value, json.dumps(value)):
        arguments(text)
        result(text)
        plain(text)
        Reader().many(text)
        Reader().tools(text)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(min_size=1)), min_size=1, max_size=8))
def test_a_history_read_on_from_an_earlier_one_is_the_same_as_read_whole(turns: list[tuple[str, str]]) -> None:
    whole = [{"role": role, "content": text} for role, text in turns]
    reader = Reader()
    for size in range(1, len(whole) + 1):
        found, cut = reader.many(json.dumps(whole[:size]))
        assert [(m.role, m.text) for m in found] == turns[:size]
        assert not cut


@pytest.mark.parametrize("packed", [
    {"args": [], "kwargs": {"city": "Rome"}},
    {"input_str": "{'city': 'Rome'}", "inputs": {"city": "Rome"}, "metadata": {}},
    {"input_str": "{'city': 'Rome'}"},
    {"args": [], "sanitize_inputs_outputs": True, "kwargs": {"city": "Rome"}},
    '{"city": "Rome"}',
    '"{\\"city\\": \\"Rome\\"}"',
    "{'city': 'Rome'}",
])  # fmt: skip
def test_packed_arguments_are_the_arguments(packed: Json) -> None:
    text = packed if isinstance(packed, str) else json.dumps(packed)
    assert arguments(text).value == {"city": "Rome"}


@pytest.mark.parametrize("packed", [
    "18 C",
    [{"type": "text", "text": "18 C"}],
    {"output": {"lc": 1, "id": ["ToolMessage"], "kwargs": {"content": "18 C", "tool_call_id": "c1"}}},
    {"type": "tool", "data": {"content": "18 C", "tool_call_id": "c1", "status": "success"}},
    [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "18 C"}]}}],
    {"type": "text", "value": "18 C"},
    {"content": [{"type": "text", "text": "18 C"}], "isError": False},
])  # fmt: skip
def test_packed_results_are_the_result(packed: Json) -> None:
    found = result(packed if isinstance(packed, str) else json.dumps(packed))
    assert found.value == "18 C"
    assert found.call_id in (None, "c1")
    assert not found.failed


def test_numbers_are_equal_by_value_and_texts_are_not_numbers() -> None:
    assert canonical({"b": 18.0, "a": 1}) == canonical({"a": 1, "b": 18})
    assert canonical({"b": "18"}) != canonical({"b": 18})
    assert canonical("1.0") != canonical("1")
    assert canonical([1e16, -0.0, 1e-5, 2.50, 'a":1.0,']) == '[10000000000000000,0,1e-05,2.5,"a\\":1.0,"]'
    assert collapsed(" a\n\t b ") == "a b"


def test_depth_that_would_break_a_parser_is_text() -> None:
    deep = "[" * 100_000
    assert parse(deep).value == deep
    assert result(deep).value == deep
