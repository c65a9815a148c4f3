"""Ids and values have to come from somewhere."""

from dataclasses import replace

import pytest

from evalagent.checks.checking import check
from evalagent.model import Finding, Json, Message, ToolSchema
from tests.checks.parcel_runs import Run, good_run, parcel


def acted_on(
    argument: str, value: Json, said: str = "Look after my parcel PX-4711", result: Json = None
) -> list[Finding]:
    run = Run(said).asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(result or parcel())
    run.asks(("act", {argument: value})).returns({"status": "ok"}).answers("The parcel was looked after.")
    return list(check(run.trace()))


def test_an_id_that_nobody_gave_is_named_on_the_step_that_asked() -> None:
    [finding] = acted_on("parcel_id", "PX-9999")
    assert (finding.code, finding.step_id, finding.severity) == ("id_never_seen", "m2", "error")
    assert (finding.evidence["argument"], finding.evidence["value"]) == ("parcel_id", "PX-9999")


@pytest.mark.parametrize(
    ("argument", "value", "result"),
    [
        ("slot_ref", "SL-5521", {"a": [{"b": {"c": [{"ref": "SL-5521"}]}}]}),
        ("slot_ref", "SL-5521", '{"note": "take slot SL-5521, please"}'),
        ("slot_ref", "SL-5521", "first line\\nSL-5521"),
        ("slot_ref", "sl5521", {"ref": "#SL-5521"}),
        ("slot_ref", "#SL 5521", {"ref": "SL-5521"}),
        ("slot_id", "5521", {"url": "https://post.test/slots/5521?x=1"}),
        ("slot_id", "slots/5521", {"id": 5521}),
        ("slot_id", 5521, {"SL-5521": {"open": True}}),
        ("slot_id", "W123456", {"orders": {"W123456": {"open": True}}}),
        ("customer_id", "ada_lovelace_1815", "Ada Lovelace 1815"),
    ],
)
def test_an_id_that_stood_anywhere_before_is_known(argument: str, value: Json, result: Json) -> None:
    assert acted_on(argument, value, result=result) == []


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("idempotency_key", "7f9c24e8-3b12-4fef-91e0-aa12bb34cc56"),
        ("request_id", "req-20250101-77"),
        ("calendar_id", "primary"),
        ("page", 3),
        ("limit", 5000),
        ("note", "call 3 times, then leave PX-4711 at the door"),
        ("birth_year", 1915),
    ],
)
def test_what_an_agent_may_make_up_is_no_finding(argument: str, value: Json) -> None:
    assert acted_on(argument, value) == []


def test_an_id_from_the_system_text_or_a_tools_declaration_is_known() -> None:
    tools = (ToolSchema("act", "", {"type": "object", "properties": {"depot_id": {"enum": ["DP-100", "DP-200"]}}}),)
    run = Run("Go", tools=tools, system="Our main office is OF-777.")
    run.asks(("act", {"depot_id": "DP-200", "office_id": "OF-777"})).returns({"status": "ok"}).answers("All settled.")
    assert check(run.trace()) == ()


def test_saying_an_invented_id_twice_does_not_make_it_known() -> None:
    run = (
        Run("Find my parcel").asks(("act", {"parcel_id": "PX-5000"}), text="I take PX-5000.").returns({"status": "ok"})
    )
    run.asks(("act", {"parcel_id": "PX-5000", "again": True})).returns({"status": "ok"}).answers("It was found.")
    assert [(f.code, f.step_id) for f in check(run.trace())] == [("id_never_seen", "m0"), ("id_never_seen", "m2")]


def test_an_id_that_only_a_later_or_a_sibling_result_shows_was_not_known() -> None:
    run = Run("Find my parcel").asks(("find", {"name": "Ada"}), ("act", {"parcel_id": "PX-5000"}))
    run.returns({"parcel_id": "PX-5000"}).returns({"status": "ok"}).answers("It was found.")
    assert [(f.code, f.step_id) for f in check(run.trace())] == [("id_never_seen", "m0")]


def test_history_from_before_the_trace_is_given() -> None:
    run = Run("And now that one")
    run.history.insert(0, Message("assistant", "Your other parcel is PX-8080."))
    run.asks(("act", {"parcel_id": "PX-8080"})).returns({"status": "ok"}).answers("It was moved.")
    assert check(run.trace()) == ()


def test_where_something_given_is_missing_from_the_trace_nothing_is_said() -> None:
    run = Run("Find my parcel").asks(("find", {"name": "Ada"})).returns(None)
    run.asks(("act", {"parcel_id": "PX-5000"})).returns({"status": "ok"}).answers("It was found.")
    assert check(run.trace()) == ()
    cut = good_run()
    cut.steps[1] = replace(cut.steps[1], truncated=True, result='{"parcel_id": "PX-47')
    assert [f for f in check(cut.trace()) if f.code == "id_never_seen"] == []


def test_a_guessed_id_that_was_turned_down_and_put_right_is_made_good() -> None:
    run = Run("Where is PX-4711?").asks(("find_parcel", {"parcel_id": "PX-1111"})).returns("Error: parcel not found")
    run.asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel()).answers("PX-4711 is in transit.")
    assert {f.severity for f in check(run.trace())} == {"info"}


AMOUNTS = {"net_cents": 4900, "tax": 9.31, "fees": [{"fee": 12.5}, {"fee": 7.25}], "due": "2025-03-14", "size": 1.2345}


@pytest.mark.parametrize(
    "said",
    [
        "It costs $49.00.",
        "It costs 49,00 €.",
        "It costs 4900 cents.",
        "Fees come to 19.75.",
        "With tax that is 58.31.",
        "Two of them are $98.00.",
        "About 1.23 m³.",
        "It is due on March 14, 2025, or 14.03.2025.",
        "It is due a week later, on 2025-03-21.",
        "That is up 37.5%.",
        "Call 24 hours a day, since 1998.",
    ],
)
def test_amounts_may_be_written_converted_added_and_rounded(said: str) -> None:
    run = Run("What does PX-4711 cost?").asks(("price", {"parcel_id": "PX-4711"})).returns(AMOUNTS).answers(said)
    assert check(run.trace()) == ()


@pytest.mark.parametrize("said", ["It costs $61.27.", "It is due on 2031-11-02.", "Your receipt is RC-77120."])
def test_an_amount_a_day_or_a_code_from_nowhere_is_a_warning_on_the_answer(said: str) -> None:
    run = Run("What does PX-4711 cost?").asks(("price", {"parcel_id": "PX-4711"})).returns(AMOUNTS).answers(said)
    assert [(f.code, f.step_id, f.severity) for f in check(run.trace())] == [("ungrounded_value", "m2", "warning")]


def test_an_amount_from_nowhere_in_an_argument_is_a_warning_on_the_step_that_asked() -> None:
    assert [(f.code, f.step_id) for f in acted_on("refund", 61.27)] == [("ungrounded_value", "m2")]
    assert acted_on("refund", 12.50, result=parcel(paid_cents=1250)) == []


def test_both_checks_can_be_switched_off() -> None:
    run = Run("Go").asks(("act", {"parcel_id": "PX-5000"})).returns({"status": "ok"}).answers("RC-77120 was booked.")
    assert check(run.trace(), None, {"id_never_seen": "off", "ungrounded_value": "off"}) == ()


def test_a_result_that_only_the_next_message_holds_is_enough_to_tell() -> None:
    run = Run("Find my parcel").asks(("find", {"name": "Ada"})).returns({"parcel_id": "PX-4711"})
    run.steps[1] = replace(run.steps[1], result=None, answered_in=("m2",))
    run.asks(("act", {"parcel_id": "PX-4711"})).returns({"status": "ok"})
    run.asks(("act", {"parcel_id": "PX-5000"})).returns({"status": "ok"}).answers("It was moved.")
    assert [(f.code, f.step_id) for f in check(run.trace())] == [("id_never_seen", "m4")]


def test_an_id_told_by_a_call_of_the_same_message_is_no_guess() -> None:
    """Some harnesses tell two messages as one: the first call's result names what the second acts on."""
    run = Run("Look after my parcel").asks(("find_parcels", {"of": "Ada"}), ("get_parcel", {"parcel_id": "PX-8123"}))
    run.returns({"parcels": [{"id": "PX-8123"}]}).returns({"state": "shipped"}).answers("It was shipped.")
    [finding] = check(run.trace())
    assert (finding.code, finding.severity) == ("id_never_seen", "info")
    assert "asked for at the same time" in finding.message


def test_an_id_that_only_its_own_result_tells_was_guessed() -> None:
    run = Run("Look after my parcel").asks(("get_parcel", {"parcel_id": "PX-8123"}))
    run.returns({"id": "PX-8123", "state": "shipped"}).answers("It was shipped.")
    assert [(finding.code, finding.severity) for finding in check(run.trace())] == [("id_never_seen", "error")]
