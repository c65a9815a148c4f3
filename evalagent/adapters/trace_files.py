"""`evalagent evaluate`: traces from files, judged, and the output folder written. No run of an agent, no store."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evalagent import evaluating
from evalagent.adapters import asking
from evalagent.adapters.files import input_files, load_prices, load_suite, write_json
from evalagent.adapters.outputs import write_record
from evalagent.adapters.settings import Settings
from evalagent.adapters.versions import versions
from evalagent.attribution.attributing import attribute
from evalagent.errors import UnreadableInput
from evalagent.exits import exit_of
from evalagent.judging.deciding import Question, decide, not_judged_verdicts
from evalagent.model import Attribution, Expectation, Finding, Trace, Verdict
from evalagent.records import RunRecord
from evalagent.suites import Case, Suite
from evalagent.traces.building import build
from evalagent.traces.masking import mask_log, mask_span
from evalagent.traces.reading import Reading, read
from evalagent.traces.receipt import receipt
from evalagent.trials import CASE


def evaluate(
    paths: Sequence[str],
    out: Path,
    settings: Settings,
    *,
    suite_file: Path | None = None,
    judge: str = "auto",
    format: str = "auto",
    allow_rejected: bool = False,
) -> RunRecord:
    """Read, judge and report the traces in files and folders.

    UsageError for a path or suite that is wrong; UnreadableInput if not one span could be read (nothing is written
    then but receipt.json, which says why).
    """
    suite, cases = load_suite(suite_file) if suite_file else (None, ())
    judge = asking.chosen(judge, settings)
    model = judge not in asking.WITHOUT_MODEL
    folder = suite_file.parent if suite_file else None
    asked = asking.opened(judge, settings, settings.home, suite, folder) if model else None
    readings = [read(data, name, format) for name, data in input_files(paths)]
    patterns = suite.secrets if suite else []
    spans = [mask_span(span, patterns) for reading in readings for span in reading.spans]
    logs = [mask_log(record, patterns) for reading in readings for record in reading.logs]
    if not spans:
        write_json(out / "receipt.json", receipt(readings, build((), logs)))
        raise UnreadableInput(_nothing(readings))
    prices = load_prices(suite, suite_file.parent) if suite and suite_file else None
    built = build(spans, logs, prices)
    tau = suite.judge.tau if suite else 0.7
    found: list[Finding] = []
    steps: dict[str, dict[str, Verdict]] = {}
    skipped = evaluating.switched_off(suite.checks) if suite else ()
    questions: list[Question] = []
    for trace in built.traces:
        case = _case_of(trace, cases)
        findings = trace.health if judge == "none" else _examined(trace, case, suite)
        found.extend(findings)
        behaviour = case.expected.behaviour if case else None
        decision = decide(trace, findings, tau, behaviour=behaviour, skipped=skipped, show=model)
        steps[trace.trace_id] = dict(decision.verdicts) if judge != "none" else {}
        if model:
            questions += decision.questions
        else:
            why = asking.NO_MODEL if judge == "rules" else asking.NOT_ASKED
            steps[trace.trace_id] |= not_judged_verdicts(decision.questions, why)
    answers = asking.ask_all(asked, questions, settings.judge_concurrency) if asked else asking.Answers()
    for verdict in answers.verdicts:
        steps[verdict.trace_id][verdict.step_id or ""] = verdict
    verdicts = [v for trace in built.traces for v in _verdicts(trace, found, steps[trace.trace_id], judge)]
    attributions = [_attribution(trace, found, steps[trace.trace_id], verdicts, tau) for trace in built.traces]
    ended = exit_of(
        traces=built.traces,
        verdicts=verdicts,
        rejected=sum(len(reading.rejected) for reading in readings),
        allow_rejected=allow_rejected,
        asked_for_rules=not model,
        judge_failures=answers.use.failed,
        floor=suite.judge.floor if suite else 0.0,
        budget_spent=answers.budget_spent,
    )
    record = RunRecord(
        run_id="evaluation",
        title=suite.name if suite else ", ".join(Path(name).name for name in paths),
        started=None,
        traces=built.traces,
        findings=tuple(found),
        verdicts=tuple(verdicts),
        attributions=tuple(attributions),
        receipt=receipt(readings, built),
        judge=replace(answers.use, name=judge),
        cases={case.id: case for case in cases},
        tau=tau,
        seed=suite.seed if suite else 0,
        versions={**versions(judge), **(asked.versions() if asked else {})},
        exit_code=ended.code,
        verdict=ended.verdict,
        reasons=ended.reasons,
    )
    write_record(record, out)
    return record


def _examined(trace: Trace, case: Case | None, suite: Suite | None) -> tuple[Finding, ...]:
    expected = evaluating.expectation(case) if case else Expectation()
    return evaluating.examine(trace, expected=expected, checks=suite.checks if suite else None)


def _case_of(trace: Trace, cases: Sequence[Case]) -> Case | None:
    """The case that a trace is a run of: named in its resource, or with the very same input."""
    named = trace.resource.get(CASE)
    for case in cases:
        if case.id == named or (named is None and isinstance(case.input, str) and case.input == trace.task):
            return case
    return None


def _verdicts(trace: Trace, findings: Sequence[Finding], steps: dict[str, Verdict], judge: str) -> list[Verdict]:
    own = [f for f in findings if f.trace_id == trace.trace_id]
    whole = evaluating.trace_verdict(trace, own, steps, judge)
    return [*(steps[step.step_id] for step in trace.steps if step.step_id in steps), whole]


def _attribution(
    trace: Trace, findings: Sequence[Finding], steps: dict[str, Verdict], verdicts: Sequence[Verdict], tau: float
) -> Attribution:
    own = [f for f in findings if f.trace_id == trace.trace_id]
    whole = next(v.verdict for v in verdicts if v.trace_id == trace.trace_id and v.step_id is None)
    return attribute(trace, steps, own, True if whole == "fail" else None, tau)


def _nothing(readings: Sequence[Reading]) -> str:
    rejected = [r for reading in readings for r in reading.rejected]
    if rejected:
        first = rejected[0]
        return f"no span could be read: {first.file}:{first.line}: {first.reason}"
    return f"no span in {', '.join(reading.file for reading in readings) or 'the input'}"
