"""Text that is nested without end: it is a value down to the level that attributes have, and text below."""

import json

import pytest

from evalagent.model import Json
from evalagent.traces.anyvalues import DEEPEST, as_text, plain, shallow
from evalagent.traces.unwrapping import arguments, parse, result, structured

MOST = DEEPEST - 1
"""Lists and objects in one another; the level below is what the innermost holds."""


def nested(levels: int) -> str:
    return "[" * levels + '"end"' + "]" * levels


def levels_of(value: Json) -> int:
    level, count = [value], 0
    while level := [item for item in level if isinstance(item, dict | list)]:
        count += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return count


@pytest.mark.parametrize("unwrap", [lambda t: parse(t).value, structured, lambda t: arguments(t).value])
@pytest.mark.parametrize("levels", [MOST - 1, MOST, MOST + 1, 254, 300, 900])
def test_parsed_text_is_nested_no_deeper_than_attributes(unwrap: Json, levels: int) -> None:
    value = unwrap(nested(levels))
    assert levels_of(value) == min(levels, MOST)
    for _ in range(min(levels, MOST)):
        value = value[0]
    assert value == ("end" if levels <= MOST else nested(levels - MOST))


def test_a_result_nested_without_end_stays_within_the_limit() -> None:
    assert levels_of(result(json.dumps({"output": nested(900)})).value) <= MOST
    assert levels_of(parse(nested(300)[:-200]).value) <= MOST


def test_many_brackets_that_are_not_nested_are_the_very_value() -> None:
    rows = [{"n": [number]} for number in range(500)]
    assert parse(json.dumps(rows)).value == rows
    assert shallow(rows) is rows


@pytest.mark.parametrize("levels", [100, 300, 1000, 100_000])
def test_what_is_too_deep_is_kept_whole_as_text(levels: int) -> None:
    value: Json = {"é": ["\ud800", 2**70, None, True, 1.5, [], {}]}
    for _ in range(levels):
        value = [1, value]
    text = as_text(value)
    assert text == "[1," * levels + '{"é":["\ud800",' + str(2**70) + ",null,true,1.5,[],{}]}" + "]" * levels
    assert levels_of(plain(value)) == MOST
