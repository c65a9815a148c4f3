"""A run's traces, rebuilt from its stored spans, and what became of every span."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from evalagent import trials
from evalagent.adapters import runs
from evalagent.adapters.files import load_prices, load_suite
from evalagent.adapters.garbage import uncollected
from evalagent.adapters.runs import CollectedTrial, PlannedTrial, RunPlan
from evalagent.model import Json, Span, Trace
from evalagent.suites import Suite
from evalagent.traces.building import build
from evalagent.traces.masking import mask_log, mask_span
from evalagent.traces.reading import read
from evalagent.traces.receipt import receipt


@dataclass(frozen=True, slots=True)
class RunTraces:
    """A run's traces as they came, with what became of every span."""

    traces: tuple[Trace, ...]
    spans: tuple[Span, ...]
    receipt: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class TrialView:
    """One planned trial with all that is known of it."""

    planned: PlannedTrial
    collected: CollectedTrial | None
    traces: tuple[Trace, ...]


def traces_of(plan: RunPlan) -> RunTraces:
    """The traces of a run's completed trials. Kept until a file or a trial's record changes."""
    files = runs.otlp_files(plan)
    marks = tuple((str(f), f.stat().st_size) for f in files)
    return _traces(plan, marks, tuple(sorted(_owners(plan).items())))


def _owners(plan: RunPlan) -> dict[str, tuple[str, int]]:
    return {c.run.attempt: (c.run.case_id, c.run.trial) for _, c in runs.collected(plan) if c}


@lru_cache(maxsize=1)
def _traces(
    plan: RunPlan, marks: tuple[tuple[str, int], ...], owners: tuple[tuple[str, tuple[str, int]], ...]
) -> RunTraces:
    suite = suite_of(plan)
    with uncollected():
        readings = [read(Path(name).read_bytes(), Path(name).name, "auto") for name, _ in marks]
        spans = [span for reading in readings for span in reading.spans]
        kept, ignored = trials.of_owners(spans, dict(owners))
        kept = [mask_span(span, suite.secrets) for span in kept]
        logs = [mask_log(record, suite.secrets) for reading in readings for record in reading.logs]
        built = build(kept, logs, load_prices(suite, Path(plan.suite_file).parent))
    told = dict(receipt(readings, built))
    told["ignored"] = dict(sorted({**told["ignored"], **ignored}.items()))
    return RunTraces(built.traces, tuple(kept), told)


def suite_of(plan: RunPlan) -> Suite:
    return load_suite(Path(plan.suite_file))[0]


def trial_views(plan: RunPlan) -> list[TrialView]:
    """Every planned trial, by case in the suite's order and then by number."""
    found = trials.by_trial(traces_of(plan).traces, _owners(plan))
    views = [
        TrialView(planned, collected, tuple(found.get((planned.case.id, planned.trial), ())))
        for planned, collected in runs.collected(plan)
    ]
    order = {view.planned.case.id: n for n, view in reversed(list(enumerate(views)))}
    return sorted(views, key=lambda v: (order[v.planned.case.id], v.planned.trial))


def span_rows(plan: RunPlan) -> Iterable[dict[str, Any]]:
    """The run's spans as rows of the warehouse, each with what became of it."""
    told = traces_of(plan)
    fate = _fates(told.traces)
    return (_span_row(span, fate) for span in told.spans)


def _fates(traces: Iterable[Trace]) -> dict[tuple[str, str], str]:
    fate: dict[tuple[str, str], str] = {}
    for trace in traces:
        fate |= {(trace.trace_id, span_id): reason for span_id, reason in trace.ignored.items()}
        fate |= {(trace.trace_id, c.span_id): "container" for c in trace.containers}
        fate |= {(trace.trace_id, span_id): "step" for step in trace.steps for span_id in step.span_ids}
    return fate


def _span_row(span: Span, fate: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    number = str(span.resource.get(trials.TRIAL, ""))
    return {
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "parent_id": span.parent_id,
        "name": span.name,
        "scope": span.scope,
        "start_ns": span.start_ns,
        "end_ns": span.end_ns,
        "status": span.status,
        "case_id": span.resource.get(trials.CASE),
        "trial": int(number),  # kept spans are of a known trial
        "fate": fate.get((span.trace_id, span.span_id), "duplicate"),
        "payload": {
            "attributes": dict(span.attributes),
            "events": [{"name": e.name, "time_ns": e.time_ns, "attributes": dict(e.attributes)} for e in span.events],
            "links": [{"trace_id": link.trace_id, "span_id": link.span_id} for link in span.links],
            "status_message": span.status_message,
            "resource": dict(span.resource),
        },
    }
