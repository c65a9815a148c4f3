"""A run record turned into everything that a report says."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evalagent.evaluating import damaged
from evalagent.model import Ruling, Trace
from evalagent.outcomes.budgeting import over_budget
from evalagent.records import RunRecord
from evalagent.reporting.advice import SWITCH_ON_THE_MODEL
from evalagent.reporting.causes import groups, recommendations
from evalagent.reporting.details import detail, task_of
from evalagent.reporting.headlines import headline
from evalagent.reporting.ledger import Ledger, failed_first, ledger
from evalagent.reporting.naming import Anchors
from evalagent.reporting.quality import quality
from evalagent.reporting.report import (
    BudgetLine,
    CaseRow,
    Health,
    NotJudged,
    Report,
    RunLine,
    SeverityLine,
    ToRead,
)
from evalagent.reporting.wording import counted, line, with_sessions
from evalagent.statistics.scorecard import Scorecard, Spent, scorecard
from evalagent.statistics.units import Unit

__all__ = ["Report", "compose"]

FAILED_SHOWN = 40
"""Failed runs told in full; the others are listed with their reason."""
STEPS_LISTED = 3_200
"""Steps listed in all, shared among the runs that are told in full, so that the page stays a few megabytes."""
_READ = 3
_UNJUDGED_SHOWN = 3
_TITLE = 120
Who = tuple[str, int | None]
Whole = Callable[[Sequence[str]], Mapping[str, Trace]]


def compose(record: RunRecord, whole: Whole | None = None) -> Report:
    """The report of a run; the same record gives the same report. Near-linear in steps, findings and verdicts.

    `whole` where the record's traces are outlines: trace ids to traces with their content, for those told in full.
    """
    book, card, anchors = ledger(record), scorecard(record), Anchors()
    failed = failed_first(book.runs)
    reading = _reading(book)
    unjudged = [run for run in book.runs if run.verdict == "not_judged" and run.traces][:_UNJUDGED_SHOWN]
    told: dict[Who, Unit] = {}
    for run in (*failed[:FAILED_SHOWN], *(run for run, _ in reading), *unjudged):
        told.setdefault((run.case_id, run.trial), run)
    if whole is not None:
        told = _with_content(book, told, whole)
    places = {who: anchors.take("run", *who) for who in sorted(told, key=lambda who: (who[0], who[1] or 0))}
    lines = {(run.case_id, run.trial): book.line(run, places.get((run.case_id, run.trial))) for run in book.runs}
    causes = groups(book, lines, anchors, shares=not card.success.selected)
    why = {"fail": "failed", "pass": "passed, to be read", "not_judged": "not judged"}
    most = min(160, STEPS_LISTED // max(1, len(told)))
    details = {who: detail(book, run, lines[who], why[run.verdict], anchors, most) for who, run in told.items()}
    to_do = recommendations(causes, len(failed))
    not_judged = _not_judged(book, lines)
    sessions = {trace.trace_id: trace.session for trace in record.traces}
    reasons = tuple(with_sessions(book.tell.say(reason, 600).text, sessions) for reason in record.reasons)
    return Report(
        title=line(record.title, _TITLE) or "untitled",
        run_id=line(record.run_id, _TITLE),
        started=record.started,
        exit_code=record.exit_code,
        verdict=record.verdict,
        reasons=reasons,
        unit=card.unit,
        headline=headline(record, card, causes, to_do, not_judged, reasons),
        scorecard=card,
        runs=tuple(lines.values()),
        cases=_cases(book, lines),
        causes=causes,
        recommendations=to_do,
        failed=tuple(details[run.case_id, run.trial] for run in failed[:FAILED_SHOWN]),
        failed_left_out=max(0, len(failed) - FAILED_SHOWN),
        others=tuple(d for who, d in details.items() if told[who].verdict != "fail"),
        to_read=tuple(ToRead(lines[run.case_id, run.trial], because) for run, because in reading),
        severities=tuple(SeverityLine(name, f.failed, f.n, f.cases) for name, f in card.failures.items()),
        budgets=_budgets(record, card, tuple(lines.values())),
        not_judged=not_judged,
        health=_health(book),
        receipt=record.receipt,
        judge=record.judge,
        versions=dict(sorted(record.versions.items())),
        tau=record.tau,
        seed=record.seed,
    )


def _with_content(book: Ledger, told: Mapping[Who, Unit], whole: Whole) -> dict[Who, Unit]:
    found = whole(sorted({trace.trace_id for run in told.values() for trace in run.traces}))
    for trace in found.values():
        book.steps.update(((trace.trace_id, step.step_id), step) for step in trace.steps)
    return {
        who: replace(run, traces=tuple(found.get(trace.trace_id, trace) for trace in run.traces))
        for who, run in told.items()
    }


def _cases(book: Ledger, lines: Mapping[Who, RunLine]) -> tuple[CaseRow, ...]:
    """Every case of a run with its trials, by id; every trace of an evaluation, the failed ones first."""
    mine: dict[str, list[Unit]] = {}
    for run in book.runs:
        mine.setdefault(run.case_id, []).append(run)
    found = []
    for case_id, runs in mine.items():
        passed = sum(run.verdict == "pass" for run in runs)
        judged = sum(run.verdict != "not_judged" for run in runs)
        found.append(
            CaseRow(
                case_id,
                line(task_of(book.record.cases.get(case_id), runs[0].traces), 160),
                runs[0].severity,
                runs[0].held_out,
                tuple(lines[run.case_id, run.trial] for run in runs),
                passed,
                judged,
                _state(passed, judged),
            )
        )
    if not book.record.trials:
        found.sort(key=lambda case: (case.passed, -case.judged))
    return tuple(found)


def _state(passed: int, judged: int) -> str:
    if not judged:
        return "not judged"
    if passed == judged:
        return "always passed" if judged > 1 else "passed"
    if passed == 0:
        return "always failed" if judged > 1 else "failed"
    return "intermittent"


def _reading(book: Ledger) -> list[tuple[Unit, str]]:
    """Passing runs that deserve a look: those that made errors good, carry warnings, or took most steps."""
    found = []
    for run in book.runs:
        if run.verdict != "pass":
            continue
        recovered = sum(
            len(book.attributions[t.trace_id].recovered) for t in run.traces if t.trace_id in book.attributions
        )
        slips = sum(
            f.severity == "info" or f.severity == "warning"
            for t in run.traces
            for s in t.steps
            for f in book.step_findings.get((t.trace_id, s.step_id), ())
        )
        failing = sum(book.ruling(t.trace_id, s.step_id) == "fail" for t in run.traces for s in t.steps)
        because = []
        if recovered:
            because.append(f"{counted(recovered, 'error')} made good on the way")
        if failing:
            because.append(f"{counted(failing, 'step')} judged as failed although the end is right")
        if slips and not recovered:
            because.append(f"{counted(slips, 'remark')} of the checks")
        if because:
            found.append((failing, recovered, slips, run, "; ".join(because)))
    found.sort(key=lambda item: (-item[0], -item[1], -item[2], -item[3].steps, item[3].case_id, item[3].trial or 0))
    chosen = [(run, because) for _, _, _, run, because in found[:_READ]]
    if not chosen:
        passing = sorted(
            (r for r in book.runs if r.verdict == "pass"), key=lambda r: (-r.steps, r.case_id, r.trial or 0)
        )
        chosen = [(run, f"the longest that passed ({counted(run.steps, 'step')})") for run in passing[:1]]
    return chosen


def _budgets(record: RunRecord, card: Scorecard, runs: Sequence[RunLine]) -> tuple[BudgetLine, ...]:
    found = []
    for name, unit in (("steps", "steps"), ("tokens", "tokens"), ("cost_usd", "USD"), ("wall_s", "s")):
        spent = getattr(card, name)
        if runs and all(getattr(run, name) is None for run in runs):
            spent = Spent(None, None, 0, len(runs), None, None, None)
        limit = getattr(record.budgets, name) if record.budgets else None
        over = 0
        if record.budgets is not None and limit is not None:
            nothing: dict[str, None] = {"steps": None, "tokens": None, "cost_usd": None, "wall_s": None}
            over = sum(bool(over_budget(record.budgets, **{**nothing, name: getattr(run, name)})) for run in runs)
        said = {"cost_usd": "cost", "wall_s": "wall time"}.get(name, name)
        found.append(
            BudgetLine(
                said,
                unit,
                limit,
                spent.p50,
                spent.p95,
                spent.max,
                spent.total,
                spent.known_total,
                spent.n,
                spent.unknown,
                over,
            )
        )
    return tuple(found)


def _not_judged(book: Ledger, lines: Mapping[Who, RunLine]) -> NotJudged:
    reasons: Counter[str] = Counter()
    steps = 0
    for trace in book.record.traces:
        for step in trace.steps:
            verdict = book.verdict(trace.trace_id, step.step_id)
            if verdict is None or verdict.verdict == "not_judged":
                steps += 1
                said = book.tell.sentence(verdict.reason, 160) if verdict else ""
                reasons[said or "nobody was asked"] += 1
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    more = sum(n for _, n in ordered[8:])
    if more:
        ordered = [*ordered[:8], ("other reasons, in verdicts.jsonl", more)]
    open_: list[Ruling] = ["not_judged"]
    advice = ""
    if steps and book.record.judge.name in ("rules", "none"):
        advice = SWITCH_ON_THE_MODEL
    elif book.record.judge.failed:
        advice = f"{counted(book.record.judge.failed, 'call')} to the judge failed; run again to ask for those alone."
    return NotJudged(
        tuple(lines[run.case_id, run.trial] for run in book.runs if run.verdict in open_),
        steps,
        sum(len(trace.steps) for trace in book.record.traces),
        tuple(ordered),
        advice,
    )


def _health(book: Ledger) -> Health:
    traces = book.record.traces
    codes: dict[tuple[str, str], tuple[int, str]] = {}
    for trace in traces:
        for finding in trace.health:
            n, message = codes.get((finding.code, finding.severity), (0, book.tell.sentence(finding.message, 200)))
            codes[finding.code, finding.severity] = (n + 1, message)
    worst = sorted((t.quality, t.trace_id, t.session or "") for t in traces if t.quality < 1 and not t.bystander)
    return Health(
        len(traces),
        sum(damaged(trace) for trace in traces),
        quality(traces),
        tuple((line(trace_id, 40), found, line(session, 200) or None) for found, trace_id, session in worst[:10]),
        tuple((line(c, 60), s, n, m) for (c, s), (n, m) in sorted(codes.items(), key=lambda i: (-i[1][0], i[0]))),
        _notice(book),
    )


def _notice(book: Ledger) -> str:
    """What no trace shows at all, though an agent that asks a model has it."""
    kinds = {step.kind for trace in book.record.traces for step in trace.steps}
    if not kinds or "llm" in kinds:
        return ""
    spent = "" if "embedding" in kinds else " Tokens and cost are not known."
    return f"No model call was seen: is the client instrumented?{spent}"
