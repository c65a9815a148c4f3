"""From traces to verdicts: the one composition of pure calls that tasks and command line share.

    traces ─ examine ─► findings ─ judging.decide ─► verdicts + questions ─ (a model) ─► verdicts ─ attribute ─► causes

Who runs the agent, asks the model or stores the rows is not known here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalagent.attribution.attributing import attribute
from evalagent.attribution.effects import findings_from_outcome
from evalagent.attribution.overruns import blamed_for_overrun
from evalagent.checks.checking import check
from evalagent.judging.deciding import Question, decide, not_judged_verdicts
from evalagent.model import Attribution, Expectation, Finding, Json, Outcome, Trace, Verdict
from evalagent.outcomes.budgeting import over_budget
from evalagent.spending import cost_of, tokens_of
from evalagent.suites import Budgets, Case, Suite

DAMAGED_BELOW = 0.5
"""A trace of lower quality is damaged: what fails in it is shown, but not held against the agent."""

EXCUSED_BY_THE_END_STATE = frozenset(
    {"tool_error", "soft_error", "repeated_failing_call", "unknown_tool", "argument_schema", "id_never_seen"}
)
"""Slips on the way. Where the world was graded and is exactly as it should be they cost nothing and become info; what
the agent said, was forbidden to do, or did without being asked stays an error."""


def expectation(case: Case) -> Expectation:
    """What a case says, as the checks need it."""
    said = case.expected
    text = case.input if isinstance(case.input, str) else "\n".join(case.input)
    return Expectation(
        wanted_tools=tuple((tool.name, tool.args) for tool in said.tools),
        no_tools=said.no_tools,
        forbidden_tools=tuple(said.forbidden_tools),
        reply_values=tuple(said.reply_values),
        path=said.path,
        input_text=text,
    )


def switched_off(checks: Mapping[str, Json]) -> tuple[str, ...]:
    """Codes of the checks that a suite turned off: their silence says nothing."""
    return tuple(code for code, setting in checks.items() if setting is False or setting == "off")


def examine(
    trace: Trace,
    *,
    expected: Expectation | None = None,
    checks: Mapping[str, Json] | None = None,
    outcome: Outcome | None = None,
    budgets: Budgets | None = None,
    wall_s: float | None = None,
) -> tuple[Finding, ...]:
    """All rules over one trace: health, checks, outcome, budgets. The last two are the trial's; None where none is."""
    findings = list(check(trace, expected or Expectation(), checks or {}))
    if outcome is not None:
        if outcome.verdict == "pass":
            findings = [_excused(finding) for finding in findings]
        findings += findings_from_outcome(trace, outcome)
    if budgets is not None:
        findings += _budget_findings(trace, budgets, wall_s)
    return (*trace.health, *blamed_for_overrun(findings))


def _excused(finding: Finding) -> Finding:
    if finding.severity != "error" or finding.code not in EXCUSED_BY_THE_END_STATE:
        return finding
    evidence = finding.evidence if isinstance(finding.evidence, dict) else {"evidence": finding.evidence}
    return replace(finding, severity="info", evidence={**evidence, "excused_by": "the end state is right"})


def _budget_findings(trace: Trace, budgets: Budgets, wall_s: float | None) -> list[Finding]:
    reasons = over_budget(
        budgets, steps=len(trace.steps), tokens=tokens_of(trace), cost_usd=cost_of(trace), wall_s=wall_s
    )
    return [Finding(trace.trace_id, None, "over_budget", "error", reason) for reason in reasons]


def failing(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that are held against the agent; the health of a trace never is."""
    return tuple(f for f in findings if f.severity == "error" and f.code != "no_agent_steps")


def damaged(trace: Trace) -> bool:
    """Too broken to hold anything against the agent."""
    if trace.bystander:
        return False
    return trace.quality < DAMAGED_BELOW or any(f.code == "no_agent_steps" for f in trace.health)


def trace_verdict(trace: Trace, findings: Sequence[Finding], verdicts: Mapping[str, Verdict], judge: str) -> Verdict:
    """The verdict on a whole trace that no end state grades: fail by a failing finding or step, pass only if every
    step passed and a model was at work in it, else not judged."""
    against = failing(findings)
    bad = [v for v in verdicts.values() if v.verdict == "fail"]
    if damaged(trace):
        ruling, reason = "not_judged", f"the trace is damaged (quality {trace.quality:.2f})"
    elif against:
        ruling, reason = "fail", f"{against[0].code}: {against[0].message}"
    elif bad:
        ruling, reason = "fail", f"step {bad[0].step_id} failed: {bad[0].reason}"
    elif trace.steps and all(v.verdict == "pass" for v in verdicts.values()) and len(verdicts) == len(trace.steps):
        if any(step.kind in ("llm", "agent") for step in trace.steps):
            ruling, reason = "pass", f"all {len(trace.steps)} steps passed"
        else:
            ruling, reason = (
                "not_judged",
                f"nothing found wrong in {len(trace.steps)} steps; no model call is among them",
            )
    else:
        open_steps = len(trace.steps) - sum(v.verdict == "pass" for v in verdicts.values())
        ruling, reason = "not_judged", f"nothing found wrong; {open_steps} of {len(trace.steps)} steps not judged"
    score = {"pass": 1.0, "fail": 0.0, "not_judged": None}[ruling]
    return Verdict(trace.trace_id, None, "run", ruling, score, "unknown", judge, reason)  # type: ignore[arg-type]


# --- traces that no trial owns -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Terms:
    """By what given traces are judged. Plain values, so that another process can do it."""

    judge: str
    """rules, none, or the name of a model's judge."""
    unasked: str | None
    """Why steps that no rule decides are not judged; None if a model is asked about them."""
    suite: Suite | None = None
    cases: tuple[Case, ...] = ()
    case_key: str = ""
    """The resource attribute that names a trace's case; without it the case with the very same input is meant."""

    @property
    def tau(self) -> float:
        return self.suite.judge.tau if self.suite else 0.7


@dataclass(frozen=True, slots=True)
class Examined:
    """A trace with what rules say of it, and the questions that they leave open."""

    trace: Trace
    findings: tuple[Finding, ...]
    verdicts: dict[str, Verdict]
    """By step id."""
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True)
class Concluded:
    """All that is said of one trace."""

    trace: Trace
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    """Of its steps in their order, then of the whole trace."""
    attribution: Attribution


@dataclass(slots=True)
class Bench:
    """Judges given traces by its terms."""

    terms: Terms
    _named: dict[str, Case] = field(init=False)
    _asked_for: dict[str, Case] = field(init=False)
    _skipped: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._named = {case.id: case for case in reversed(self.terms.cases)}
        self._asked_for = {case.input: case for case in reversed(self.terms.cases) if isinstance(case.input, str)}
        self._skipped = switched_off(self.terms.suite.checks) if self.terms.suite else ()

    def examined(self, trace: Trace) -> Examined:
        """What rules say of a trace; no step is left without a verdict if no model is asked."""
        terms = self.terms
        case = self._case(trace)
        if terms.judge == "none":
            findings = trace.health
        else:
            expected = expectation(case) if case else Expectation()
            findings = examine(trace, expected=expected, checks=terms.suite.checks if terms.suite else None)
        behaviour = case.expected.behaviour if case else None
        show = terms.unasked is None
        decision = decide(trace, findings, terms.tau, behaviour=behaviour, skipped=self._skipped, show=show)
        verdicts = dict(decision.verdicts) if terms.judge != "none" else {}
        if terms.unasked is not None:
            return Examined(trace, findings, verdicts | not_judged_verdicts(decision.questions, terms.unasked))
        return Examined(trace, findings, verdicts, decision.questions)

    def concluded(self, examined: Examined, answers: Iterable[Verdict] = ()) -> Concluded:
        """The trace's verdict and its causes; `answers` are the verdicts on its questions."""
        trace, findings = examined.trace, examined.findings
        steps = {**examined.verdicts, **{verdict.step_id or "": verdict for verdict in answers}}
        if trace.bystander:
            return Concluded(trace, findings, (), attribute(trace, steps, findings, None, self.terms.tau))
        whole = trace_verdict(trace, findings, steps, self.terms.judge)
        verdicts = (*(steps[step.step_id] for step in trace.steps if step.step_id in steps), whole)
        failed = True if whole.verdict == "fail" else None
        return Concluded(trace, findings, verdicts, attribute(trace, steps, findings, failed, self.terms.tau))

    def _case(self, trace: Trace) -> Case | None:
        by = trace.resource.get(self.terms.case_key)
        if by is not None:
            return self._named.get(str(by))
        return self._asked_for.get(trace.task) if trace.task else None
