"""From a graded end state back to the step that answers for it."""

from evalagent.attribution.attributing import attribute
from evalagent.attribution.effects import findings_from_outcome, responsible_steps
from evalagent.judging.deciding import decide
from evalagent.model import ExpectedChange, Json, Outcome, WorldChange
from tests.checks.parcel_runs import Run, parcel


def update(key: Json, table: str = "parcels", **columns: tuple[Json, Json]) -> WorldChange:
    before = {name: old for name, (old, _) in columns.items()}
    after = {name: new for name, (_, new) in columns.items()}
    return WorldChange(table, key, "update", before, after)


def graded(*unexpected: WorldChange, missing: tuple[dict[str, Json], ...] = ()) -> Outcome:
    wanted = tuple(ExpectedChange(change, False, "it is not there") for change in missing)
    return Outcome("case", 1, "fail", expected=wanted, unexpected=unexpected)


def redirected(locker: int = 88, parcel_id: str = "PX-4711", result: Json = None) -> Run:
    """Looks two parcels up, then redirects one of them and reads it again."""
    run = Run("Send PX-4711 to locker 880, not PX-4712")
    run.asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel(locker=17))
    run.asks(("find_parcel", {"parcel_id": "PX-4712"})).returns(parcel(parcel_id="PX-4712", locker=18))
    run.asks(("redirect", {"parcel_id": parcel_id, "locker": locker})).returns(result or {"status": "ok"})
    run.asks(("find_parcel", {"parcel_id": parcel_id})).returns(parcel(parcel_id=parcel_id, locker=locker))
    return run.answers("It is redirected.")


def test_a_change_goes_back_to_the_call_that_holds_its_key_and_its_new_value() -> None:
    trace = redirected(locker=99).trace()
    outcome = graded(update("PX-4711", locker=(17, 99)))
    assert responsible_steps(trace, outcome) == {0: "t5"}
    [finding] = findings_from_outcome(trace, outcome)
    assert (finding.code, finding.step_id, finding.evidence["call"]) == ("unexpected_change", "m4", "t5")
    assert (finding.evidence["table"], finding.evidence["key"], finding.evidence["columns"]) == (
        "parcels",
        "PX-4711",
        ["locker"],
    )


def test_a_new_value_that_no_argument_holds_is_known_from_the_first_result_that_shows_it() -> None:
    run = Run("Leave PX-4711 alone").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel())
    run.asks(("cancel", {"parcel_id": "PX-4711"})).returns(parcel(state="cancelled"))
    run.asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel(state="cancelled")).answers("Done.")
    assert responsible_steps(run.trace(), graded(update("PX-4711", state=("in transit", "cancelled")))) == {0: "t3"}


def test_a_silent_write_is_the_one_call_on_that_row_that_read_nothing() -> None:
    run = Run("Leave PX-4711 alone").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel())
    run.asks(("cancel", {"parcel_id": "PX-4711"})).returns("ok").answers("Done.")
    change = update("PX-4711", state=("in transit", "void"))
    assert responsible_steps(run.trace(), graded(change)) == {0: "t3"}
    run.asks(("ping", {"parcel_id": "PX-4711"})).returns("ok")
    assert responsible_steps(run.trace(), graded(change)) == {}


def test_an_inserted_row_is_known_by_its_values_whatever_key_the_store_gave_it() -> None:
    run = Run("Hello").asks(("open_claim", {"parcel_id": "PX-4711", "reason": "crushed corner"})).returns({"claim": 31})
    row = {"id": 31, "parcel": "PX-4711", "reason": "crushed corner", "open": True}
    outcome = graded(WorldChange("claims", 31, "insert", None, row))
    assert responsible_steps(run.answers("Done.").trace(), outcome) == {0: "t1"}


def test_a_deleted_row_and_a_written_file_are_traced_too() -> None:
    run = Run("Hello").asks(("remove_claim", {"claim_id": "CL-31"})).returns("ok")
    run.asks(("write", {"path": "outbox/ada.txt", "text": "Dear Ada, your parcel is late."})).returns("ok").answers(
        "Done."
    )
    gone = WorldChange("claims", "CL-31", "delete", {"id": "CL-31", "reason": "crushed"}, None)
    file = WorldChange(
        "outbox/", "ada.txt", "insert", None, {"text": "Dear Ada, your parcel is late.", "sha256": "0", "bytes": 30}
    )
    assert responsible_steps(run.trace(), graded(gone, file)) == {0: "t1", 1: "t3"}


def test_a_failed_call_wrote_nothing() -> None:
    trace = redirected(locker=99, result={"status": "error", "message": "locker full"}).trace()
    assert "t5" not in responsible_steps(trace, graded(update("PX-4711", locker=(17, 99)))).values()


def test_a_change_that_nothing_explains_stands_on_the_whole_trace() -> None:
    outcome = graded(update("PX-0001", table="audit", locker=(1, 2)))
    [finding] = findings_from_outcome(redirected().trace(), outcome)
    assert (finding.step_id, finding.code) == (None, "unexpected_change")


SET: dict[str, Json] = {"table": "parcels", "key": "PX-4711", "set": {"locker": 880}}


def test_a_missing_change_is_put_down_to_the_call_that_failed_for_good() -> None:
    run = Run("Send PX-4711 to locker 880").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel())
    run.asks(("redirect", {"parcel_id": "PX-4711", "locker": 880})).returns(error="HTTP 503").answers("Done.")
    [finding] = findings_from_outcome(run.trace(), graded(missing=(SET,)))
    assert (finding.code, finding.step_id) == ("missing_change", "t3")


def test_a_missing_change_is_put_down_to_the_call_that_was_never_run() -> None:
    run = Run("Send PX-4711 to locker 880").asks(("redirect", {"parcel_id": "PX-4711", "locker": 880})).loses()
    [finding] = findings_from_outcome(run.answers("Done.").trace(), graded(missing=(SET,)))
    assert (finding.step_id, finding.evidence["category"]) == ("m0#c0.0", "F26")


def test_a_missing_change_is_put_down_to_the_step_that_wrote_something_else_instead() -> None:
    trace = redirected(locker=99).trace()
    outcome = graded(update("PX-4711", locker=(17, 99)), missing=(SET,))
    assert [(f.code, f.step_id) for f in findings_from_outcome(trace, outcome)] == [
        ("unexpected_change", "m4"), ("missing_change", "m4"),
    ]  # fmt: skip
    other_row = redirected(locker=880, parcel_id="PX-4712").trace()
    outcome = graded(update("PX-4712", locker=(18, 880)), missing=(SET,))
    assert {f.step_id for f in findings_from_outcome(other_row, outcome)} == {"m4"}


def test_a_missing_change_that_nobody_tried_is_put_down_to_the_answer() -> None:
    run = Run("Send PX-4711 to locker 880").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel())
    [finding] = findings_from_outcome(run.answers("It is done.").trace(), graded(missing=(SET,)))
    assert (finding.step_id, finding.evidence["category"]) == ("m2", "F15")
    assert findings_from_outcome(Run("x").trace(), graded(missing=(SET,)))[0].step_id is None


def test_an_outcome_that_passed_or_was_not_judged_gives_no_finding() -> None:
    trace = redirected().trace()
    assert findings_from_outcome(trace, Outcome("case", 1, "pass")) == ()
    assert (
        findings_from_outcome(trace, Outcome("case", 1, "not_judged", unexpected=(update("PX-4711", locker=(17, 88)),)))
        == ()
    )


def test_the_cause_of_a_wrong_end_state_is_the_step_that_asked_for_the_write() -> None:
    trace = redirected(locker=99).trace()
    findings = findings_from_outcome(trace, graded(update("PX-4711", locker=(17, 99)), missing=(SET,)))
    verdicts = decide(trace, findings, 0.7, show=False).verdicts
    found = attribute(trace, verdicts, findings, True)
    assert (found.first_failing_step, [c.step_id for c in found.root_causes], found.ambiguous) == ("m4", ["m4"], False)


# --- of several calls, and of several steps, the one that it was --------------------------------------


def paid(*amounts: float, results: tuple[Json, ...] = ()) -> Run:
    run = Run("Please pay back parcel PX-4711")
    for n, amount in enumerate(amounts):
        result = results[n] if results else {"status": "ok"}
        run.asks(("pay_back", {"parcel": "PX-4711", "amount": amount})).returns(result)
    return run.answers("Paid back.")


def payment(key: int, amount: float = 12.5) -> WorldChange:
    return WorldChange("payments", key, "insert", None, {"id": key, "parcel": "PX-4711", "amount": amount})


def expected_payment(met: bool = True) -> ExpectedChange:
    return ExpectedChange({"table": "payments", "insert": {"parcel": "PX-4711", "amount": 12.5}}, met, "as expected")


def test_of_equal_calls_those_beyond_the_expected_ones_made_the_unexpected_rows() -> None:
    trace = paid(12.5, 12.5, 12.5).trace()
    outcome = Outcome("case", 1, "fail", expected=(expected_payment(),), unexpected=(payment(8), payment(9)))
    assert responsible_steps(trace, outcome) == {0: "t3", 1: "t5"}
    assert [(f.step_id, f.evidence["own_fault"]) for f in findings_from_outcome(trace, outcome)] == [
        ("m2", "yes"), ("m4", "yes"),
    ]  # fmt: skip


def test_of_equal_calls_with_nothing_expected_the_first_made_the_first_row() -> None:
    outcome = Outcome("case", 1, "fail", unexpected=(payment(8),))
    assert responsible_steps(paid(12.5, 12.5).trace(), outcome) == {0: "t1"}


def test_a_call_whose_result_names_the_new_row_made_it() -> None:
    results: tuple[Json, ...] = ({"payment": 9}, {"payment": 8}, {"payment": 7})
    outcome = Outcome("case", 1, "fail", unexpected=(payment(8),))
    assert responsible_steps(paid(12.5, 12.5, 12.5, results=results).trace(), outcome) == {0: "t3"}


def test_a_call_that_holds_the_values_beats_one_that_wrote_them_into_a_text() -> None:
    run = Run("Leave PX-4711 alone").asks(("cancel", {"parcel_id": "PX-4711"})).returns(parcel(state="cancelled"))
    run.asks(("mail", {"to": "ada", "text": "Parcel PX-4711 is cancelled."})).returns("ok").answers("Done.")
    change = update("PX-4711", state=("in transit", "cancelled"))
    assert responsible_steps(run.trace(), graded(change)) == {0: "t1"}


WANTED: dict[str, Json] = {"table": "parcels", "key": "PX-4712", "set": {"state": "cancelled"}}


def picked(*looked_up: str) -> Run:
    """Lists two parcels, looks some up, cancels PX-4711 where PX-4712 was meant."""
    run = Run("Cancel my newest parcel").asks(("list_parcels", {"customer": "ada"})).returns(["PX-4711", "PX-4712"])
    for parcel_id in looked_up:
        run.asks(("find_parcel", {"parcel_id": parcel_id})).returns(parcel(parcel_id=parcel_id))
    run.asks(("cancel", {"parcel_id": "PX-4711"})).returns({"parcel_id": "PX-4711", "state": "cancelled"})
    return run.answers("Parcel PX-4711 is cancelled.")


def test_a_wrong_row_is_put_down_to_the_step_that_picked_it_and_the_rest_follows_from_it() -> None:
    trace = picked("PX-4711").trace()
    findings = findings_from_outcome(
        trace, graded(update("PX-4711", state=("in transit", "cancelled")), missing=(WANTED,))
    )
    assert [(f.code, f.step_id) for f in findings] == [("unexpected_change", "m4"), ("missing_change", "m2")]
    found = attribute(trace, decide(trace, findings, 0.7, show=False).verdicts, findings, True)
    assert (found.first_failing_step, found.root_causes[0].step_id) == ("m2", "m2")
    assert found.root_causes[0].path == ("m2", "t3", "m4")


def test_where_the_right_row_was_looked_at_too_the_choice_was_made_at_the_write() -> None:
    trace = picked("PX-4711", "PX-4712").trace()
    findings = findings_from_outcome(
        trace, graded(update("PX-4711", state=("in transit", "cancelled")), missing=(WANTED,))
    )
    assert {f.step_id for f in findings} == {"m6"}


# --- whom hearsay does not blame ----------------------------------------------------------------------


def cancelled(*after: tuple[str, Json, Json]) -> Run:
    """Looks a parcel up, cancels it in silence, and makes some more calls."""
    run = Run("Leave PX-4711 alone").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel())
    run.asks(("cancel", {"parcel_id": "PX-4711"})).returns({"ok": True})
    for name, arguments, result in after:
        run.asks((name, arguments)).returns(result)
    return run.answers("Done.")


VOID = update("PX-4711", state=("in transit", "cancelled"))


def test_a_mail_that_tells_of_a_change_did_not_make_it() -> None:
    run = cancelled(("send_mail", {"to": "ada", "text": "Parcel PX-4711 is cancelled."}, {"sent": True}))
    [finding] = findings_from_outcome(run.trace(), graded(VOID))
    assert (finding.step_id, finding.evidence["call"]) == ("m2", "t3")


def test_a_look_at_a_row_after_a_silent_write_did_not_make_the_change() -> None:
    run = cancelled(("find_parcel", {"parcel_id": "PX-4711"}, parcel(state="cancelled")))
    assert responsible_steps(run.trace(), graded(VOID)) == {0: "t3"}
