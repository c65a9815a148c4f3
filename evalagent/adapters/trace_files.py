"""`evalagent evaluate`: traces from files, judged, and the output folder written. No run of an agent, no store."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evalagent import evaluating
from evalagent.adapters import asking
from evalagent.adapters.files import (
    Input,
    content,
    find_inputs,
    load_prices,
    load_suite,
    must_be_writable,
    must_not_overwrite,
)
from evalagent.adapters.outputs import discard, write_record
from evalagent.adapters.settings import Settings
from evalagent.adapters.versions import versions
from evalagent.attribution.attributing import attribute
from evalagent.errors import UnreadableInput, UsageError
from evalagent.exits import exit_of
from evalagent.judging.deciding import Question, decide, not_judged_verdicts
from evalagent.model import Attribution, Expectation, Finding, Rejected, Trace, Verdict
from evalagent.records import JudgeUse, RunRecord
from evalagent.suites import Case, Suite
from evalagent.traces.building import build
from evalagent.traces.masking import mask, mask_log, mask_span
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

    UsageError for a path or suite that is wrong, for an --out that cannot be written or where an input would be
    overwritten; UnreadableInput if not one span could be read: the outputs are written then too, and say 2 and why.
    What an earlier evaluation wrote there is removed first.
    """
    suite, cases = load_suite(suite_file) if suite_file else (None, ())
    judge = asking.chosen(judge, settings)
    model = judge not in asking.WITHOUT_MODEL
    folder = suite_file.parent if suite_file else None
    asked = asking.opened(judge, settings, settings.home, suite, folder) if model else None
    patterns = suite.secrets if suite else []
    inputs = find_inputs(paths)
    must_be_writable(out)
    must_not_overwrite(out, inputs)
    readings = [_reading(one, patterns, format) for one in inputs]
    title = suite.name if suite else str(mask(", ".join(Path(name).name for name in paths)))
    spans = [mask_span(span, patterns) for reading in readings for span in reading.spans]
    logs = [mask_log(record, patterns) for reading in readings for record in reading.logs]
    if not spans:
        unreadable = UnreadableInput(_nothing(readings))
        nothing = RunRecord(
            run_id="evaluation",
            title=title,
            started=None,
            traces=(),
            findings=(),
            verdicts=(),
            attributions=(),
            receipt=receipt(readings, build((), logs)),
            judge=JudgeUse(judge),
            versions=versions(judge),
            exit_code=unreadable.exit_code,
            reasons=(str(unreadable),),
        )
        _write(nothing, out)
        raise unreadable
    prices = load_prices(suite, suite_file.parent) if suite and suite_file else None
    built = build(spans, logs, prices)
    tau = suite.judge.tau if suite else 0.7
    named = {case.id: case for case in reversed(cases)}
    asked_for = {case.input: case for case in reversed(cases) if isinstance(case.input, str)}
    found: dict[str, tuple[Finding, ...]] = {}
    steps: dict[str, dict[str, Verdict]] = {}
    skipped = evaluating.switched_off(suite.checks) if suite else ()
    questions: list[Question] = []
    for trace in built.traces:
        by = trace.resource.get(CASE)
        case = named.get(str(by)) if by is not None else asked_for.get(trace.task) if trace.task else None
        findings = trace.health if judge == "none" else _examined(trace, case, suite)
        found[trace.trace_id] = findings
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
    verdicts: list[Verdict] = []
    attributions: list[Attribution] = []
    for trace in built.traces:
        own, findings = steps[trace.trace_id], found[trace.trace_id]
        whole = evaluating.trace_verdict(trace, findings, own, judge)
        verdicts += [*(own[step.step_id] for step in trace.steps if step.step_id in own), whole]
        attributions.append(attribute(trace, own, findings, True if whole.verdict == "fail" else None, tau))
    ended = exit_of(
        traces=built.traces,
        verdicts=verdicts,
        rejected=sum(len(reading.rejected) for reading in readings),
        allow_rejected=allow_rejected,
        asked_for_rules=not model,
        judge_failures=asking.unanswered(verdicts),
        floor=suite.judge.floor if suite else 0.0,
        budget_spent=answers.budget_spent,
    )
    record = RunRecord(
        run_id="evaluation",
        title=title,
        started=None,
        traces=built.traces,
        findings=tuple(finding for trace in built.traces for finding in found[trace.trace_id]),
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
    _write(record, out)
    return record


def _write(record: RunRecord, out: Path) -> None:
    """All outputs or none; what an earlier evaluation wrote goes first."""
    discard(out)
    try:
        write_record(record, out)
    except UsageError:
        discard(out)  # half of the outputs would tell what the exit code does not
        raise


def _reading(given: Input, patterns: Sequence[str], format: str) -> Reading:
    """What an input holds; of one that cannot be read, why. A file that was named itself must be readable."""
    name, fault = str(mask(given.name, patterns)), given.fault
    if not fault:
        try:
            return read(content(given), name, format)
        except UsageError as error:
            if given.named:
                raise
            fault = error.message
    return Reading(name, "unknown", 0, 0, (), (), (Rejected(name, 0, fault),))


def _examined(trace: Trace, case: Case | None, suite: Suite | None) -> tuple[Finding, ...]:
    expected = evaluating.expectation(case) if case else Expectation()
    return evaluating.examine(trace, expected=expected, checks=suite.checks if suite else None)


def _nothing(readings: Sequence[Reading]) -> str:
    rejected = [r for reading in readings for r in reading.rejected]
    if rejected:
        first = rejected[0]
        where = f"{first.file}:{first.line}" if first.line else first.file
        return f"no span could be read: {where}: {first.reason}"
    return f"no span in {', '.join(reading.file for reading in readings) or 'the input'}"
