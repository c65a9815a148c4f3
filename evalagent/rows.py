"""The rows of the output files: one plain dictionary for one value, keys as documented, order fixed."""

from collections.abc import Iterable, Iterator

from evalagent.model import (
    Attribution,
    Edge,
    ExpectedChange,
    Finding,
    Json,
    Outcome,
    RootCause,
    Step,
    Trace,
    Trial,
    Verdict,
    WorldChange,
)

Row = dict[str, Json]


def step_row(step: Step) -> Row:
    tokens = step.tokens
    return {
        "trace_id": step.trace_id,
        "step_id": step.step_id,
        "span_ids": sorted(step.span_ids),
        "kind": step.kind,
        "name": step.name,
        "agent": step.agent,
        "start_ns": step.start_ns,
        "end_ns": step.end_ns,
        "aspect": step.aspect,
        "parents": [_edge(edge) for edge in step.parents],
        "error": step.error,
        "tokens": {"input": tokens.input, "output": tokens.output} if tokens else {"input": None, "output": None},
        "cost_usd": step.cost_usd,
        "input": step.input,
        "output": step.output,
        "model": step.model,
        "node": step.node,
        "virtual": step.virtual,
        "executed": step.executed,
        "request_step": step.request_step,
        "cache_tokens": {"read": tokens.cache_read, "write": tokens.cache_write} if tokens else None,
    }


def _edge(edge: Edge) -> Row:
    row: Row = {"step_id": edge.step_id, "via": edge.via, "confidence": edge.confidence}
    return row | {"trace_id": edge.trace_id} if edge.trace_id else row


def step_rows(traces: Iterable[Trace]) -> Iterator[Row]:
    """All steps, by trace and then in the trace's own order (parents first)."""
    return (step_row(step) for trace in sorted(traces, key=lambda t: t.trace_id) for step in trace.steps)


def finding_row(finding: Finding) -> Row:
    return {
        "trace_id": finding.trace_id,
        "step_id": finding.step_id,
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "evidence": finding.evidence,
    }


def verdict_row(verdict: Verdict) -> Row:
    return {
        "trace_id": verdict.trace_id,
        "step_id": verdict.step_id,
        "metric": verdict.metric,
        "verdict": verdict.verdict,
        "score": verdict.score,
        "own_fault": verdict.own_fault,
        "aspect": verdict.aspect,
        "judge": verdict.judge,
        "rubric": verdict.rubric,
        "category": verdict.category,
        "reason": verdict.reason,
        "evidence": verdict.evidence,
    }


def attribution_row(attribution: Attribution) -> Row:
    return {
        "trace_id": attribution.trace_id,
        "verdict": attribution.verdict,
        "first_failing_step": attribution.first_failing_step,
        "root_causes": [_cause(cause) for cause in attribution.root_causes],
        "recovered": [{"step_id": r.step_id, "by": r.by, "reason": r.reason} for r in attribution.recovered],
        "ambiguous": attribution.ambiguous,
    }


def _cause(cause: RootCause) -> Row:
    return {
        "step_id": cause.step_id,
        "score": cause.score,
        "category": cause.category,
        "path": list(cause.path),
        "reason": cause.reason,
    }


def outcome_row(outcome: Outcome) -> Row:
    return {
        "case_id": outcome.case_id,
        "trial": outcome.trial,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "expected": [_expected(e) for e in outcome.expected],
        "unexpected": [_change(c) for c in outcome.unexpected],
        "masked": [_change(c) for c in outcome.masked],
    }


def _expected(expected: ExpectedChange) -> Row:
    return {"change": dict(expected.change), "met": expected.met, "reason": expected.reason}


def _change(change: WorldChange) -> Row:
    return {
        "table": change.table,
        "key": change.key,
        "change": change.change,
        "before": dict(change.before) if change.before is not None else None,
        "after": dict(change.after) if change.after is not None else None,
    }


def trial_row(trial: Trial) -> Row:
    return {
        "run_id": trial.run_id,
        "case_id": trial.case_id,
        "trial": trial.trial,
        "trace_ids": list(trial.trace_ids),
        "verdict": trial.verdict,
        "reasons": list(trial.reasons),
        "steps": trial.steps,
        "tokens": trial.tokens,
        "cost_usd": trial.cost_usd,
        "wall_s": trial.wall_s,
        "held_out": trial.held_out,
        "severity": trial.severity,
        "exit": trial.exit,
        "answer": trial.answer,
    }
