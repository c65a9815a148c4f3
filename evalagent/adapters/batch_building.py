"""What a worker process does with some companies of traces: builds each by itself, and does the work on all."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from evalagent.adapters.arrow import Table
from evalagent.adapters.span_batches import logs_in, spans_in
from evalagent.adapters.step_rows import tie_table
from evalagent.model import Finding, Json, LogRecord, Span, Trace
from evalagent.traces.building import Built, build
from evalagent.traces.ties import Tie

MOST_TOGETHER = 50_000
"""Spans of a company up to which it is built as one."""


class Batch(NamedTuple):
    """Whole companies: their spans and log records, and for each trace its company, the spans of it that came again,
    and whether its company was cut."""

    spans: Table
    logs: Table | None
    traces: dict[str, tuple[int, int, bool]]
    prices: Mapping[str, Json] | None
    among_others: bool


class Made(NamedTuple):
    """What a batch gave: the result of the work on it, and what only building could tell."""

    result: Any
    sessions: list[tuple[str, str]]
    ties: Table | None
    stepped: bool


def make(work: Callable[[Built], Any], batch: Batch) -> Made:
    """Build a batch and do the work on what was built."""
    ties: list[Tie] = []
    built = _built(batch, ties)
    return Made(
        work(built),
        [(trace.trace_id, trace.session) for trace in built.traces if trace.session],
        tie_table(ties),
        any(trace.steps for trace in built.traces),
    )


def _built(batch: Batch, ties: list[Tie]) -> Built:
    """The batch built company by company; `ties` gets what the traces may belong with."""
    spans: dict[int, list[Span]] = {}
    logs: dict[int, list[LogRecord]] = {}
    ids: set[tuple[str, str]] = set()
    for span in spans_in(batch.spans):
        spans.setdefault(batch.traces[span.trace_id][0], []).append(span)
        ids.add((span.trace_id, span.span_id))
    attached = ignored = 0
    if batch.logs is not None:
        for log, copies in zip(logs_in(batch.logs), batch.logs.column("copies").to_pylist(), strict=True):
            if (log.trace_id, log.span_id) in ids:
                attached, ignored = attached + 1, ignored + copies - 1
                logs.setdefault(batch.traces[log.trace_id][0], []).append(log)
            else:
                ignored += copies
    repeated = {trace_id: again for trace_id, (_, again, _) in batch.traces.items() if again}
    traces: list[Trace] = []
    for company in sorted(spans):
        built = build(
            spans[company],
            logs.get(company, ()),
            batch.prices,
            repeated=repeated,
            among_others=batch.among_others,
            ties=ties,
        )
        traces += built.traces
    traces = [_told_cut(trace) if batch.traces[trace.trace_id][2] else trace for trace in traces]
    traces.sort(key=lambda trace: (trace.start_ns, trace.trace_id))
    return Built(tuple(traces), sum(repeated.values()), attached, ignored)


def _told_cut(trace: Trace) -> Trace:
    finding = Finding(
        trace.trace_id,
        None,
        "session_cut",
        "info",
        f"its session holds more than {MOST_TOGETHER} spans and was built in parts, so that edges between traces of it"
        " may be missing; a session id that never changes is the usual reason",
    )
    return replace(trace, health=(*trace.health, finding))
