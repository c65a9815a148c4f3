"""From what a trial left to its verdict."""

from collections.abc import Iterable, Mapping, Sequence

from evalagent.evaluating import damaged, failing
from evalagent.model import Finding, Outcome, Ruling, Span, Trace, Trial, TrialRun, Verdict
from evalagent.spending import cost_of, tokens_of
from evalagent.suites import Case

RUN, CASE, TRIAL, ATTEMPT = "evalagent.run", "evalagent.case", "evalagent.trial", "evalagent.attempt"
"""Resource attributes that say whose a span is."""

INFRASTRUCTURE = (
    "could not be run (see the log of this trial's collect task): a fault of the evaluation, not of the agent"
)


def resource_of(run_id: str, case_id: str, trial: int, attempt: str) -> dict[str, str]:
    return {RUN: run_id, CASE: case_id, TRIAL: str(trial), ATTEMPT: attempt}


Owners = Mapping[str, tuple[str, int]]
"""attempt -> the case and trial whose record names it. An agent is told its own attempt only."""


def of_owners(spans: Iterable[Span], owners: Owners) -> tuple[list[Span], dict[str, int]]:
    """The spans that are what they say, and why the others do not count: `abandoned_attempt` (of a trial that was cut
    short and made again, or of nobody) or `foreign_trial` (they claim a case or trial that their attempt is not of)."""
    kept: list[Span] = []
    ignored: dict[str, int] = {}
    for span in spans:
        owner = owners.get(str(span.resource.get(ATTEMPT, "")))
        if owner is None:
            ignored["abandoned_attempt"] = ignored.get("abandoned_attempt", 0) + 1
        elif (str(span.resource.get(CASE)), str(span.resource.get(TRIAL))) != (owner[0], str(owner[1])):
            ignored["foreign_trial"] = ignored.get("foreign_trial", 0) + 1
        else:
            kept.append(span)
    return kept, ignored


def by_trial(traces: Iterable[Trace], owners: Owners) -> dict[tuple[str, int], list[Trace]]:
    """(case id, trial) -> its traces, by start."""
    found: dict[tuple[str, int], list[Trace]] = {}
    for trace in sorted(traces, key=lambda t: (t.start_ns, t.trace_id)):
        owner = owners.get(str(trace.resource.get(ATTEMPT, "")))
        if owner is not None:
            found.setdefault(owner, []).append(trace)
    return found


def main_trace(traces: Sequence[Trace]) -> Trace | None:
    """The trace that a trial's outcome and budget are held against: the one with most steps, then the earliest."""
    return max(traces, key=lambda t: (len(t.steps), -t.start_ns, t.trace_id), default=None)


def judged_trial(
    run_id: str,
    case: Case,
    number: int,
    run: TrialRun | None,
    traces: Sequence[Trace],
    outcome: Outcome | None,
    findings: Sequence[Finding],
    verdicts: Mapping[str, Verdict],
    reply: str | None,
) -> Trial:
    """One trial with its verdict. `findings` and `verdicts` (trace id -> verdict on the whole) are those of its traces;
    `run` is None if it never completed."""
    verdict, reasons = _ruling(case, run, traces, outcome, findings, verdicts)
    spending = [trace for trace in traces if not trace.bystander] or traces
    totals = [tokens_of(trace) for trace in spending]
    costs = [cost_of(trace) for trace in spending]
    known_tokens = [total for total in totals if total is not None]
    known_costs = [cost for cost in costs if cost is not None]
    return Trial(
        run_id=run_id,
        case_id=case.id,
        trial=number,
        trace_ids=tuple(trace.trace_id for trace in traces),
        verdict=verdict,
        reasons=reasons,
        steps=sum(len(trace.steps) for trace in traces),
        tokens=sum(known_tokens) if traces and len(known_tokens) == len(totals) else None,
        cost_usd=round(sum(known_costs), 9) if traces and len(known_costs) == len(costs) else None,
        wall_s=round(run.wall_s, 3) if run else None,
        held_out=case.held_out,
        severity=case.severity,
        exit=run.exit if run else "infrastructure",
        answer=reply,
    )


def _ruling(
    case: Case,
    run: TrialRun | None,
    traces: Sequence[Trace],
    outcome: Outcome | None,
    findings: Sequence[Finding],
    verdicts: Mapping[str, Verdict],
) -> tuple[Ruling, tuple[str, ...]]:
    if run is None or run.exit == "infrastructure":
        return "not_judged", (INFRASTRUCTURE + (f": {run.reason}" if run and run.reason else ""),)
    broken = {trace.trace_id for trace in traces if damaged(trace)}
    against: list[str] = []
    if run.exit != "completed":
        against.append((run.reason or f"the agent {run.exit} (exit code {run.exit_code})") + _last_words(run))
    steps = sum(len(trace.steps) for trace in traces)
    if not against and not steps:
        return "not_judged", (
            "no agent step arrived: is it instrumented (`agent.instrument`, `agent.tools`), and does it flush?"
            + "".join(f" {line}" for line in run.stderr_tail.splitlines() if line.startswith("evalagent hook:")),
        )
    if outcome is not None and outcome.verdict == "fail":
        against.append(f"world: {outcome.reason}")
    shown = [f for f in failing(findings) if f.trace_id not in broken]
    against += [f"{f.code}: {f.message}" for f in shown if f.code not in ("unexpected_change", "missing_change")]
    against += [v.reason for v in verdicts.values() if v.verdict == "fail" and not shown and v.trace_id not in broken]
    if against:
        return "fail", tuple(dict.fromkeys(against))
    if outcome is not None and outcome.verdict == "pass":
        return "pass", ()
    said = case.expected
    if not broken and (said.tools or said.no_tools or said.reply_values or said.path):
        return "pass", ()
    around = {trace.trace_id for trace in traces if trace.bystander}
    whole = [v for trace_id, v in verdicts.items() if trace_id not in around]
    if whole and all(v.verdict == "pass" for v in whole):
        return "pass", ()
    if broken:
        return "not_judged", ("its trace is damaged, and no end state was graded",)
    return "not_judged", ("nothing found wrong, but the case expects nothing that a rule can check: state `expected`",)


def _last_words(run: TrialRun) -> str:
    """The last line that the agent wrote to stderr, mostly its exception."""
    lines = [line.strip() for line in run.stderr_tail.splitlines() if line.strip()]
    return f": {lines[-1][:300]}" if lines and run.exit == "crashed" else ""
