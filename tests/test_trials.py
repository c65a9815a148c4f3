"""From what a trial left to its verdict: the agent's failures and everybody else's are kept apart."""

from dataclasses import replace

import pytest

from evalagent.model import Finding, Outcome, Ruling, Span, Step, Tokens, Trace, TrialExit, TrialRun, Verdict
from evalagent.suites import Case, Expected
from evalagent.trials import ATTEMPT, by_trial, judged_trial, of_owners, resource_of

CASE = Case(id="refund", input="Refund order 7", expected=Expected(changes=[]))
OPEN = Case(id="refund", input="Refund order 7")


def run(exit: TrialExit = "completed", reason: str = "") -> TrialRun:
    return TrialRun("refund", 1, exit, 0 if exit == "completed" else 1, "a1", "done", "", 1.5, reason)


def trace(quality: float = 1.0) -> Trace:
    step = Step("t1", "s1", ("s1",), "llm", "m", 0, 1, tokens=Tokens(10, 5), cost_usd=0.5)
    return Trace("t1", (step,), quality=quality, resource=resource_of("r", "refund", 1, "a1"))


def outcome(verdict: Ruling) -> Outcome:
    return Outcome("refund", 1, verdict, reason="graded")


def whole(verdict: Ruling) -> dict[str, Verdict]:
    return {"t1": Verdict("t1", None, "run", verdict, None, "unknown", "rules", "the whole")}


ERROR = Finding("t1", "s1", "false_success", "error", "claims what did not happen")


def ruling(
    trial_run: TrialRun | None = None,
    *,
    case: Case = CASE,
    traces: tuple[Trace, ...] | None = None,
    end: Outcome | None = None,
    findings: tuple[Finding, ...] = (),
    verdicts: dict[str, Verdict] | None = None,
) -> tuple[Ruling, tuple[str, ...]]:
    given = (trace(),) if traces is None else traces
    judged = judged_trial("r", case, 1, trial_run, given, end, findings, verdicts or whole("not_judged"), "done")
    return judged.verdict, judged.reasons


def test_a_right_end_state_passes() -> None:
    assert ruling(run(), end=outcome("pass")) == ("pass", ())


def test_a_wrong_end_state_fails_with_its_reason() -> None:
    assert ruling(run(), end=outcome("fail")) == ("fail", ("world: graded",))


@pytest.mark.parametrize("exit", ["crashed", "timeout", "no_answer"])
def test_an_agent_that_does_not_come_through_failed_even_without_spans(exit: TrialExit) -> None:
    assert ruling(run(exit, "said why"), traces=()) == ("fail", ("said why",))


def test_a_trial_that_never_ran_is_not_judged_whatever_the_world_says() -> None:
    assert ruling(None, traces=(), end=outcome("fail"))[0] == "not_judged"
    assert ruling(run("infrastructure", "no container"), traces=())[0] == "not_judged"


def test_a_trial_without_spans_is_not_judged() -> None:
    verdict, reasons = ruling(run(), traces=(), end=outcome("pass"))
    assert verdict == "not_judged"
    assert "instrumented" in reasons[0]


def test_an_error_finding_fails_even_where_the_world_is_right() -> None:
    assert ruling(run(), end=outcome("pass"), findings=(ERROR,))[0] == "fail"


def test_what_a_damaged_trace_shows_is_not_held_against_the_agent() -> None:
    assert ruling(run(), traces=(trace(quality=0.2),), end=outcome("pass"), findings=(ERROR,))[0] == "pass"
    assert ruling(run(), case=OPEN, traces=(trace(quality=0.2),), findings=(ERROR,))[0] == "not_judged"


def test_a_case_that_expects_nothing_checkable_is_not_judged_by_rules() -> None:
    verdict, reasons = ruling(run(), case=OPEN)
    assert verdict == "not_judged"
    assert "expected" in reasons[0]


def test_a_failed_verdict_on_the_whole_trace_fails_an_ungraded_trial() -> None:
    assert ruling(run(), case=OPEN, verdicts=whole("fail")) == ("fail", ("the whole",))


def test_tokens_and_cost_are_unknown_as_soon_as_one_trace_does_not_know_them() -> None:
    blind = replace(trace(), trace_id="t2", steps=(Step("t2", "s", ("s",), "llm", "m", 0, 1),))
    one = judged_trial("r", CASE, 1, run(), (trace(),), None, (), {}, None)
    both = judged_trial("r", CASE, 1, run(), (trace(), blind), None, (), {}, None)
    assert (one.tokens, one.cost_usd) == (15, 0.5)
    assert (both.tokens, both.cost_usd, both.steps) == (None, None, 2)


OWNERS = {"a1": ("refund", 1), "a2": ("cancel", 1)}


def span(n: int, **resource: str) -> Span:
    return Span("t", f"{n:016x}", None, "x", 0, 1, resource=resource_of("r", "refund", 1, "a1") | resource)


def test_spans_of_an_attempt_that_was_cut_short_do_not_count() -> None:
    spans = [span(1), span(2, **{ATTEMPT: "a0"}), span(3), Span("t", "f" * 16, None, "x", 0, 1)]
    kept, ignored = of_owners(spans, OWNERS)
    assert [s.span_id[-1] for s in kept] == ["1", "3"]
    assert ignored == {"abandoned_attempt": 2}


@pytest.mark.parametrize("claimed", ["1", "01", "\u00b2", "9" * 5000, "1; drop", ""])
def test_spans_that_claim_another_trial_than_their_attempts_do_not_count(claimed: str) -> None:
    forged = [span(1, **{ATTEMPT: "a2"}), span(2, **{"evalagent.trial": claimed}), span(3, **{"evalagent.case": "x"})]
    kept, ignored = of_owners(forged, OWNERS)
    assert len(kept) == (claimed == "1")
    assert sum(ignored.values()) == 3 - len(kept)


def test_traces_find_their_trial_by_the_attempt_alone() -> None:
    forged = replace(trace(), trace_id="t9", resource=trace().resource | {ATTEMPT: "made up"})
    found = by_trial([trace(), forged], OWNERS)
    assert {key: [t.trace_id for t in mine] for key, mine in found.items()} == {("refund", 1): ["t1"]}
