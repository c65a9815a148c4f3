"""Built traces as rows of the trace store."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from evalagent.adapters.arrow import Array, Table, arrow
from evalagent.adapters.span_batches import json_array
from evalagent.model import Trace
from evalagent.traces.building import Built
from evalagent.traces.ties import Tie

BUILT_TABLES = ("traces", "steps", "edges", "findings", "fates")


def built_tables(built: Built) -> dict[str, Table]:
    """Traces with their steps, edges, health findings and fates of spans: a table for each name in `BUILT_TABLES`."""
    steps = [(step, position) for trace in built.traces for position, step in enumerate(trace.steps)]
    edges = [(step, edge) for step, _ in steps for edge in step.parents]
    findings = [(finding, number) for trace in built.traces for number, finding in enumerate(trace.health)]
    fates = [fate for trace in built.traces for fate in _fates(trace)]
    return {
        "traces": _traces(built.traces),
        "steps": _table(
            trace_id=_texts(step.trace_id for step, _ in steps),
            step_id=_texts(step.step_id for step, _ in steps),
            position=_wholes((position for _, position in steps), 32),
            span_ids=_lists([sorted(step.span_ids) for step, _ in steps]),
            kind=_texts(step.kind for step, _ in steps),
            name=_texts(step.name for step, _ in steps),
            agent=_texts(step.agent for step, _ in steps),
            aspect=_texts(step.aspect for step, _ in steps),
            start_ns=_wholes(step.start_ns for step, _ in steps),
            end_ns=_wholes(step.end_ns for step, _ in steps),
            error=_texts(step.error for step, _ in steps),
            input_tokens=_wholes(step.tokens.input if step.tokens else None for step, _ in steps),
            output_tokens=_wholes(step.tokens.output if step.tokens else None for step, _ in steps),
            cost_usd=_numbers(step.cost_usd for step, _ in steps),
            model=_texts(step.model for step, _ in steps),
            executed=_flags(step.executed for step, _ in steps),
            virtual=_flags(step.virtual for step, _ in steps),
            input=json_array([_json(step.input) for step, _ in steps]),
            output=json_array([_json(step.output) for step, _ in steps]),
        ),
        "edges": _table(
            trace_id=_texts(step.trace_id for step, _ in edges),
            child=_texts(step.step_id for step, _ in edges),
            parent=_texts(edge.step_id for _, edge in edges),
            parent_trace_id=_texts(edge.trace_id or step.trace_id for step, edge in edges),
            via=_texts(edge.via for _, edge in edges),
            confidence=_numbers(edge.confidence for _, edge in edges),
        ),
        "findings": _table(
            trace_id=_texts(finding.trace_id for finding, _ in findings),
            number=_wholes((number for _, number in findings), 32),
            step_id=_texts(finding.step_id for finding, _ in findings),
            code=_texts(finding.code for finding, _ in findings),
            severity=_texts(finding.severity for finding, _ in findings),
            message=_texts(finding.message for finding, _ in findings),
            evidence=json_array([_json(f.evidence) for f, _ in findings]),
        ),
        "fates": _table(
            trace_id=_texts(trace for trace, _, _ in fates),
            span_id=_texts(span for _, span, _ in fates),
            fate=_texts(fate for _, _, fate in fates),
        ),
    }


def tie_table(ties: Sequence[Tie]) -> Table | None:
    """Ties as rows of the table `ties`, each once; None where there are none."""
    if not ties:
        return None
    columns = list(zip(*sorted(set(ties)), strict=True))
    texts = {name: _texts(columns[at]) for at, name in enumerate(Tie._fields[:-2])}
    return _table(**texts, start_ns=_wholes(columns[-2]), end_ns=_wholes(columns[-1]))


def _fates(trace: Trace) -> list[tuple[str, str, str]]:
    fates = [(trace.trace_id, span, "step") for step in trace.steps for span in step.span_ids]
    fates += [(trace.trace_id, container.span_id, "container") for container in trace.containers]
    fates += [(trace.trace_id, span, why) for span, why in trace.ignored.items()]
    return sorted(fates)


def _traces(traces: Sequence[Trace]) -> Table:
    tokens = [[step.tokens for step in trace.steps if step.tokens] for trace in traces]
    costs = [[step.cost_usd for step in trace.steps if step.cost_usd is not None] for trace in traces]
    sizes = [sum(len(s.span_ids) for s in t.steps) + len(t.containers) + len(t.ignored) for t in traces]
    duplicates = [
        sum(f.evidence["spans"] for f in trace.health if f.code == "duplicate_span" and isinstance(f.evidence, dict))
        for trace in traces
    ]
    return _table(
        trace_id=_texts(trace.trace_id for trace in traces),
        start_ns=_wholes(trace.start_ns for trace in traces),
        end_ns=_wholes(trace.end_ns for trace in traces),
        session=_texts(trace.session for trace in traces),
        task=_texts(trace.task for trace in traces),
        answer=_texts(trace.answer for trace in traces),
        quality=_numbers(trace.quality for trace in traces),
        spans=_wholes(sizes),
        steps=_wholes(len(trace.steps) for trace in traces),
        edges=_wholes(sum(len(step.parents) for step in trace.steps) for trace in traces),
        containers=_wholes(len(trace.containers) for trace in traces),
        ignored=_wholes(len(trace.ignored) for trace in traces),
        duplicates=_wholes(duplicates),
        input_tokens=_wholes(_sum(t.input for t in spent) for spent in tokens),
        output_tokens=_wholes(_sum(t.output for t in spent) for spent in tokens),
        cost_usd=_numbers(sum(cost) if cost else None for cost in costs),
        resource=json_array([_json(trace.resource) for trace in traces]),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _json(value: Any) -> bytes | None:
    """JSON of a value as output files have it; None for None."""
    if value is None:
        return None
    try:
        return orjson.dumps(value)
    except TypeError:
        from evalagent.adapters.files import dump  # with all that it imports

        return dump(value)


# --- arrays: what a column cannot hold is held as what comes nearest -----------------------------


def _table(**columns: Array) -> Table:
    pa = arrow()
    return pa.table(columns)


def _texts(values: Iterable[str | None]) -> Array:
    pa = arrow()
    held = list(values)
    try:
        return pa.array(held, pa.string())
    except UnicodeEncodeError:
        return pa.array([None if t is None else t.encode("utf-8", "replace").decode() for t in held], pa.string())


def _lists(values: Sequence[Sequence[str]]) -> Array:
    pa = arrow()
    return pa.array(values, pa.list_(pa.string()))


def _wholes(values: Iterable[int | None], bits: int = 64) -> Array:
    pa = arrow()
    held = list(values)
    kind = pa.int32() if bits == 32 else pa.int64()
    try:
        return pa.array(held, kind)
    except (OverflowError, pa.ArrowInvalid):
        most = (1 << (bits - 1)) - 1
        return pa.array([None if n is None else min(max(n, -most), most) for n in held], kind)


def _numbers(values: Iterable[float | None]) -> Array:
    pa = arrow()
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def _flags(values: Iterable[bool]) -> Array:
    pa = arrow()
    return pa.array(list(values), pa.bool_())
