"""What a run counts: its trials, or where there are none (`evaluate`) its traces."""

from collections import defaultdict
from dataclasses import dataclass

from evalagent.model import Ruling, Trace, Verdict
from evalagent.records import RunRecord
from evalagent.spending import cost_of, tokens_of


@dataclass(frozen=True, slots=True)
class Unit:
    """One run of the agent with its verdict and what it spent; None where that is not known."""

    case_id: str
    """The trace id where there are no cases."""
    trial: int | None
    """None where there are no trials."""
    verdict: Ruling
    reasons: tuple[str, ...]
    steps: int
    tokens: int | None
    cost_usd: float | None
    wall_s: float | None
    severity: str
    held_out: bool
    traces: tuple[Trace, ...]
    """By start; those of the trial that are in the record."""

    @property
    def session(self) -> str | None:
        """The session or conversation that its traces name: the first that one of them says."""
        return next((trace.session for trace in self.traces if trace.session), None)


def units(record: RunRecord) -> tuple[Unit, ...]:
    """Every trial by case and number, or every trace with an agent in it by id."""
    if not record.trials:
        whole = defaultdict(list)
        for verdict in record.verdicts:
            if verdict.step_id is None:
                whole[verdict.trace_id].append(verdict)
        attributed = {a.trace_id: a.verdict for a in record.attributions}
        return tuple(
            _of_trace(trace, whole[trace.trace_id], attributed.get(trace.trace_id, "not_judged"))
            for trace in sorted(record.traces, key=lambda t: t.trace_id)
            if not trace.bystander
        )
    traces = {trace.trace_id: trace for trace in record.traces}
    found = []
    for trial in sorted(record.trials, key=lambda t: (t.case_id, t.trial)):
        mine = sorted((traces[i] for i in trial.trace_ids if i in traces), key=lambda t: (t.start_ns, t.trace_id))
        found.append(
            Unit(
                trial.case_id,
                trial.trial,
                trial.verdict,
                trial.reasons,
                trial.steps,
                trial.tokens,
                trial.cost_usd,
                trial.wall_s,
                trial.severity,
                trial.held_out,
                tuple(mine),
            )
        )
    return tuple(found)


def _of_trace(trace: Trace, whole: list[Verdict], attributed: Ruling) -> Unit:
    """A trace as a unit: its verdicts on the whole decide; without any, what was attributed."""
    rulings = [v.verdict for v in whole] or [attributed]
    verdict: Ruling = "not_judged"
    if "fail" in rulings:
        verdict = "fail"
    elif set(rulings) == {"pass"}:
        verdict = "pass"
    reasons = tuple(dict.fromkeys(v.reason for v in whole if v.verdict == verdict and v.reason))
    wall = (
        (trace.end_ns - trace.start_ns) / 1e9 if trace.end_ns is not None and trace.end_ns >= trace.start_ns else None
    )
    return Unit(
        trace.trace_id,
        None,
        verdict,
        reasons,
        len(trace.steps),
        tokens_of(trace),
        cost_of(trace),
        wall,
        "normal",
        False,
        (trace,),
    )
