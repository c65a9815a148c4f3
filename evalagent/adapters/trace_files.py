"""`evalagent evaluate`: traces from files, judged, and the output folder written. No run of an agent, no store."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evalagent.adapters import asking, trace_sources
from evalagent.adapters.files import find_inputs, load_prices, load_suite, must_be_writable, must_not_overwrite
from evalagent.adapters.judges import Judge
from evalagent.adapters.outputs import discard, write_record
from evalagent.adapters.settings import Settings
from evalagent.adapters.trace_sources import TraceSource
from evalagent.adapters.versions import versions
from evalagent.errors import UnreadableInput, UsageError
from evalagent.evaluating import Bench, Concluded, Terms
from evalagent.exits import exit_of
from evalagent.model import Trace, Verdict
from evalagent.records import JudgeUse, RunRecord
from evalagent.suites import Case, Suite
from evalagent.traces.masking import mask
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
    folder = suite_file.parent if suite_file else None
    model = judge not in asking.WITHOUT_MODEL
    asked = asking.opened(judge, settings, settings.home, suite, folder) if model else None
    patterns = suite.secrets if suite else []
    inputs = find_inputs(paths)
    must_be_writable(out)
    must_not_overwrite(out, inputs)
    title = suite.name if suite else str(mask(", ".join(Path(name).name for name in paths)))
    unasked = None if model else asking.NO_MODEL if judge == "rules" else asking.NOT_ASKED
    terms = Terms(judge, unasked, suite, tuple(cases), CASE)
    prices = load_prices(suite, folder) if suite and folder else None
    with trace_sources.opened(inputs, patterns, format, prices) as source:
        if not source.spans_in:
            raise _unreadable(source, title, judge, out)
        told = _judge_all(source, terms, asked, settings.judge_concurrency)
        record = _record(source, terms, told, title, asked, allow_rejected)
        _write(record, out)
    return record


@dataclass(slots=True)
class _Told:
    """What was said of all traces."""

    concluded: list[Concluded] = field(default_factory=list)
    answers: asking.Answers = field(default_factory=asking.Answers)
    duplicates: int = 0
    logs: tuple[int, int] = (0, 0)


def _judge_all(source: TraceSource, terms: Terms, asked: Judge | None, at_once: int) -> _Told:
    told = _Told()
    bench = Bench(terms)
    for built in source.each(lambda built: built):
        examined = [bench.examined(trace) for trace in built.traces]
        answers: dict[str, list[Verdict]] = {}
        if asked is not None:
            said = asking.ask_all(asked, [q for one in examined for q in one.questions], at_once)
            for verdict in said.verdicts:
                answers.setdefault(verdict.trace_id, []).append(verdict)
            told.answers = replace(said, budget_spent=told.answers.budget_spent or said.budget_spent)
        told.concluded += [bench.concluded(one, answers.get(one.trace.trace_id, ())) for one in examined]
        told.duplicates += built.duplicates
        told.logs = (told.logs[0] + built.log_attached, told.logs[1] + built.log_ignored)
    told.concluded.sort(key=lambda one: (one.trace.start_ns, one.trace.trace_id))
    return told


def _record(
    source: TraceSource, terms: Terms, told: _Told, title: str, asked: Judge | None, allow_rejected: bool
) -> RunRecord:
    suite: Suite | None = terms.suite
    cases: tuple[Case, ...] = terms.cases
    traces: tuple[Trace, ...] = tuple(one.trace for one in told.concluded)
    verdicts = tuple(verdict for one in told.concluded for verdict in one.verdicts)
    ended = exit_of(
        traces=traces,
        verdicts=verdicts,
        rejected=len(source.rejected),
        allow_rejected=allow_rejected,
        asked_for_rules=terms.unasked is not None,
        judge_failures=asking.unanswered(verdicts),
        floor=suite.judge.floor if suite else 0.0,
        budget_spent=told.answers.budget_spent,
    )
    return RunRecord(
        run_id="evaluation",
        title=title,
        started=None,
        traces=traces,
        findings=tuple(finding for one in told.concluded for finding in one.findings),
        verdicts=verdicts,
        attributions=tuple(one.attribution for one in told.concluded),
        receipt=source.receipt(traces, told.duplicates, told.logs),
        judge=replace(told.answers.use, name=terms.judge),
        cases={case.id: case for case in cases},
        tau=terms.tau,
        seed=suite.seed if suite else 0,
        versions={**versions(terms.judge, bool(suite and suite.prices)), **(asked.versions() if asked else {})},
        exit_code=ended.code,
        verdict=ended.verdict,
        reasons=ended.reasons,
    )


def _unreadable(source: TraceSource, title: str, judge: str, out: Path) -> UnreadableInput:
    """What to raise when there is no span; the outputs say the same."""
    unreadable = UnreadableInput(_nothing(source))
    logs = source.receipt((), 0, (0, 0))["log_records"]["in"]
    nothing = RunRecord(
        run_id="evaluation",
        title=title,
        started=None,
        traces=(),
        findings=(),
        verdicts=(),
        attributions=(),
        receipt=source.receipt((), 0, (0, logs)),
        judge=JudgeUse(judge),
        versions=versions(judge),
        exit_code=unreadable.exit_code,
        reasons=(str(unreadable),),
    )
    _write(nothing, out)
    return unreadable


def _write(record: RunRecord, out: Path) -> None:
    """All outputs or none; what an earlier evaluation wrote goes first."""
    discard(out)
    try:
        write_record(record, out)
    except UsageError:
        discard(out)  # half of the outputs would tell what the exit code does not
        raise


def _nothing(source: TraceSource) -> str:
    if source.rejected:
        first = source.rejected[0]
        where = f"{first.file}:{first.line}" if first.line else first.file
        return f"no span could be read: {where}: {first.reason}"
    return f"no span in {', '.join(source.files) or 'the input'}"
