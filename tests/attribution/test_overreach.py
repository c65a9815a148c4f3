"""A tool that did more than it was asked to, and changes that only weaker evidence explains."""

import time

import pytest

from evalagent.attribution.attributing import attribute
from evalagent.attribution.effects import findings_from_outcome, responsible_steps
from evalagent.judging.deciding import decide
from evalagent.model import Attribution, ExpectedChange, Finding, Json, Outcome, Trace, Verdict, WorldChange
from tests.checks.parcel_runs import TRACE, Run


def lent(key: int, to: str = "max", before: Json = None) -> WorldChange:
    return WorldChange("books", key, "update", {"lent_to": before}, {"lent_to": to})


def expected(key: int = 1, to: Json = "max", met: bool = True) -> ExpectedChange:
    return ExpectedChange({"table": "books", "key": key, "set": {"lent_to": to}}, met, "as expected")


def failed(*unexpected: WorldChange, wanted: tuple[ExpectedChange, ...] = (expected(),)) -> Outcome:
    return Outcome("case", 1, "fail", expected=wanted, unexpected=unexpected)


def lending(*books: int, result: Json = None, said: str = "Lent.") -> Run:
    run = Run("Please lend 'Dune' to max")
    run.asks(("find_book", {"title": "Dune"})).returns({"books": [{"id": 1, "title": "Dune", "lent_to": None}]})
    for book in books or (1,):
        run.asks(("lend_book", {"book_id": book, "member": "max"})).returns(result or {"ok": True})
    return run.answers(said)


def explained(trace: Trace, outcome: Outcome) -> tuple[tuple[Finding, ...], dict[str, Verdict], Attribution]:
    findings = findings_from_outcome(trace, outcome)
    verdicts = dict(decide(trace, findings, 0.7, show=False).verdicts)
    return findings, verdicts, attribute(trace, verdicts, findings, True)


@pytest.mark.parametrize(
    "result", [None, {"ok": True, "book_id": 1, "lent_to": "max"}, {"lent": [1, 10, 12], "lent_to": "max"}]
)
def test_a_tool_that_changed_other_rows_than_it_was_asked_for_is_the_cause_itself(result: Json) -> None:
    findings, verdicts, found = explained(lending(result=result).trace(), failed(lent(10), lent(12)))
    assert [(f.step_id, f.evidence["own_fault"], f.evidence["category"]) for f in findings] == [
        ("t3", "yes", "F27")
    ] * 2
    assert "`lend_book` (step t3)" in findings[0].message
    assert "did more than it was asked to" in findings[0].message
    assert "the expected update of books 1 (lent_to)" in findings[0].message
    assert (verdicts["t3"].verdict, verdicts["t3"].own_fault, verdicts["t3"].category) == ("fail", "yes", "F27")
    assert verdicts["t1"].verdict == "pass"
    assert (found.first_failing_step, [c.step_id for c in found.root_causes], found.ambiguous) == ("t3", ["t3"], False)
    assert (found.root_causes[0].category, found.root_causes[0].path) == ("F27", ("t3",))


def test_a_row_asked_for_by_mistake_is_the_models_and_the_others_are_the_tools() -> None:
    outcome = failed(lent(1), lent(10), lent(12), wanted=())
    findings, _, found = explained(lending(1).trace(), outcome)
    assert [(f.step_id, f.evidence["call"]) for f in findings] == [("m2", "t3"), ("t3", "t3"), ("t3", "t3")]
    assert sorted(c.step_id for c in found.root_causes) == ["m2", "t3"]
    assert not found.ambiguous


def test_who_lists_the_rows_afterwards_did_not_change_them() -> None:
    run = lending(1)
    rows: Json = [{"id": n, "lent_to": "max"} for n in (1, 10, 12)]
    run.asks(("list_books", {})).returns(rows).answers("Lent.")
    assert responsible_steps(run.trace(), failed(lent(10), lent(12))) == {0: "t3", 1: "t3"}


def test_of_two_calls_the_one_that_holds_the_new_value_did_more() -> None:
    run = lending(1)
    run.asks(("lend_book", {"book_id": 2, "member": "zoe"})).returns({"ok": True}).answers("Lent.")
    wanted = (expected(), expected(2, "zoe"))
    assert responsible_steps(run.trace(), failed(lent(10), wanted=wanted)) == {0: "t3"}
    assert responsible_steps(run.trace(), failed(lent(20, "zoe"), wanted=wanted)) == {0: "t6"}


def test_of_calls_that_are_equally_likely_none_is_blamed_and_all_are_listed() -> None:
    trace = lending(1, 2).trace()
    findings, verdicts, found = explained(trace, failed(lent(10), wanted=(expected(), expected(2))))
    [finding] = findings
    assert (finding.step_id, finding.evidence["candidates"]) == (None, ["t3", "t5"])
    assert "equally likely" in finding.message
    assert "t3" not in verdicts and "t5" not in verdicts  # left to a judge, since neither is known to be right
    assert [c.step_id for c in found.root_causes] == ["t3", "t5"]
    assert (found.verdict, found.first_failing_step, found.ambiguous) == ("fail", None, True)
    assert "another call may as well have done it" in found.root_causes[0].reason


def test_of_likely_calls_the_one_that_is_known_to_have_done_it_elsewhere_did_it_here() -> None:
    run = lending(1)
    run.asks(("remind", {"book_id": 10})).returns({"ok": True}).answers("Lent.")
    trace = run.trace()
    assert responsible_steps(trace, failed(lent(10))) == {}
    assert responsible_steps(trace, failed(lent(10), lent(12))) == {0: "t3", 1: "t3"}


def test_a_number_that_equals_a_key_names_no_row() -> None:
    run = lending(1)
    run.asks(("find_book", {"title": "Emma", "limit": 10})).returns({"books": []}).answers("Lent.")
    assert responsible_steps(run.trace(), failed(lent(10))) == {0: "t3"}


def test_a_look_at_a_row_that_showed_it_as_it_was_did_not_change_it() -> None:
    run = Run("Lend 1").asks(("get_book", {"book_id": 10})).returns({"id": 10, "title": "Ulysses", "lent_to": None})
    run.asks(("lend_book", {"book_id": 1, "member": "max"})).returns({"ok": True}).answers("Lent.")
    assert responsible_steps(run.trace(), failed(lent(10))) == {0: "t3"}


def test_a_call_that_names_the_row_and_whose_tool_does_such_things_was_asked_to() -> None:
    run = (
        Run("Cancel PX-2").asks(("cancel", {"id": "PX-1"})).returns("ok").asks(("cancel", {"id": "PX-2"})).returns("ok")
    )
    run.asks(("ping", {"id": "PX-1"})).returns("ok").answers("Done.")
    wanted = ExpectedChange({"table": "parcels", "key": "PX-2", "set": {"state": "void"}}, True, "as expected")
    change = WorldChange("parcels", "PX-1", "update", {"state": "open"}, {"state": "void"})
    [finding] = findings_from_outcome(run.trace(), failed(change, wanted=(wanted,)))
    assert (finding.step_id, finding.evidence["call"]) == ("m0", "t1")


def test_rows_of_one_wish_are_the_wish_of_who_asked() -> None:
    run = Run("Close what ada ordered on Monday").asks(("close_orders", {"customer": "ada"}))
    run.returns({"status": "closed", "orders": [5, 7]}).answers("Closed.")
    wanted = ExpectedChange({"table": "orders", "key": 5, "set": {"status": "closed"}}, True, "as expected")
    change = WorldChange("orders", 7, "update", {"status": "open"}, {"status": "closed"})
    [finding] = findings_from_outcome(run.trace(), failed(change, wanted=(wanted,)))
    assert finding.step_id == "m0"


def test_a_second_row_like_the_expected_one_from_one_call_is_the_tools() -> None:
    run = Run("Pay 12.5 for order 5").asks(("pay", {"order": 5, "amount": 12.5})).returns({"ok": True}).answers("Paid.")
    row: Json = {"id": 9, "order": 5, "amount": 12.5}
    wanted = ExpectedChange({"table": "payments", "insert": {"order": 5, "amount": 12.5}}, True, "as expected")
    again = WorldChange("payments", 9, "insert", None, row)
    [finding] = findings_from_outcome(run.trace(), failed(again, wanted=(wanted,)))
    assert (finding.step_id, finding.evidence["own_fault"]) == ("t1", "yes")


def test_deleted_rows_beyond_the_one_asked_for_are_the_tools() -> None:
    run = Run("Remove 1").asks(("find_book", {"book_id": 1})).returns({"id": 1, "title": "Dune", "shelf": "B7"})
    run.asks(("remove_book", {"book_id": 1})).returns({"removed": True}).answers("Removed.")
    wanted = ExpectedChange({"table": "books", "key": 1, "delete": True}, True, "as expected")
    gone = WorldChange("books", 10, "delete", {"id": 10, "title": "Ulysses", "shelf": "C1"}, None)
    assert responsible_steps(run.trace(), failed(gone, wanted=(wanted,))) == {0: "t3"}


def test_another_kind_of_change_or_other_columns_are_no_evidence() -> None:
    trace = lending(1).trace()
    gone = WorldChange("books", 10, "delete", {"id": 10, "title": "Ulysses"}, None)
    priced = WorldChange("books", 10, "update", {"price": 3}, {"price": 4})
    loans = WorldChange("loans", 10, "update", {"lent_to": None}, {"lent_to": "zoe"})
    assert responsible_steps(trace, failed(gone, priced, loans)) == {}


def test_the_only_call_of_a_run_made_what_nothing_else_explains() -> None:
    run = Run("Tidy up").asks(("tidy", {"shelf": "B7"})).returns("ok").answers("Tidy.")
    change = WorldChange("books", 10, "update", {"price": 3}, {"price": 4})
    findings, verdicts, found = explained(run.trace(), failed(change, wanted=()))
    assert [(f.step_id, f.evidence["own_fault"]) for f in findings] == [("t1", "unknown")]
    assert "the only call" in findings[0].message
    assert (verdicts["t1"].verdict, [c.step_id for c in found.root_causes]) == ("fail", ["t1"])
    assert found.ambiguous  # whether the model asked for too much, nobody judged


def test_a_change_that_no_call_explains_is_said_to_be_so_and_is_not_ambiguous() -> None:
    change = WorldChange("audit", 3, "update", {"n": 1}, {"n": 2})
    findings, verdicts, found = explained(lending(1).trace(), failed(change))
    assert [f.step_id for f in findings] == [None]
    assert "no call in the trace explains it" in findings[0].message
    assert verdicts["t3"].verdict == "pass"
    assert (found.verdict, found.first_failing_step, found.root_causes, found.ambiguous) == ("fail", None, (), False)


def test_a_failing_wish_does_not_take_the_tools_fault_over() -> None:
    trace = lending(1).trace()
    findings = findings_from_outcome(trace, failed(lent(10)))
    wish = Finding(TRACE, "m2", "id_never_seen", "error", "made up")
    verdicts = decide(trace, (*findings, wish), 0.7, show=False).verdicts
    found = attribute(trace, verdicts, (*findings, wish), True)
    assert {c.step_id: c.path[0] for c in found.root_causes} == {"m2": "m2", "t3": "t3"}


def test_many_changes_and_many_calls_take_linear_time() -> None:
    def took(size: int) -> float:
        trace = lending(*range(1, size)).trace()
        wanted = tuple(expected(n) for n in range(1, size))
        outcome = failed(*(lent(10**6 + n) for n in range(size)), wanted=wanted)
        start = time.process_time()
        findings_from_outcome(trace, outcome)
        return time.process_time() - start

    small, large = (min(took(size) for _ in range(2)) for size in (150, 600))
    assert large < small * 12
