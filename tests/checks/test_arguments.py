"""Requests held against the tools that were declared."""

from dataclasses import replace

import pytest

from evalagent.checks.checking import check
from evalagent.model import Expectation, Finding, Json, Message, ToolRequest, ToolSchema
from tests.checks.parcel_runs import Run, parcel

REDIRECT = ToolSchema(
    "redirect",
    "sends a parcel elsewhere",
    {
        "type": "object",
        "properties": {
            "parcel_id": {"type": "string"},
            "locker": {"type": "integer"},
            "note": {"type": "string"},
        },
        "required": ["parcel_id", "locker"],
        "additionalProperties": False,
    },
)


def findings(arguments: Json, schema: ToolSchema = REDIRECT, name: str = "redirect") -> list[Finding]:
    run = Run("Send PX-4711 to locker 88, or 880", tools=(schema,)).asks((name, arguments))
    return list(check(run.returns({"status": "ok"}).answers("Parcel PX-4711 goes to locker 88.").trace()))


def test_an_argument_of_the_wrong_type_is_named_on_the_step_that_asked() -> None:
    [finding] = findings({"parcel_id": "PX-4711", "locker": "88"})
    assert (finding.code, finding.step_id, finding.severity) == ("argument_schema", "m0", "error")
    assert finding.evidence["at"] == "locker"


@pytest.mark.parametrize(
    "arguments",
    [
        {"parcel_id": "PX-4711", "locker": 88},
        {"parcel_id": "PX-4711", "locker": 88.0},
        {"parcel_id": "PX-4711", "locker": 88, "note": None},
    ],
)
def test_arguments_that_keep_the_schema_pass(arguments: Json) -> None:
    assert findings(arguments) == []


@pytest.mark.parametrize("arguments", [{"locker": 88}, {"parcel_id": "PX-4711", "locker": 88, "x": 1}, "{not json"])
def test_missing_unknown_and_unreadable_arguments_are_named(arguments: Json) -> None:
    assert [f.code for f in findings(arguments)] == ["argument_schema"]


def test_arguments_that_were_not_captured_break_no_schema() -> None:
    assert findings(None) == []


def test_arguments_that_the_trace_cut_are_never_held_against_the_agent() -> None:
    run = Run("Send PX-4711", tools=(REDIRECT,)).asks(("redirect", {}))
    cut = Message("assistant", "", (ToolRequest("c0.0", "redirect", '{"parcel_id": "PX-', truncated=True),))
    run.steps[0] = replace(run.steps[0], reply=cut, truncated=True)
    assert check(run.returns({"status": "ok"}).answers("Parcel PX-4711 moves.").trace()) == ()


def test_a_tool_that_nobody_declared_is_unknown() -> None:
    [finding] = findings({"parcel_id": "PX-4711"}, name="teleport")
    assert (finding.code, finding.step_id) == ("unknown_tool", "m0")


def test_without_declared_tools_no_tool_is_unknown() -> None:
    run = Run("Go").asks(("teleport", {})).returns({"status": "ok"}).answers("There you are.")
    assert check(run.trace()) == ()
    listed = Expectation(tools=(ToolSchema("redirect"),))
    assert [f.code for f in check(run.trace(), listed)] == ["unknown_tool"]


def test_a_bad_request_that_was_turned_down_and_put_right_is_made_good() -> None:
    run = Run("Send PX-4711 to locker 88", tools=(REDIRECT,))
    run.asks(("redirect", {"parcel_id": "PX-4711", "locker": "88"})).returns("Error: locker must be an integer")
    run.asks(("redirect", {"parcel_id": "PX-4711", "locker": 88})).returns(parcel()).answers("PX-4711 goes to 88.")
    assert {(f.code, f.severity, f.evidence["recovered_by"]) for f in check(run.trace())} == {
        ("argument_schema", "info", "t3"),
        ("soft_error", "info", "t3"),
    }


HOSTILE: list[Json] = [
    {"type": "object", "properties": {"parcel_id": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    {"type": "object", "properties": {"parcel_id": {"type": "string", "pattern": "^(a+)+$"}}},
    {"type": "object", "patternProperties": {"^(a+)+$": {"type": "integer"}}},
    {"type": "object", "$ref": "#"},
    {"type": "object", "properties": {"parcel_id": {"$ref": "#/$defs/a0"}}, "$defs": {
        **{f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}, "a40": {}}},
    {"type": "no such type"},
    {"type": "object", "required": 7},
]  # fmt: skip


@pytest.mark.parametrize("schema", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.timeout(20)
def test_a_hostile_schema_neither_reaches_out_nor_hangs_nor_blames(schema: Json) -> None:
    assert findings({"parcel_id": "PX-4711 " + "a" * 60}, ToolSchema("redirect", "", schema)) == []


def test_types_in_capitals_are_understood() -> None:
    shouting = {"type": "OBJECT", "properties": {"locker": {"type": "INTEGER"}}}
    assert [f.code for f in findings({"locker": "88"}, ToolSchema("redirect", "", shouting))] == ["argument_schema"]
    assert findings({"locker": 88}, ToolSchema("redirect", "", shouting)) == []


def test_an_agent_of_the_run_may_be_called_by_its_name() -> None:
    run = Run("Weigh it", tools=(REDIRECT,)).asks(("scales", {"task": "weigh it"})).returns({"grams": 12})
    assert [f.code for f in check(run.trace())] == ["unknown_tool"]
    run.answers("It weighs 12 g.", agent="scales")
    assert check(run.trace()) == ()
