"""What rules decide of a trace's steps, and the questions that are left for a judge."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalagent.checks.checking import COMPLETE, known_codes
from evalagent.checks.codes import CodeInfo
from evalagent.judging.composing import Composer, unshowable
from evalagent.judging.questions import Piece, Question
from evalagent.model import Finding, Json, OwnFault, Step, Trace, Verdict
from evalagent.taxonomy import LEAVES

__all__ = ["METRIC", "Decision", "Piece", "Question", "decide", "not_judged_verdicts"]

METRIC = "step"
"""The metric of a step's verdict: is this output right for the task?"""

_BLAME: dict[OwnFault, int] = {"yes": 0, "unknown": 1, "no": 2}


@dataclass(frozen=True, slots=True)
class Decision:
    """Every step of a trace has either a verdict (pass or fail by rule, or not_judged) or a question."""

    verdicts: Mapping[str, Verdict]
    """By step id, in the order of the trace."""
    questions: tuple[Question, ...]


def decide(
    trace: Trace,
    findings: Sequence[Finding],
    tau: float,
    *,
    behaviour: str | None = None,
    skipped: Collection[str] = (),
    show: bool = True,
) -> Decision:
    """Verdicts by rule over one trace, and questions for the rest; linear in what is shown.

    An error finding on a step is a fail (score 0); what its evidence says of `own_fault` and `category` goes before
    what is known of its code. Where the checks decide a kind of step completely, their silence is a pass (score 1), if
    the step's content is there and whole; info findings (recovered or excused errors) do not break that silence,
    warnings about what the agent did do, and so does an error on the whole trace with the step among its `candidates`.
    `tau` has no say in verdicts by rule, whose scores are 0 and 1; it is a parameter so that all judges are called
    alike. `behaviour` is what the case expects, in words.
    `skipped` are codes of checks that were switched off: silence of a check that never spoke decides nothing. With
    `show=False` the questions hold no text: cheaper, and enough where no judge will be asked.
    """
    codes = known_codes()
    by_step: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.step_id is not None and finding.trace_id == trace.trace_id:
            by_step.setdefault(finding.step_id, []).append(finding)
    suspected = _suspected(trace, findings)
    composer = Composer(trace, behaviour)
    verdicts: dict[str, Verdict] = {}
    questions: list[Question] = []
    for step in trace.steps:
        mine = by_step.get(step.step_id, [])
        errors = [f for f in mine if f.severity == "error"]
        warnings = [f for f in mine if f.severity == "warning" and f.code in codes and codes[f.code].category]
        warnings += suspected.get(step.step_id, ())
        complete = step.kind in COMPLETE and not set(COMPLETE[step.kind]) & set(skipped)
        if errors:
            verdicts[step.step_id] = _failed(step, errors, codes)
        elif complete and step.content and not step.truncated and step.executed and not warnings:
            verdicts[step.step_id] = _passed(step, mine)
        elif reason := unshowable(step):
            verdicts[step.step_id] = _not_judged(step, reason)
        else:
            told = tuple(sorted({f.code for f in warnings}))
            questions.append(composer.question(step, told, show))
    return Decision(verdicts, tuple(questions))


def not_judged_verdicts(questions: Iterable[Question], reason: str) -> dict[str, Verdict]:
    """step_id -> not_judged, for questions that nobody was or could be asked."""
    return {
        q.step_id: Verdict(q.trace_id, q.step_id, METRIC, "not_judged", None, "unknown", "none", reason, q.aspect)
        for q in questions
    }


def _failed(step: Step, errors: list[Finding], codes: Mapping[str, CodeInfo]) -> Verdict:
    """The finding that blames the step most gives category and fault; all of them are told."""
    ordered = sorted(errors, key=lambda f: (_BLAME[_fault(f, codes)], f.code, f.message))
    first = ordered[0]
    reason = "; ".join(f"{f.code}: {f.message}" for f in ordered[:3])
    if len(ordered) > 3:
        reason += f"; and {len(ordered) - 3} more"
    return Verdict(
        trace_id=step.trace_id,
        step_id=step.step_id,
        metric=METRIC,
        verdict="fail",
        score=0.0,
        own_fault=_fault(first, codes),
        judge="rules",
        reason=reason,
        aspect=step.aspect,
        category=_category(first, codes),
        evidence=[{"code": f.code, "message": f.message, "evidence": f.evidence} for f in ordered],
    )


def _suspected(trace: Trace, findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """step id -> errors on the whole trace that may be this step's as well as another's."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.trace_id == trace.trace_id and finding.step_id is None and finding.severity == "error":
            named = _told(finding, "candidates")
            for step_id in named if isinstance(named, list | tuple) else ():
                if isinstance(step_id, str):
                    found.setdefault(step_id, []).append(finding)
    return found


def _fault(finding: Finding, codes: Mapping[str, CodeInfo]) -> OwnFault:
    told = _told(finding, "own_fault")
    default = codes[finding.code].own_fault if finding.code in codes else "unknown"
    return next((fault for fault in _BLAME if fault == told), default)


def _category(finding: Finding, codes: Mapping[str, CodeInfo]) -> str | None:
    told = _told(finding, "category")
    if isinstance(told, str) and told in LEAVES:
        return told
    return codes[finding.code].category if finding.code in codes else None


def _told(finding: Finding, what: str) -> Json:
    return finding.evidence.get(what) if isinstance(finding.evidence, Mapping) else None


def _passed(step: Step, findings: list[Finding]) -> Verdict:
    made_good = sorted({f.code for f in findings if f.severity == "info"})
    reason = "the checks, which decide this kind of step completely, found nothing against it"
    if made_good:
        reason = f"what went wrong here ({', '.join(made_good)}) was made good, and the checks found nothing else"
    return Verdict(step.trace_id, step.step_id, METRIC, "pass", 1.0, "no", "rules", reason, step.aspect)


def _not_judged(step: Step, reason: str) -> Verdict:
    return Verdict(step.trace_id, step.step_id, METRIC, "not_judged", None, "unknown", "none", reason, step.aspect)
