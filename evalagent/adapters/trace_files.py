"""`evalagent evaluate`: traces from files, judged, and the output folder written. No run of an agent, no store."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Self

from evalagent.adapters import asking, trace_sources
from evalagent.adapters.files import (
    find_inputs,
    load_prices,
    load_suite,
    must_be_writable,
    must_not_overwrite,
    shown,
    suite_path,
)
from evalagent.adapters.given_traces import Judging, Sitting, unpacked
from evalagent.adapters.judges import Judge
from evalagent.adapters.outputs import discard, write_record
from evalagent.adapters.settings import Settings
from evalagent.adapters.trace_sources import TraceSource
from evalagent.adapters.versions import versions
from evalagent.errors import UnreadableInput, UsageError
from evalagent.evaluating import Concluded, Terms
from evalagent.exits import exit_of
from evalagent.judging.questions import Question
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
    floor: float | None = None,
) -> RunRecord:
    """Read, judge and report the traces in files and folders.

    UsageError for a path or suite that is wrong, for an --out that cannot be written or where an input would be
    overwritten; UnreadableInput if not one span could be read: the outputs are written then too, and say 2 and why.
    What an earlier evaluation wrote there is removed first. `floor`: share of judged steps below which it ends with 3,
    before that of the suite.
    """
    suite, cases = load_suite(suite_file) if suite_file else (None, ())
    judge = asking.chosen(judge, settings)
    folder = suite_path(suite_file).parent if suite_file else None
    model = judge not in asking.WITHOUT_MODEL
    asked = asking.opened(judge, settings, settings.home, suite, folder) if model else None
    patterns = suite.secrets if suite else []
    found = find_inputs(paths)
    inputs = [one for one in found if not one.passed_over]
    must_be_writable(out)
    must_not_overwrite(out, inputs)
    title = suite.name if suite else str(mask(_title(paths)))
    unasked = None if model else asking.NO_MODEL if judge == "rules" else asking.NOT_ASKED
    terms = Terms(judge, unasked, suite, tuple(cases), CASE)
    prices = load_prices(suite, folder) if suite and folder else None
    with trace_sources.opened(inputs, patterns, format, prices, out) as source, _Content(out) as kept:
        if not source.spans_in:
            raise _unreadable(source, title, judge, out)
        told = _judge_all(source, terms, asked, settings.judge_concurrency, kept)
        record = _record(source, terms, told, title, asked, allow_rejected, floor)
        passed_over = [shown(one.name) for one in found if one.passed_over]
        if passed_over:
            record = replace(record, receipt={**record.receipt, "passed_over": passed_over})
        _write(record, out, kept if source.outlined else None)
    return record


def _title(paths: Sequence[str]) -> str:
    names = [Path(name).name or name for name in paths]
    return ", ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"


@dataclass(slots=True)
class _Told:
    """What was said of all traces."""

    concluded: list[Concluded] = field(default_factory=list)
    use: JudgeUse = field(default_factory=lambda: JudgeUse("rules"))
    budget_spent: str = ""
    duplicates: int = 0
    logs: tuple[int, int] = (0, 0)


class _Content:
    """What was said in traces that are too many for memory: the lines of steps.jsonl, and the traces themselves."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._file: IO[bytes] | None = None
        self._steps: dict[str, tuple[int, int]] = {}
        self._whole: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    def add(self, sitting: Sitting) -> None:
        """UsageError if the disk of --out is full."""
        if not sitting.steps and not sitting.whole:
            return
        try:
            if self._file is None:
                self._out.mkdir(parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=self._out)  # noqa: SIM115 - closed in __exit__
            for places, parts in ((self._steps, sitting.steps), (self._whole, sitting.whole)):
                for trace_id, data in parts.items():
                    places[trace_id] = (self._file.seek(0, os.SEEK_END), len(data))
                    self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise UsageError(f"cannot be written: {error.strerror}", file=shown(self._out)) from error

    def steps(self) -> Iterator[bytes]:
        """The lines of steps.jsonl, trace by trace in order of their ids."""
        for trace_id in sorted(self._steps):
            yield self._at(*self._steps[trace_id])

    def whole(self, trace_ids: Sequence[str]) -> dict[str, Trace]:
        """These traces with their content."""
        found = {trace_id: unpacked(self._at(*self._whole[trace_id])) for trace_id in trace_ids}
        return {trace_id: trace for trace_id, trace in found.items() if trace is not None}

    def _at(self, start: int, size: int) -> bytes:
        if self._file is None:
            return b""
        self._file.seek(start)
        return self._file.read(size)


def _judge_all(source: TraceSource, terms: Terms, asked: Judge | None, at_once: int, kept: _Content) -> _Told:
    told = _Told()

    def ask(questions: Sequence[Question]) -> Sequence[Verdict]:
        answers = asking.ask_all(asked, questions, at_once) if asked is not None else asking.Answers()
        told.use, told.budget_spent = answers.use, told.budget_spent or answers.budget_spent
        return answers.verdicts

    work = Judging(terms, ask if asked is not None else None, source.outlined)
    for sitting in source.each(work, here=asked is not None):
        told.concluded += sitting.concluded
        told.duplicates += sitting.duplicates
        told.logs = (told.logs[0] + sitting.logs[0], told.logs[1] + sitting.logs[1])
        kept.add(sitting)
    told.concluded.sort(key=lambda one: (one.trace.start_ns, one.trace.trace_id))
    return told


def _record(
    source: TraceSource,
    terms: Terms,
    told: _Told,
    title: str,
    asked: Judge | None,
    allow_rejected: bool,
    floor: float | None,
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
        floor=floor if floor is not None else suite.judge.floor if suite else 0.0,
        budget_spent=told.budget_spent,
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
        judge=replace(told.use, name=terms.judge),
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


def _write(record: RunRecord, out: Path, kept: _Content | None = None) -> None:
    """All outputs or none; what an earlier evaluation wrote goes first."""
    discard(out)
    try:
        write_record(record, out, steps=kept.steps() if kept else None, whole=kept.whole if kept else None)
    except UsageError:
        discard(out)  # half of the outputs would tell what the exit code does not
        raise


def _nothing(source: TraceSource) -> str:
    if source.rejected:
        first = source.rejected[0]
        where = f"{first.file}:{first.line}" if first.line else first.file
        return f"no span could be read: {where}: {first.reason}"
    return f"no span in {', '.join(source.files) or 'the input'}"
