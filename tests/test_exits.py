"""Exit codes: every reason is told, and of several codes 1 goes before 4 before 3."""

from evalagent.exits import exit_of
from evalagent.model import Finding, Ruling, Step, Trace, Trial, Verdict


def trace(trace_id: str = "t1", quality: float = 1.0, health: tuple[Finding, ...] = ()) -> Trace:
    step = Step(trace_id, "s1", ("s1",), "llm", "m", 0, 1)
    return Trace(trace_id, (step,), quality=quality, health=health)


def verdict(ruling: Ruling, step_id: str | None, trace_id: str = "t1") -> Verdict:
    score = {"pass": 1.0, "fail": 0.0, "not_judged": None}[ruling]
    return Verdict(trace_id, step_id, "step" if step_id else "run", ruling, score, "unknown", "rules", "because")


def trial(ruling: Ruling, case: str = "c1") -> Trial:
    return Trial("r", case, 1, ("t1",), ruling, ("why",), 1, 1, None, 1.0)


def test_nothing_wrong_is_0_and_a_pass_only_if_everything_was_judged() -> None:
    open_ = exit_of(traces=[trace()], verdicts=[verdict("not_judged", "s1"), verdict("not_judged", None)])
    assert (open_.code, open_.verdict) == (0, "not_judged")
    whole = exit_of(traces=[trace()], verdicts=[verdict("pass", "s1"), verdict("pass", None)])
    assert (whole.code, whole.verdict) == (0, "pass")


def test_a_failed_trace_is_1_whatever_else_holds_and_the_rest_is_told_too() -> None:
    ended = exit_of(
        traces=[trace()],
        verdicts=[verdict("fail", "s1"), verdict("fail", None)],
        rejected=2,
        budget_spent="the judge's own budget is spent",
    )
    assert (ended.code, ended.verdict) == (1, "fail")
    assert len(ended.reasons) == 3
    assert ended.reasons[0].startswith("trace t1")


def test_the_own_budget_goes_before_what_could_not_be_judged() -> None:
    ended = exit_of(traces=[trace()], verdicts=[verdict("not_judged", None)], rejected=1, budget_spent="spent")
    assert ended.code == 4


def test_rejected_lines_are_3_unless_allowed() -> None:
    given = {"traces": [trace()], "verdicts": [verdict("not_judged", None)], "rejected": 1}
    assert exit_of(**given).code == 3  # type: ignore[arg-type]
    assert exit_of(**given, allow_rejected=True).code == 0  # type: ignore[arg-type]


def test_a_trace_without_agent_steps_is_3() -> None:
    empty = trace(health=(Finding("t1", None, "no_agent_steps", "error", "none"),))
    assert exit_of(traces=[empty], verdicts=[verdict("not_judged", None)]).code == 3


def test_no_trace_at_all_is_3() -> None:
    assert exit_of(traces=[], verdicts=[]).code == 3


def test_a_judge_that_failed_on_some_steps_is_3_and_no_failure_of_the_agent() -> None:
    ended = exit_of(traces=[trace()], verdicts=[verdict("pass", "s1"), verdict("not_judged", None)], judge_failures=1)
    assert (ended.code, ended.verdict) == (3, "not_judged")


def test_coverage_under_the_floor_is_3() -> None:
    some = [verdict("pass", "s1"), verdict("not_judged", "s2")]
    assert exit_of(traces=[trace()], verdicts=some, floor=0.5).code == 0
    assert exit_of(traces=[trace()], verdicts=some, floor=0.6).code == 3


def test_with_a_model_asked_a_trace_that_nobody_judged_is_3() -> None:
    nobody = [verdict("not_judged", "s1"), verdict("not_judged", None)]
    assert exit_of(traces=[trace()], verdicts=nobody, asked_for_rules=False).code == 3


def test_trials_decide_where_there_are_trials() -> None:
    failed_step = [verdict("fail", "s1"), verdict("fail", None)]
    assert exit_of(traces=[trace()], verdicts=failed_step, trials=[trial("pass")]).code == 0
    assert exit_of(traces=[trace()], verdicts=[], trials=[trial("pass"), trial("fail", "c2")]).code == 1
    assert exit_of(traces=[trace()], verdicts=[], trials=[trial("pass"), trial("not_judged", "c2")]).code == 3
