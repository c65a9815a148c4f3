"""Everything that is told of one run: task, expectation, world, steps, causes."""

from collections.abc import Mapping, Sequence

from evalagent.model import Attribution, Finding, Json, Step, Trace
from evalagent.reporting.causes import hints, title_of, unsure
from evalagent.reporting.drawing import draw
from evalagent.reporting.ledger import Ledger
from evalagent.reporting.naming import Anchors, where
from evalagent.reporting.report import CauseLine, Drawing, FindingLine, Parent, RunDetail, RunLine, StepLine
from evalagent.reporting.telling import failed_as, folded, whole
from evalagent.reporting.wording import bounded, line, value
from evalagent.reporting.world import expected_of, world_of
from evalagent.statistics.units import Unit
from evalagent.suites import Case

_TEXT = 1_200
_RECOVERED = 20
_FINDINGS = 60


def detail(book: Ledger, run: Unit, said: RunLine, why: str, anchors: Anchors, most: int) -> RunDetail:
    """The details of a run that stands in the report under `said.anchor`. At most `most` of its steps are listed: of a
    longer run those that matter and their neighbours."""
    case = book.record.cases.get(run.case_id)
    trial = book.trials.get((run.case_id, run.trial))
    outcome = book.outcomes.get((run.case_id, run.trial))
    names = _names(run)
    marks = _marks(book, run)
    kept = _kept(book, run, marks, most)
    places = {key: anchors.take("step", run.case_id, run.trial, key[1]) for key in names if key in kept}
    first = _first(book, run)
    answer = (trial.answer if trial else None) or next((t.answer for t in run.traces[::-1] if t.answer), None)
    steps = _steps(book, run, names, places, marks)
    return RunDetail(
        line=said,
        task=task_of(case, run.traces),
        why=why,
        severity=run.severity,
        expected=expected_of(case),
        answer=value(answer, _TEXT),
        world=world_of(outcome),
        world_verdict=outcome.verdict if outcome else None,
        world_reason=line(outcome.reason, 400) if outcome else "",
        first_failing=f"step {names[first]}, {where(book.steps[first])}" if first else "",
        first_failing_anchor=places.get(first) if first else None,
        causes=_causes(book, run, names, places),
        ambiguous=unsure(book, run),
        hints=hints(book, run),
        recovered=_recovered(book, run, names),
        steps=steps,
        steps_left_out=len(names) - len(steps),
        findings=_findings(book, run, names, places),
        drawings=_drawings(book, run, names, places, marks),
        trace_ids=tuple(trace.trace_id for trace in run.traces),
    )


def task_of(case: Case | None, traces: Sequence[Trace]) -> str:
    """What was asked."""
    if case is not None:
        return bounded(case.input if isinstance(case.input, str) else "\n".join(case.input), _TEXT)
    return bounded(next((trace.task for trace in traces if trace.task), ""), _TEXT)


Key = tuple[str, str]


def _names(run: Unit) -> dict[Key, int]:
    """(trace id, step id) -> number in the run, from 1."""
    keys = ((trace.trace_id, step.step_id) for trace in run.traces for step in trace.steps)
    return {key: number for number, key in enumerate(keys, 1)}


def _attributions(book: Ledger, run: Unit) -> list[Attribution]:
    return [book.attributions[t.trace_id] for t in run.traces if t.trace_id in book.attributions]


def _marks(book: Ledger, run: Unit) -> dict[Key, tuple[str, ...]]:
    """What stands out: root causes, the first failing step, the way between, recovered errors."""
    found: dict[Key, list[str]] = {}
    for attribution in _attributions(book, run):
        own = attribution.trace_id
        first = [attribution.first_failing_step] if attribution.first_failing_step else []
        for mark, step_ids in (
            (
                "possible cause" if attribution.ambiguous else "root cause",
                [cause.step_id for cause in attribution.root_causes],
            ),
            ("first failing", first),
            ("on the way", [step_id for cause in attribution.root_causes for step_id in cause.path]),
            ("recovered", [recovered.step_id for recovered in attribution.recovered]),
        ):
            for step_id in dict.fromkeys(step_ids):
                found.setdefault((own, step_id), []).append(mark)
    return {key: tuple(marks) for key, marks in found.items()}


def _first(book: Ledger, run: Unit) -> Key | None:
    for attribution in _attributions(book, run):
        key = (attribution.trace_id, attribution.first_failing_step or "")
        if key in book.steps:
            return key
    return None


def _kept(book: Ledger, run: Unit, marks: Mapping[Key, tuple[str, ...]], most: int) -> set[Key]:
    """The steps to list: all, or of a long run those that matter with their neighbours, then the first ones."""
    keys = [(trace.trace_id, step.step_id) for trace in run.traces for step in trace.steps]
    if len(keys) <= most:
        return set(keys)
    telling = [n for n, key in enumerate(keys) if book.ruling(*key) == "fail" or book.errors(*key) or key in marks]
    kept: dict[int, None] = dict.fromkeys(telling[: most // 2])
    kept.update(dict.fromkeys(telling[-(most // 4) :]))
    for near in (*(n + d for n in list(kept) for d in (-1, 1)), len(keys) - 1, *range(most // 8)):
        if len(kept) < most and 0 <= near < len(keys):
            kept[near] = None
    return {keys[n] for n in kept}


def _steps(
    book: Ledger,
    run: Unit,
    names: Mapping[Key, int],
    places: Mapping[Key, str],
    marks: Mapping[Key, tuple[str, ...]],
) -> tuple[StepLine, ...]:
    found: list[StepLine] = []
    skipped = 0
    for key, number in names.items():
        if key not in places:
            skipped += 1
            continue
        found.append(_step(book, run, key, number, names, places, marks.get(key, ()), skipped))
        skipped = 0
    return tuple(found)


def _step(
    book: Ledger,
    run: Unit,
    key: Key,
    number: int,
    names: Mapping[Key, int],
    places: Mapping[Key, str],
    marks: tuple[str, ...],
    skipped: int,
) -> StepLine:
    step, verdict = book.steps[key], book.verdict(*key)
    error = folded(step.error or "")
    reason = book.tell.say(whole(verdict.reason, failed_as(step)), 600, run, step.error).text if verdict else ""
    parents = []
    for edge in step.parents:
        other = (edge.trace_id or key[0], edge.step_id)
        parents.append(Parent(names.get(other), places.get(other), edge.via, edge.confidence))
    lasted = None
    if step.end_ns is not None and step.end_ns >= step.start_ns and not step.virtual:  # nothing timed a virtual one
        lasted = (step.end_ns - step.start_ns) / 1e9
    return StepLine(
        number=number,
        anchor=places[key],
        step_id=line(step.step_id, 80),
        kind=step.kind,
        name=line(step.name, 80),
        aspect=step.aspect,
        agent=line(step.agent, 40) if step.agent else None,
        verdict=verdict.verdict if verdict else "not_judged",
        score=verdict.score if verdict else None,
        judge=line(verdict.judge, 60) if verdict and verdict.verdict != "not_judged" else None,
        reason=reason if verdict else "nobody was asked",
        own_fault=verdict.own_fault if verdict and verdict.verdict == "fail" else None,
        marks=marks,
        error=bounded(error.text, 600) or None,
        error_rest=bounded(error.rest, 4_000),
        input=value(_input(step), _TEXT),
        output=value(_output(step), _TEXT),
        quotes=book.tell.evidence(verdict.evidence, reason, run) if verdict and verdict.judge != "rules" else (),
        parents=tuple(parents),
        seconds=lasted,
        tokens=(step.tokens.input, step.tokens.output) if step.tokens else None,
        notes=_notes(step),
        skipped_before=skipped,
    )


def _input(step: Step) -> Json:
    return step.arguments if step.kind in ("tool", "handoff") and step.arguments is not None else step.input


def _output(step: Step) -> Json:
    return step.result if step.kind in ("tool", "handoff", "retrieval") and step.result is not None else step.output


def _notes(step: Step) -> tuple[str, ...]:
    said = {
        "asked for and never run": not step.executed,
        "seen only in the messages": step.virtual and step.executed,
        "cut by a limit of the trace": step.truncated,
        "content not captured": not step.content,
    }
    return tuple(note for note, holds in said.items() if holds)


def _causes(book: Ledger, run: Unit, names: Mapping[Key, int], places: Mapping[Key, str]) -> tuple[CauseLine, ...]:
    found = []
    for attribution in _attributions(book, run):
        for cause in attribution.root_causes:
            key = (attribution.trace_id, cause.step_id)
            if key not in book.steps:
                continue
            way = [(attribution.trace_id, step_id) for step_id in cause.path]
            path = [f"{names[k]} {where(book.steps[k])}" for k in way if k in names]
            shown = path if len(path) <= 12 else [*path[:6], f"… {len(path) - 12} more …", *path[-6:]]
            title = title_of(book, attribution.trace_id, cause)[0]
            said = f"step {names[key]}, {where(book.steps[key])}"
            reason = book.reason(run, key, cause.reason, 600)
            found.append(CauseLine(places.get(key), said, title, reason, tuple(shown)))
    return tuple(found)


def _recovered(book: Ledger, run: Unit, names: Mapping[Key, int]) -> tuple[str, ...]:
    found = []
    for attribution in _attributions(book, run):
        for one in attribution.recovered:
            key, by = (attribution.trace_id, one.step_id), names.get((attribution.trace_id, one.by or ""))
            if key in names:
                good = f", made good by step {by}" if by else ""
                reason = line(book.reason(run, key, one.reason, 1_200), 300)
                found.append(f"step {names[key]}, {where(book.steps[key])}{good}: {reason}")
    return tuple(found[:_RECOVERED]) + ((f"… and {len(found) - _RECOVERED} more",) if len(found) > _RECOVERED else ())


def _findings(book: Ledger, run: Unit, names: Mapping[Key, int], places: Mapping[Key, str]) -> tuple[FindingLine, ...]:
    """Findings on the whole run, then those on its steps, errors before warnings before the rest."""
    rank = {"error": 0, "warning": 1, "info": 2}
    found: list[tuple[int, int, Finding]] = []
    for trace in run.traces:
        found.extend((rank[f.severity], 0, f) for f in book.whole_findings.get(trace.trace_id, ()))
        for step in trace.steps:
            key = (trace.trace_id, step.step_id)
            found.extend((rank[f.severity], names[key], f) for f in book.step_findings.get(key, ()))
    found.sort(key=lambda item: (item[0], item[1], item[2].code, item[2].message))
    lines = []
    for _, number, finding in found[:_FINDINGS]:
        anchor = places.get((finding.trace_id, finding.step_id or ""))
        told = f"step {number}" if number else "the whole run"
        about = book.steps.get((finding.trace_id, finding.step_id or ""))
        message = book.tell.say(whole(finding.message, failed_as(about)), 500, run, about.error if about else None)
        said = book.tell.evidence(finding.evidence, message.text, run)
        code = line(finding.code, 60)
        lines.append(FindingLine(code, finding.severity, message.text, said, anchor, told, message.rest))
    if len(found) > _FINDINGS:
        more = f"… and {len(found) - _FINDINGS} more findings, in findings.jsonl"
        lines.append(FindingLine("more", "info", more, (), None, ""))
    return tuple(lines)


def _drawings(
    book: Ledger,
    run: Unit,
    names: Mapping[Key, int],
    places: Mapping[Key, str],
    marks: Mapping[Key, tuple[str, ...]],
) -> tuple[Drawing, ...]:
    found = []
    for trace in run.traces[:3]:
        if not trace.steps:
            continue
        attribution = book.attributions.get(trace.trace_id)
        own = trace.trace_id
        drawing = draw(
            trace,
            lambda step_id, own=own: book.ruling(own, step_id),  # type: ignore[misc]
            lambda step_id, own=own: marks.get((own, step_id), ()),  # type: ignore[misc]
            lambda step_id, own=own: places.get((own, step_id)),  # type: ignore[misc]
            [cause.path for cause in attribution.root_causes] if attribution else [],
            names[own, trace.steps[0].step_id],
        )
        found.extend([drawing] if drawing else [])
    return tuple(found)
