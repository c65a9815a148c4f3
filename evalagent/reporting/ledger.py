"""A run record looked up by trace, step, case and trial, once for the whole report."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from evalagent.evaluating import damaged
from evalagent.model import Attribution, Finding, Outcome, Ruling, Step, Trial, Verdict
from evalagent.records import RunRecord
from evalagent.reporting.report import RunLine
from evalagent.reporting.telling import Telling, failed_as, telling, whole
from evalagent.reporting.wording import line
from evalagent.statistics.units import Unit, units


@dataclass(slots=True)
class Ledger:
    """What the record says of a step, a trace, a run. Lookups only."""

    record: RunRecord
    runs: tuple[Unit, ...] = ()
    steps: dict[tuple[str, str], Step] = field(default_factory=dict)
    step_verdicts: dict[tuple[str, str], list[Verdict]] = field(default_factory=lambda: defaultdict(list))
    whole: dict[str, list[Verdict]] = field(default_factory=lambda: defaultdict(list))
    step_findings: dict[tuple[str, str], list[Finding]] = field(default_factory=lambda: defaultdict(list))
    whole_findings: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    attributions: dict[str, Attribution] = field(default_factory=dict)
    outcomes: dict[tuple[str, int | None], Outcome] = field(default_factory=dict)
    trials: dict[tuple[str, int | None], Trial] = field(default_factory=dict)
    tell: Telling = field(default_factory=Telling)

    def verdict(self, trace_id: str, step_id: str) -> Verdict | None:
        """The verdict that counts for a step: a fail before a pass before not judged; the lowest score first."""
        mine = self.step_verdicts.get((trace_id, step_id))
        if not mine:
            return None
        return min(mine, key=lambda v: (_ORDER[v.verdict], 1.0 if v.score is None else v.score, v.metric, v.judge))

    def ruling(self, trace_id: str, step_id: str) -> Ruling:
        verdict = self.verdict(trace_id, step_id)
        return verdict.verdict if verdict else "not_judged"

    def errors(self, trace_id: str, step_id: str) -> list[Finding]:
        return [f for f in self.step_findings.get((trace_id, step_id), ()) if f.severity == "error"]

    def reasons(self, run: Unit) -> tuple[str, ...]:
        """Why a run has its verdict, with the words of its failed steps in full."""
        errors = [failed_as(step) for trace in run.traces for step in trace.steps if step.error]
        return tuple(self.tell.say(whole(reason, *errors), 2_000, run).text for reason in run.reasons[:50])

    def reason(self, run: Unit, key: tuple[str, str], reason: str, limit: int) -> str:
        """A reason of the attribution for a step, with what it quotes of a verdict and of findings put back in full."""
        verdict, step = self.verdict(*key), self.steps.get(key)
        errors = "; ".join(f.message for f in self.errors(*key))
        known = [(verdict.reason if verdict else None, QUOTED), (errors, QUOTED)]
        known += [(f"{f.code}: {f.message}", QUOTED) for f in self.step_findings.get(key, ())]
        told = whole(whole(reason, *known), failed_as(step))
        return self.tell.say(told, limit, run, step.error if step else None).text

    def line(self, run: Unit, anchor: str | None) -> RunLine:
        # what no model call stands behind was not free: it was not seen
        asked = any(step.kind in ("llm", "embedding") for trace in run.traces for step in trace.steps)
        return RunLine(
            run.case_id,
            run.trial,
            run.verdict,
            self.reasons(run),
            anchor,
            run.steps,
            run.tokens if asked else None,
            run.cost_usd if asked else None,
            run.wall_s,
            any(damaged(trace) for trace in run.traces),
            min((trace.quality for trace in run.traces), default=None),
            line(run.session, 200) if run.session else None,
        )


QUOTED = 300
"""So much of a reason or a message the attribution quotes."""
_ORDER = {"fail": 0, "pass": 1, "not_judged": 2}


def ledger(record: RunRecord) -> Ledger:
    """One pass over the record."""
    runs = units(record)
    book = Ledger(record, runs, tell=telling(runs))
    for trace in record.traces:
        for step in trace.steps:
            book.steps[trace.trace_id, step.step_id] = step
    for verdict in record.verdicts:
        if verdict.step_id is None:
            book.whole[verdict.trace_id].append(verdict)
        else:
            book.step_verdicts[verdict.trace_id, verdict.step_id].append(verdict)
    for finding in record.findings:
        if finding.step_id is None:
            book.whole_findings[finding.trace_id].append(finding)
        else:
            book.step_findings[finding.trace_id, finding.step_id].append(finding)
    book.attributions.update((a.trace_id, a) for a in record.attributions)
    book.outcomes.update(((o.case_id, o.trial), o) for o in record.outcomes)
    book.trials.update(((t.case_id, t.trial), t) for t in record.trials)
    return book


def failed_first(runs: Sequence[Unit]) -> list[Unit]:
    """Failed runs, the costly ones first, else in their order."""
    rank = {"costly": 0, "normal": 1, "harmless": 2}
    return sorted((run for run in runs if run.verdict == "fail"), key=lambda run: rank.get(run.severity, 1))
