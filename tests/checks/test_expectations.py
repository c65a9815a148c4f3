"""What a case expects of calls, path and answer; and what a suite may set."""

import pytest

from evalagent.checks.checking import check, known_codes
from evalagent.errors import UsageError
from evalagent.model import Expectation, Finding, Json
from evalagent.taxonomy import leaf
from tests.checks.parcel_runs import Run, good_run, parcel


def held(run: Run, **expected: Json) -> list[tuple[str, str | None]]:
    return [(f.code, f.step_id) for f in check(run.trace(), Expectation(**expected)) if f.severity == "error"]


def test_expected_calls_that_were_made_leave_nothing_to_say() -> None:
    wanted = (("find_parcel", None), ("redirect", {"slot_ref": "SL-5521", "fee": 3.50}))
    assert held(good_run(), wanted_tools=wanted) == []


def test_a_wanted_call_that_was_never_made_is_missing_from_the_trace() -> None:
    assert held(good_run(), wanted_tools=(("notify", None),)) == [("missing_tool", None)]


def test_a_wanted_call_that_failed_each_time_is_missing() -> None:
    run = Run("Tell me").asks(("notify", {"to": "ada"})).returns(error="HTTP 500").answers("I could not send it.")
    assert ("missing_tool", None) in held(run, wanted_tools=(("notify", None),))


@pytest.mark.parametrize(("fee", "found"), [(3.5, False), (3.50, False), (4, True), ("3.5", True)])
def test_an_expected_argument_is_compared_by_type_and_value(fee: Json, found: bool) -> None:
    wanted = (("redirect", {"fee": fee}),)
    assert held(good_run(), wanted_tools=wanted) == ([("wrong_argument_value", "m2")] if found else [])


def test_each_expected_call_takes_a_call_of_its_own() -> None:
    run = Run("Weigh PX-4711 and PX-4712")
    for name in ("PX-4711", "PX-4712"):
        run.asks(("weigh", {"parcel_id": name})).returns({"grams": 12})
    run.answers("Weighed.")
    assert held(run, wanted_tools=(("weigh", {"parcel_id": "PX-4712"}), ("weigh", {"parcel_id": "PX-4711"}))) == []
    assert held(run, wanted_tools=(("weigh", None),) * 3) == [("missing_tool", None)]


def test_forbidden_and_needless_calls_stand_on_the_step_that_chose_them() -> None:
    assert held(good_run(), forbidden_tools=("redirect",)) == [("forbidden_tool", "m2")]
    assert held(good_run(), no_tools=True) == [("needless_tool", "m0"), ("needless_tool", "m2")]


def routed(*nodes: str) -> Run:
    run = Run("Hello")
    for node in nodes:
        run.answers(f"Here is {node}.", node=node)
    return run


@pytest.mark.parametrize(
    ("path", "ok"),
    [
        (["sort", "load", "drive"], True),
        (["sort", "drive", "load"], False),
        ({"mode": "unordered", "nodes": ["drive", "sort", "load"]}, True),
        ({"mode": "unordered", "nodes": ["drive", "sort"]}, False),
        ({"mode": "subset", "nodes": ["drive", "sort", "load", "park"]}, True),
        ({"mode": "subset", "nodes": ["drive", "sort"]}, False),
        ({"mode": "superset", "nodes": ["drive", "sort"]}, True),
        ({"mode": "superset", "nodes": ["park"]}, False),
    ],
)
def test_a_path_is_compared_in_the_mode_that_the_case_says(path: Json, ok: bool) -> None:
    assert held(routed("sort", "load", "load", "drive"), path=path) == ([] if ok else [("path_mismatch", None)])


@pytest.mark.parametrize(
    ("path", "key"),
    [({"mode": "loose", "nodes": ["a"]}, "expected.path.mode"), ({"nodes": 3}, "expected.path.nodes"),
     ({"nodes": ["a"], "edges": []}, "expected.path.edges"), ([], "expected.path.nodes")],
)  # fmt: skip
def test_a_path_that_cannot_be_read_is_wrong_use_and_names_the_key(path: Json, key: str) -> None:
    with pytest.raises(UsageError) as raised:
        check(good_run().trace(), Expectation(path=path))
    assert raised.value.key == key


def test_a_hand_off_to_an_agent_that_the_case_does_not_foresee_is_named() -> None:
    run = routed().asks(("billing", {}), agent="front").returns({}, kind="handoff").answers("Paid.", agent="billing")
    assert ("wrong_agent", "m0") in held(run, path=["front", "shipping"])


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (4900, "You get $49.00 back."),
        (4900, "You get 4,900 points."),
        (49, "You get 49,00 € back."),
        (49.0, "You get 4900 cents back."),
        (1234.5, "That is 1.234,50 EUR."),
        ("$49.00", "You get 49 dollars."),
        ("RC-90210", "Receipt `rc-90210`."),
        ("#W11", "Order W11 it is."),
        ("2025-03-14", "It comes on March 14th, 2025."),
        ("2025-03-14", "It comes on 14 March."),
        ("2025-03-14", "It comes on 03/14/2025."),
        ("May 3, 2025", "On 2025-05-03."),
        (True, "Yes."),
        (["west", "east"], "From East to West."),
    ],
)
def test_a_value_is_stated_however_it_is_spelt(value: Json, answer: str) -> None:
    assert held(Run("How much?").answers(answer), reply_values=(value,)) == []


@pytest.mark.parametrize(
    ("value", "answer"),
    [(4900, "You get $48.00 back."), (49, "Gate 490."), ("RC-9", "Receipt RC-90."), ("2025-03-14", "On 2025-03-15."),
     (49, "You get 4900 cats."), ("west", "westward"), (["west", "east"], "East.")],
)  # fmt: skip
def test_a_value_that_is_not_stated_is_missing_on_the_answering_step(value: Json, answer: str) -> None:
    assert held(Run("How much?").answers(answer), reply_values=(value,)) == [("missing_value", "m0")]


def test_in_a_conversation_a_value_may_be_stated_in_any_turn() -> None:
    run = Run("How much?").answers("It is $49.00.").says("Thanks.").answers("You are welcome.")
    assert held(run, reply_values=(4900,)) == []


def test_an_empty_answer_is_named_and_a_final_call_is_none() -> None:
    assert held(Run("Hello").answers("  ")) == [("empty_answer", "m0")]
    assert held(Run("Hello").asks(("pass_on", {})).returns({"status": "ok"})) == []


def test_an_answer_that_was_not_captured_is_not_held_to_be_empty() -> None:
    run = Run("Hello").answers("", content=False)
    assert held(run, reply_values=()) == []


def test_a_check_can_be_switched_off_tuned_and_weighed() -> None:
    run = Run("Find a locker")
    for _ in range(3):
        run.asks(("list_lockers", {})).returns({"lockers": ["west"]})
    trace = run.answers("West.").trace()
    assert [f.severity for f in check(trace, None, {"loop": {"times": 3}})] == ["warning"]
    assert [f.severity for f in check(trace, None, {"loop": {"times": 2, "severity": "error"}})] == ["error"]
    assert check(trace, None, {"loop": "off"}) == check(trace, None, {"loop": False}) == ()


@pytest.mark.parametrize(
    ("settings", "key"),
    [({"lop": "off"}, "checks.lop"), ({"loop": {"tims": 3}}, "checks.loop.tims"),
     ({"loop": {"times": 0}}, "checks.loop.times"),
     ({"loop": "loud"}, "checks.loop"), ({"loop": {"severity": "loud"}}, "checks.loop.severity")],
)  # fmt: skip
def test_a_setting_that_does_not_exist_is_wrong_use_and_names_the_key(settings: Json, key: str) -> None:
    with pytest.raises(UsageError) as raised:
        check(good_run().trace(), None, settings)
    assert raised.value.key == key


def test_every_code_has_a_meaning_and_a_class_of_the_taxonomy() -> None:
    for code, info in known_codes().items():
        assert info.meaning and info.severity in ("error", "warning"), code
        assert info.category is not None and leaf(info.category), code


def test_every_finding_has_a_known_code() -> None:
    run = Run("Redirect PX-4711").asks(("redirect", {"parcel_id": "PX-9999"})).returns({"error": "locker full"})
    findings: tuple[Finding, ...] = check(
        run.answers("Done.").trace(), Expectation(no_tools=True, reply_values=(parcel(),))
    )
    assert {f.code for f in findings} <= set(known_codes())
    assert len({f.code for f in findings}) == 5


# --- with which values, and who chose them -------------------------------------------------------------


def of(findings: tuple[Finding, ...], code: str) -> list[Finding]:
    return [f for f in findings if f.code == code and f.severity == "error"]


def test_a_lone_argument_without_its_name_is_read_from_the_request() -> None:
    run = Run("Where is PX-4711?").asks(("find_parcel", {"parcel_id": "PX-4712"}))
    run.returns(parcel(parcel_id="PX-4712"), arguments="PX-4712")
    wanted = Expectation(wanted_tools=(("find_parcel", {"parcel_id": "PX-4711"}),))
    [finding] = of(check(run.answers("Under way.").trace(), wanted), "wrong_argument_value")
    assert (finding.step_id, finding.evidence["own_fault"]) == ("m0", "yes")
    right = Run("Where is PX-4711?").asks(("find_parcel", {"parcel_id": "PX-4711"}))
    right.returns(parcel(), arguments="PX-4711")
    assert of(check(right.answers("Under way.").trace(), wanted), "wrong_argument_value") == []


def test_a_wrong_value_is_also_held_against_the_step_that_picked_it_first() -> None:
    run = Run("Cancel my newest").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel())
    run.asks(("cancel", {"parcel_id": "PX-4711"})).returns("ok").answers("Done.")
    wanted = Expectation(wanted_tools=(("cancel", {"parcel_id": "PX-4712"}),))
    found = of(check(run.trace(), wanted), "wrong_argument_value")
    assert [(f.step_id, f.evidence["own_fault"]) for f in found] == [("m0", "yes"), ("m2", "unknown")]


def test_where_the_right_value_was_asked_for_too_only_the_expected_call_was_wrong() -> None:
    run = Run("Cancel my newest").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel())
    run.asks(("find_parcel", {"parcel_id": "PX-4712"})).returns(parcel(parcel_id="PX-4712"))
    run.asks(("cancel", {"parcel_id": "PX-4711"})).returns("ok").answers("Done.")
    wanted = Expectation(wanted_tools=(("cancel", {"parcel_id": "PX-4712"}),))
    assert [f.step_id for f in of(check(run.trace(), wanted), "wrong_argument_value")] == ["m4"]


def test_a_failed_call_with_other_values_is_wrong_and_one_with_the_right_ones_is_missing() -> None:
    run = Run("Cancel PX-4712").asks(("cancel", {"parcel_id": "PX-9999"})).returns(error="no such parcel")
    wanted = Expectation(wanted_tools=(("cancel", {"parcel_id": "PX-9999"}),))
    other = Expectation(wanted_tools=(("cancel", {"parcel_id": "PX-4712"}),))
    trace = run.answers("Sorry.").trace()
    assert [f.step_id for f in of(check(trace, other), "wrong_argument_value")] == ["m0"]
    assert [f.step_id for f in of(check(trace, wanted), "missing_tool")] == [None]


def test_a_closing_courtesy_is_no_question() -> None:
    run = Run("Cancel PX-4711").asks(("cancel", {"parcel_id": "PX-4711"})).returns({"error": "it is delivered"})
    assert of(check(run.answers("All done. Is there anything else I can do?").trace()), "false_success")
    asked = Run("Cancel PX-4711").asks(("cancel", {"parcel_id": "PX-4711"})).returns({"error": "it is delivered"})
    assert not of(check(asked.answers("It was sent. What else should I try?").trace()), "false_success")
