"""The stages of a run after collecting, each from the run folder to the run folder.

A stage reads what it needs from the folder and leaves its rows there, so that any of them can be retried, or made again
later, by another process. Traces are rebuilt from the stored spans and kept for the next stage of the same process.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from evalagent import evaluating, rows, trials
from evalagent.adapters import asking, judges, runs, settings, stored
from evalagent.adapters.files import write_json, write_lines
from evalagent.adapters.outputs import write_record
from evalagent.adapters.run_traces import TrialView, span_rows, suite_of, traces_of, trial_views
from evalagent.adapters.runs import PlannedTrial, RunPlan
from evalagent.adapters.store import Store, write_parquet
from evalagent.adapters.versions import versions
from evalagent.attribution.attributing import attribute as attribute_trace
from evalagent.exits import exit_of
from evalagent.judging.deciding import Decision, Question, decide, not_judged_verdicts
from evalagent.model import Attribution, Finding, Outcome, Trial, Verdict
from evalagent.outcomes.diffing import diff
from evalagent.outcomes.grading import grade as grade_trial
from evalagent.records import RunRecord
from evalagent.suites import Case
from evalagent.summaries import summary
from evalagent.traces.masking import mask


def ingest(plan: RunPlan) -> dict[str, int]:
    """Spans → receipt.json and the store's spans; how many came in, and how many were rejected."""
    told = traces_of(plan)
    write_json(plan.path / "receipt.json", told.receipt)
    return {"spans": told.receipt["spans_in"], "rejected": len(told.receipt["rejected"])}


def build_steps(plan: RunPlan) -> dict[str, int]:
    """Traces → steps.jsonl."""
    traces = traces_of(plan).traces
    write_lines(plan.path / "steps.jsonl", rows.step_rows(traces))
    steps = [step for trace in traces for step in trace.steps]
    return {"traces": len(traces), "steps": len(steps), "edges": sum(len(step.parents) for step in steps)}


def grade(plan: RunPlan) -> list[Outcome]:
    """World before and after each trial → outcomes.jsonl."""
    suite = suite_of(plan)
    masks = [mask for world in suite.world for mask in world.mask]
    views = [replace(view, planned=_sealed(view.planned, suite.secrets)) for view in trial_views(plan)]
    outcomes = [outcome for view in views if (outcome := _outcome(view, masks, bool(suite.world)))]
    write_lines(plan.path / "outcomes.jsonl", map(rows.outcome_row, outcomes))
    return outcomes


def _sealed(planned: PlannedTrial, secrets: Sequence[str]) -> PlannedTrial:
    """The case with its expected values masked as the stored snapshots are: equal secrets have equal marks."""
    expected = planned.case.expected
    if not expected.changes:
        return planned
    changes = [
        change.model_copy(update={"set": mask(change.set, secrets), "insert": mask(change.insert, secrets)})
        for change in expected.changes
    ]
    case = planned.case.model_copy(update={"expected": expected.model_copy(update={"changes": changes})})
    return replace(planned, case=case)


def _outcome(view: TrialView, masks: Sequence[str], has_world: bool) -> Outcome | None:
    if view.collected is None or not has_world:
        return None
    case, number = view.planned.case, view.planned.trial
    if view.collected.damage:
        return Outcome(
            case.id, number, "fail", reason=f"the agent left a world that cannot be read: {view.collected.damage}"
        )
    before, after = view.collected.before, view.collected.after
    changes = diff(before, after) if before is not None and after is not None else None
    return grade_trial(case, number, changes, masks, after)


def check(plan: RunPlan) -> dict[str, int]:
    """All rules over all traces → findings.jsonl; how many of each severity."""
    suite = suite_of(plan)
    outcomes = {(o.case_id, o.trial): o for o in stored.outcomes(plan.path)}
    findings: list[Finding] = []
    stdout = suite.agent.reply == "stdout"  # then that is the answer, whatever the spans hold of it
    for view in trial_views(plan):
        main = trials.main_trace(view.traces)
        for trace in view.traces:
            whole = trace is main
            said = view.collected.run.reply if whole and stdout and view.collected else None
            findings += evaluating.examine(
                replace(trace, answer=said) if said else trace,
                expected=evaluating.expectation(view.planned.case) if whole else None,
                checks=suite.checks,
                outcome=outcomes.get((view.planned.case.id, view.planned.trial)) if whole else None,
                budgets=suite.budgets if whole else None,
                wall_s=view.collected.run.wall_s if view.collected else None,
            )
    assigned = {trace.trace_id for view in trial_views(plan) for trace in view.traces}
    findings += [f for trace in traces_of(plan).traces if trace.trace_id not in assigned for f in trace.health]
    write_lines(plan.path / "findings.jsonl", map(rows.finding_row, findings))
    return {word: sum(f.severity == word for f in findings) for word in ("error", "warning", "info")}


def decisions(plan: RunPlan, *, show: bool) -> dict[str, Decision]:
    """Trace id → what rules decide of it, and what they leave."""
    suite = suite_of(plan)
    findings = _by_trace(stored.findings(plan.path))
    cases = {trace.trace_id: view.planned.case for view in trial_views(plan) for trace in view.traces}
    skipped = evaluating.switched_off(suite.checks)
    return {
        trace.trace_id: decide(
            trace,
            findings.get(trace.trace_id, []),
            suite.judge.tau,
            behaviour=cases[trace.trace_id].expected.behaviour if trace.trace_id in cases else None,
            skipped=skipped,
            show=show,
        )
        for trace in traces_of(plan).traces
    }


def questions(plan: RunPlan) -> tuple[Question, ...]:
    """The steps that need a model, in a fixed order; none where no model is asked."""
    if plan.judge in asking.WITHOUT_MODEL:
        return ()
    return tuple(question for decision in decisions(plan, show=True).values() for question in decision.questions)


_judges: dict[str, judges.Judge] = {}
"""The judge of each run that this process judges: its meter counts over all of the run's tasks."""
_judges_lock = threading.Lock()


def judge(plan: RunPlan) -> judges.Judge:
    """The run's judge, the same one for all its tasks."""
    with _judges_lock:
        if plan.run_id not in _judges:
            suite_file = Path(plan.suite_file)
            _judges[plan.run_id] = asking.opened(
                plan.judge, settings.load(), plan.path.parent.parent, suite_of(plan), suite_file.parent
            )
        return _judges[plan.run_id]


def save_verdicts(plan: RunPlan, answered: Iterable[Verdict], failures: Mapping[str, str]) -> dict[str, int]:
    """Verdicts by rule and by model, and one on each whole trace → verdicts.jsonl; how many of each.

    `failures`: `trace id/step id` → why nobody could answer.
    """
    given = {(v.trace_id, v.step_id): v for v in answered}
    findings = _by_trace(stored.findings(plan.path))
    everything: list[Verdict] = []
    model = plan.judge not in asking.WITHOUT_MODEL
    left_open = asking.NO_ANSWER if model else asking.NO_MODEL if plan.judge == "rules" else asking.NOT_ASKED
    decided = decisions(plan, show=False)
    for trace in traces_of(plan).traces:
        decision = decided[trace.trace_id]
        steps = dict(decision.verdicts) if plan.judge != "none" else {}
        for question in decision.questions:
            at = (question.trace_id, question.step_id)
            if at in given:
                steps[question.step_id] = given[at]
                continue
            why = failures.get("/".join(at)) or left_open
            steps |= not_judged_verdicts([question], why)
        own = findings.get(trace.trace_id, [])
        everything += [steps[step.step_id] for step in trace.steps if step.step_id in steps]
        everything.append(evaluating.trace_verdict(trace, own, steps, plan.judge))
    write_lines(plan.path / "verdicts.jsonl", map(rows.verdict_row, everything))
    if model:
        stored.save_judge_use(plan.path, judge(plan).use(), judge(plan).versions())
    return {word: sum(v.verdict == word for v in everything if v.step_id) for word in ("pass", "fail", "not_judged")}


def attribute(plan: RunPlan) -> list[Attribution]:
    """Where each trace went wrong → attributions.jsonl and trials.jsonl."""
    suite = suite_of(plan)
    findings, verdicts = _by_trace(stored.findings(plan.path)), _by_trace(stored.verdicts(plan.path))
    judged = judged_trials(plan)
    failed = {trace_id: _failed(trial) for trial in judged for trace_id in trial.trace_ids}
    found = [
        attribute_trace(
            trace,
            {v.step_id: v for v in verdicts.get(trace.trace_id, []) if v.step_id},
            findings.get(trace.trace_id, []),
            failed.get(trace.trace_id),
            suite.judge.tau,
        )
        for trace in traces_of(plan).traces
    ]
    write_lines(plan.path / "attributions.jsonl", map(rows.attribution_row, found))
    write_lines(plan.path / "trials.jsonl", map(rows.trial_row, judged))
    return found


def _failed(trial: Trial) -> bool | None:
    return {"fail": True, "pass": False}.get(trial.verdict)


def judged_trials(plan: RunPlan) -> list[Trial]:
    outcomes = {(o.case_id, o.trial): o for o in stored.outcomes(plan.path)}
    findings, verdicts = _by_trace(stored.findings(plan.path)), _by_trace(stored.verdicts(plan.path))
    reply_from_trace = suite_of(plan).agent.reply == "trace"
    judged = []
    for view in trial_views(plan):
        case = view.planned.case
        main = trials.main_trace(view.traces)
        said = main.answer if reply_from_trace and main else None
        stdout = view.collected.run.reply if view.collected else None
        judged.append(
            trials.judged_trial(
                plan.run_id,
                case,
                view.planned.trial,
                view.collected.run if view.collected else None,
                view.traces,
                outcomes.get((case.id, view.planned.trial)),
                [f for trace in view.traces for f in findings.get(trace.trace_id, [])],
                {v.trace_id: v for trace in view.traces for v in verdicts.get(trace.trace_id, []) if not v.step_id},
                said or stdout,
            )
        )
    return judged


T = TypeVar("T", Finding, Verdict)


def _by_trace(values: Iterable[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for value in values:
        found.setdefault(value.trace_id, []).append(value)
    return found


def record_of(plan: RunPlan) -> RunRecord:
    """Everything the folder holds of a run, as one value."""
    suite = suite_of(plan)
    told = traces_of(plan)
    verdicts = stored.verdicts(plan.path)
    judged = judged_trials(plan)
    use = stored.judge_use(plan.path, plan.judge)
    spent = asking.BUDGET_SPENT if any(v.reason.startswith(asking.BUDGET_SPENT) for v in verdicts) else ""
    ended = exit_of(
        traces=told.traces,
        verdicts=verdicts,
        trials=judged,
        rejected=len(told.receipt["rejected"]),
        judge_failures=asking.unanswered(verdicts),
        floor=suite.judge.floor,
        budget_spent=spent,
    )
    cases: dict[str, Case] = {planned.case.id: planned.case for planned in runs.planned_trials(plan)}
    return RunRecord(
        run_id=plan.run_id,
        title=suite.name,
        started=runs.read_run(plan.path).get("started"),
        traces=told.traces,
        findings=tuple(stored.findings(plan.path)),
        verdicts=tuple(verdicts),
        attributions=tuple(stored.attributions(plan.path)),
        receipt=told.receipt,
        judge=use,
        cases=cases,
        trials=tuple(judged),
        outcomes=tuple(stored.outcomes(plan.path)),
        budgets=suite.budgets,
        tau=suite.judge.tau,
        seed=suite.seed,
        versions={**versions(plan.judge, bool(suite.prices)), **stored.judge_versions(plan.path)},
        exit_code=ended.code,
        verdict=ended.verdict,
        reasons=ended.reasons,
    )


def scorecard(plan: RunPlan) -> dict[str, Any]:
    """The numbers of the run → summary.json."""
    numbers = summary(record_of(plan))
    write_json(plan.path / "summary.json", numbers)
    return {**numbers, "folder": plan.folder}


def report(plan: RunPlan) -> Path:
    """All files of the run, and its rows as Parquet; the page's path."""
    record = record_of(plan)
    write_record(record, plan.path)
    runs.mark_ended(plan, record.exit_code)  # before the rows are made, since they hold it
    write_parquet(plan.path, span_rows(plan))
    return plan.path / "report.html"


def load(plan: RunPlan) -> dict[str, int]:
    """The run's rows into the warehouse; rows per table. StoreBusy while another process holds it."""
    return Store(plan.path.parent.parent).load(plan.path)


def case_table(plan: RunPlan) -> list[dict[str, Any]]:
    """One row a case, for the table in the Prefect UI."""
    table: dict[str, dict[str, Any]] = {}
    for trial in judged_trials(plan):
        row = table.setdefault(
            trial.case_id,
            {"case": trial.case_id, "runs": 0, "pass": 0, "fail": 0, "not judged": 0, "first failure": ""},
        )
        row["runs"] += 1
        row[trial.verdict.replace("_", " ")] += 1
        row["first failure"] = row["first failure"] or (
            trial.reasons[0] if trial.verdict == "fail" and trial.reasons else ""
        )
    return list(table.values())
