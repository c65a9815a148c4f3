"""Failed calls, what makes them good, repetition, loops, and calls that were lost."""

from dataclasses import replace

import pytest

from evalagent.checks.checking import check
from evalagent.model import Edge, Finding, Json, Message, ToolRequest
from tests.checks.parcel_runs import Run, good_run, parcel


def of(findings: tuple[Finding, ...], code: str) -> list[Finding]:
    return [f for f in findings if f.code == code]


def errors(run: Run) -> list[tuple[str, str | None]]:
    return [(f.code, f.step_id) for f in check(run.trace()) if f.severity == "error"]


def test_a_good_run_has_no_finding_at_all() -> None:
    assert check(good_run().trace()) == ()


def test_an_error_inside_a_result_is_found_in_spite_of_its_status() -> None:
    run = Run("Redirect PX-4711").asks(("redirect", {"parcel_id": "PX-4711"}))
    run.returns({"status": "error", "message": "locker full"}).answers("Parcel PX-4711 has been redirected.")
    assert errors(run) == [("soft_error", "t1"), ("false_success", "m2")]


def test_a_failure_that_the_answer_admits_is_no_false_success() -> None:
    run = Run("Redirect PX-4711").asks(("redirect", {"parcel_id": "PX-4711"}))
    run.returns({"status": "error", "message": "locker full"}).answers("I could not redirect PX-4711: locker full.")
    assert errors(run) == [("soft_error", "t1")]


def test_the_same_call_that_succeeds_later_makes_a_failure_good() -> None:
    run = Run("Where is PX-4711?").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(error="HTTP 503")
    run.asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel()).answers("It is in transit.")
    [finding] = check(run.trace())
    assert (finding.code, finding.step_id, finding.severity) == ("tool_error", "t1", "info")
    assert finding.evidence["recovered_by"] == "t3"


def test_a_corrected_argument_makes_a_failure_good() -> None:
    run = Run("Where is my parcel? I am ada@post.test, or ada@mail.test")
    run.asks(("find_customer", {"email": "ada@post.test"})).returns("Error: customer not found")
    run.asks(("find_customer", {"email": "ada@mail.test"})).returns({"customer": "Ada"}).answers("Hello Ada.")
    assert [f.evidence["recovered_by"] for f in check(run.trace())] == ["t3"]


def test_success_for_another_target_does_not_make_a_refusal_good() -> None:
    run = Run("Redirect PX-4711 and PX-4712")
    run.asks(("redirect", {"parcel_id": "PX-4711", "locker": "west"})).returns("Error: already delivered")
    run.asks(("redirect", {"parcel_id": "PX-4712", "locker": "west"})).returns({"status": "ok"})
    run.answers("Both parcels, PX-4711 and PX-4712, have been redirected.")
    assert errors(run) == [("soft_error", "t1"), ("false_success", "m4")]


def test_a_sister_tool_makes_a_lookup_good() -> None:
    run = Run("I am Ada, zip 1010, ada@post.test")
    run.asks(("find_customer_by_email", {"email": "ada@post.test"})).returns("Error: customer not found")
    run.asks(("find_customer_by_name_zip", {"name": "Ada", "zip": "1010"})).returns({"customer": "Ada"}).answers(
        "Hi Ada."
    )
    assert errors(run) == []


def test_a_lookup_of_the_same_thing_does_not_make_a_failed_change_good() -> None:
    run = Run("Cancel PX-4711").asks(("cancel_parcel", {"parcel_id": "PX-4711"})).returns(error="HTTP 500")
    run.asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(parcel()).answers("PX-4711 has been cancelled.")
    assert errors(run) == [("tool_error", "t1"), ("false_success", "m4")]


def test_a_refusal_that_the_user_was_told_and_answered_is_dealt_with() -> None:
    run = Run("Cancel PX-4711").asks(("cancel_parcel", {"parcel_id": "PX-4711"})).returns("Error: already on the road")
    run.answers("I am sorry, it cannot be cancelled any more.").says("Fine, leave it.").answers("As you wish.")
    [finding] = check(run.trace())
    assert (finding.severity, finding.evidence["recovered_by"]) == ("info", "m2")


def test_an_unchanged_repetition_of_a_failed_call_is_named() -> None:
    run = Run("Where is PX-4711?").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(error="not found")
    run.asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(error="not found").answers("It is fine, all done.")
    assert ("repeated_failing_call", "t3") in errors(run)
    assert ("false_success", "m4") in errors(run)


def test_a_repetition_after_something_changed_is_not_named() -> None:
    run = Run("Where is PX-4711?").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(error="not found")
    run.asks(("sync", {})).returns({"status": "ok"})
    run.asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(error="not found").answers("I cannot find it.")
    assert of(check(run.trace()), "repeated_failing_call") == []


def test_a_retry_by_the_code_for_one_request_is_not_the_agents_repetition() -> None:
    run = Run("Where is PX-4711?").asks(("find_parcel", {"parcel_id": "PX-4711"})).returns(error="HTTP 503")
    trace = run.trace()
    again = replace(trace.steps[1], step_id="t9", span_ids=("t9",), parents=(Edge("t1", "retry", 1.0),), start_ns=90)
    findings = check(replace(trace, steps=(*trace.steps, again)))
    assert [f.code for f in findings] == ["tool_error", "tool_error"]


@pytest.mark.parametrize(("times", "found"), [(3, 0), (4, 1), (6, 1)])
def test_the_same_call_with_the_same_result_is_a_loop_from_the_fourth_time(times: int, found: int) -> None:
    run = Run("Find a locker")
    for _ in range(times):
        run.asks(("list_lockers", {"city": "Lyon"})).returns({"lockers": ["west", "east"]})
    findings = of(check(run.answers("West.").trace()), "loop")
    assert len(findings) == found
    assert all(f.severity == "warning" and f.step_id == "m2" and f.evidence["times"] == times for f in findings)


def test_polling_that_sees_progress_is_no_loop() -> None:
    run = Run("Is it there yet?")
    for percent in range(6):
        run.asks(("progress", {"job": "west"})).returns({"percent": percent})
    assert check(run.answers("Not yet.").trace()) == ()


def test_a_call_that_nothing_ran_is_named_with_the_claim_that_hides_it() -> None:
    run = Run("Redirect PX-4711").asks(("redirect", {"parcel_id": "PX-4711"}), text="I will do it now.").loses()
    run.answers("PX-4711 is on its way to the new locker.")
    assert errors(run) == [("requested_not_executed", "m0#c0.0"), ("false_success", "m2")]


def test_an_answer_given_as_a_call_is_no_lost_call() -> None:
    run = Run("How many?").asks(("final_result", {"count": 3})).loses()
    assert check(run.trace(answer='{"count": 3}')) == ()


def unasked(run: Run, **more: Json) -> tuple[Finding, ...]:
    trace = run.trace()
    call = replace(trace.steps[3], step_id="t9", span_ids=("t9",), call_id="zz", request_step=None, parents=(), **more)
    return check(replace(trace, steps=(*trace.steps[:4], call, *trace.steps[4:])))


def test_a_call_that_no_model_asked_for_is_named() -> None:
    assert [(f.code, f.step_id) for f in unasked(good_run())] == [("executed_not_requested", "t9")]


def test_code_may_call_tools_that_no_model_of_the_run_calls() -> None:
    assert unasked(good_run(), name="write_audit_log") == ()


def test_a_call_that_only_the_history_shows_was_asked_for_by_a_model_call_that_is_lost() -> None:
    run = good_run()
    asked = Message("assistant", "", (ToolRequest(None, "find_parcel", {"parcel_id": "PX-1"}),))
    run.steps[-1] = replace(run.steps[-1], messages=(asked, *run.steps[-1].messages))
    assert unasked(run, name="find_parcel", arguments={"parcel_id": "PX-1"}) == ()
    assert of(unasked(run, name="find_parcel", arguments={"parcel_id": "PX-2"}), "executed_not_requested") != []


def test_where_a_reply_was_not_captured_nobody_can_say_what_was_not_asked() -> None:
    run = good_run()
    run.steps[4] = replace(run.steps[4], reply=None)
    assert of(unasked(run), "executed_not_requested") == []


def test_a_model_that_failed_is_an_error_unless_a_later_call_stood_in() -> None:
    run = Run("Hello").answers("", error="overloaded")
    run.steps[0] = replace(run.steps[0], reply=None)
    assert [(f.code, f.severity) for f in check(run.trace())] == [("model_error", "error")]
    run.answers("Hello, how can I help?")
    assert [(f.code, f.severity) for f in check(run.trace())] == [("model_error", "info")]


def test_findings_are_the_same_each_time_and_in_the_order_of_the_steps() -> None:
    run = Run("Redirect PX-4711").asks(("redirect", {"parcel_id": "PX-9999"})).returns({"error": "locker full"})
    trace = run.answers("Done.").trace()
    assert check(trace) == check(trace)
    assert [f.step_id for f in check(trace)] == ["m0", "t1", "m2"]


def test_a_slip_of_spelling_put_right_makes_a_failure_good() -> None:
    run = Run("Lockers in Lyon?").asks(("list_lockers", {"city": "Lyonn"})).returns(error="details are redacted")
    run.asks(("list_lockers", {"city": "Lyon"})).returns({"lockers": ["west"]}).answers("West.")
    assert errors(run) == []
