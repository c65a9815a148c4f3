"""summary.json: the numbers of a run in one object, for programs to read."""

from collections import Counter
from collections.abc import Iterable

from evalagent.model import Json
from evalagent.records import RunRecord
from evalagent.reporting.quality import quality
from evalagent.statistics.scorecard import scorecard


def summary(record: RunRecord) -> dict[str, Json]:
    """Counts, coverage, scorecard, budgets, exit code and versions of a run. Unknown numbers are null."""
    steps = [v for v in record.verdicts if v.step_id is not None]
    judged = [v for v in steps if v.verdict != "not_judged"]
    use, trusted = record.judge, quality(record.traces)
    return {
        "run_id": record.run_id,
        "title": record.title,
        "exit_code": record.exit_code,
        "verdict": record.verdict,
        "reasons": list(record.reasons),
        "counts": {
            "traces": len(record.traces),
            "steps": sum(len(trace.steps) for trace in record.traces),
            "steps_by_kind": _counted(step.kind for trace in record.traces for step in trace.steps),
            "trials": len(record.trials),
            "trials_by_verdict": _counted(trial.verdict for trial in record.trials),
            "findings": _counted(f"{f.severity}:{f.code}" for f in record.findings),
            "verdicts": _counted(v.verdict for v in steps),
        },
        "coverage": {
            "steps": len(steps),
            "judged": len(judged),
            "share": round(len(judged) / len(steps), 6) if steps else None,
            "by_judge": _counted(v.judge for v in judged),
        },
        "trace_quality": {
            "mean": trusted.mean,
            "lowest": trusted.lowest,
            "damaged": trusted.damaged,
            "below_1": {
                trace.trace_id: round(trace.quality, 4)
                for trace in record.traces
                if trace.quality < 1.0 and not trace.bystander
            },
        },
        "scorecard": scorecard(record).to_json(),
        "budgets": record.budgets.model_dump() if record.budgets else None,
        "judge": {
            "name": use.name,
            "models": list(use.models),
            "calls": use.calls,
            "cached": use.cached,
            "failed": use.failed,
            "input_tokens": use.input_tokens,
            "output_tokens": use.output_tokens,
            "cost_usd": use.cost_usd,
        },
        "seed": record.seed,
        "tau": record.tau,
        "versions": dict(record.versions),
    }


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
