"""A trace with what is known of each step: failing, recovered, not judged; by position, parents before children."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from evalagent.attribution.overruns import blamed_for_overrun
from evalagent.checks.codes import CODES
from evalagent.model import Finding, Json, OwnFault, Recovered, Step, Trace, Verdict

EVIDENCE = frozenset({"call", "data", "handoff", "link"})
"""Edges along which a fault travels; `retry` and `order` say only what came before."""


@dataclass(slots=True)
class Judged:
    """Steps by position; every set and mapping below is keyed by position."""

    steps: Sequence[Step]
    order: Mapping[str, int]
    """step id -> position."""
    verdicts: Mapping[str, Verdict]
    errors: Mapping[str, list[Finding]]
    failing: set[int]
    unjudged: set[int]
    excused: set[str]
    """Ids of steps whose error was made good."""
    recovered: list[Recovered]
    trace_errors: list[Finding]
    suspects: set[int]
    """Those of the failing that were excused because the end state is right, in a run that failed all the same: they
    count only where what failed goes back to them."""
    candidates: set[int]
    """Those of the failing of which one made an unexpected change, and it is not known which."""

    def transparent(self, at: int) -> bool:
        """A call that did what it was asked to, by the rules, which do not ask whether the wish was right.

        A fault in the wish passes through it: what came back is as wrong as what was asked for.
        """
        if self.steps[at].kind != "tool" or at in self.failing or self.steps[at].step_id in self.excused:
            return False
        verdict = self.verdicts.get(self.steps[at].step_id)
        return verdict is not None and verdict.verdict == "pass" and verdict.judge == "rules"

    def apart(self, at: int) -> bool:
        """A call that did more than it was asked to: no fault in the wish can have made it."""
        return any(_told(f, "beyond") is True for f in self.errors.get(self.steps[at].step_id, ()))

    def evidence(self, at: int) -> tuple[int, ...]:
        """Positions of the parents that this step depends on by evidence, ascending."""
        return self._parents(at, True)

    def weak(self, at: int) -> tuple[int, ...]:
        """Positions of the parents known by order or as the try before, ascending."""
        return self._parents(at, False)

    def _parents(self, at: int, evident: bool) -> tuple[int, ...]:
        """Later positions are left out: they are the last edges of a cycle."""
        step = self.steps[at]
        if len(step.parents) == 1:  # most steps have one, and a trace may have a million steps
            edge = step.parents[0]
            place = self.order.get(edge.step_id, at)
            fits = (edge.via in EVIDENCE) is evident and (edge.trace_id is None or edge.trace_id == step.trace_id)
            return (place,) if fits and place < at else ()
        found = [
            self.order.get(e.step_id, at)
            for e in step.parents
            if (e.via in EVIDENCE) is evident and (e.trace_id is None or e.trace_id == step.trace_id)
        ]
        if len(found) > 1:
            found = sorted(set(found))
        return tuple(p for p in found if p < at)

    def outside(self, at: int) -> bool:
        return any(e.via in EVIDENCE and not self._inside(at, e.trace_id) for e in self.steps[at].parents)

    def _inside(self, at: int, trace_id: str | None) -> bool:
        return trace_id is None or trace_id == self.steps[at].trace_id

    def score(self, at: int) -> float:
        """How bad a failing step is, 0 the worst; an error finding without a score is 0."""
        shown = self.shown_score(at)
        return 0.0 if shown is None else shown

    def shown_score(self, at: int) -> float | None:
        verdict = self.verdicts.get(self.steps[at].step_id)
        return verdict.score if verdict is not None else None

    def badness(self, at: int) -> tuple[float, int, str]:
        """Sorts the worst first; ties by earlier start, then by id."""
        return self.score(at), self.steps[at].start_ns, self.steps[at].step_id

    def own_fault(self, at: int) -> OwnFault:
        step_id = self.steps[at].step_id
        verdict = self.verdicts.get(step_id)
        if verdict is not None and verdict.own_fault != "unknown":
            return verdict.own_fault
        said: set[OwnFault] = {_fault(finding) for finding in self.errors.get(step_id, [])}
        return "yes" if "yes" in said else "no" if said == {"no"} else "unknown"

    def category(self, at: int) -> str | None:
        step_id = self.steps[at].step_id
        for finding in self.errors.get(step_id, []):
            told = _told(finding, "category")
            if isinstance(told, str):
                return told
        verdict = self.verdicts.get(step_id)
        if verdict is not None and verdict.category is not None:
            return verdict.category
        known = [CODES[f.code].category for f in self.errors.get(step_id, []) if f.code in CODES]
        return known[0] if known else None

    def reason(self, at: int) -> str:
        step_id = self.steps[at].step_id
        verdict = self.verdicts.get(step_id)
        if verdict is not None and verdict.reason and (verdict.verdict == "fail" or step_id not in self.errors):
            return verdict.reason[:300]
        return "; ".join(f.message for f in self.errors.get(step_id, []))[:300]


def _told(finding: Finding, what: str) -> Json:
    return finding.evidence.get(what) if isinstance(finding.evidence, Mapping) else None


def _fault(finding: Finding) -> OwnFault:
    told = _told(finding, "own_fault")
    faults: dict[Json, OwnFault] = {"yes": "yes", "no": "no", "unknown": "unknown"}
    if isinstance(told, str) and told in faults:
        return faults[told]
    return CODES[finding.code].own_fault if finding.code in CODES else "unknown"


def read_judged(
    trace: Trace, verdicts: Mapping[str, Verdict], findings: Sequence[Finding], failed: bool | None, tau: float
) -> Judged:
    """Sorts the steps into failing, recovered and not judged."""
    steps = _in_order(trace.steps)
    order = {step.step_id: at for at, step in enumerate(steps)}
    errors: dict[str, list[Finding]] = {}
    made_good: dict[str, Recovered] = {}
    slips: dict[str, list[Finding]] = {}
    trace_errors = []
    own = [finding for finding in findings if finding.trace_id == trace.trace_id and finding.code in CODES]
    for finding in blamed_for_overrun(own):
        if finding.severity == "error":
            if finding.step_id is not None and finding.step_id in order:
                errors.setdefault(finding.step_id, []).append(finding)
            else:
                trace_errors.append(finding)
        elif finding.severity == "info" and finding.step_id in order:
            recovered = _recovered(finding)
            if recovered is not None:
                made_good.setdefault(recovered.step_id, recovered)
                if failed and "recovered_by" not in finding.evidence:
                    slips.setdefault(recovered.step_id, []).append(finding)
    for step_id in errors:
        made_good.pop(step_id, None)
    _excuse_those_who_asked(steps, order, errors, made_good)
    suspects = {order[step_id] for step_id in slips if step_id in made_good}
    errors |= {step_id: found for step_id, found in slips.items() if step_id in made_good}
    failing: set[int] = set(suspects)
    for at, step in enumerate(steps):
        bad = step.step_id in errors or _is_bad(verdicts.get(step.step_id), tau)
        if not bad or step.step_id in made_good:
            continue
        if failed is False and step.step_id not in errors:
            made_good[step.step_id] = Recovered(
                step.step_id, None, "it failed, and the end state is right all the same"
            )
            continue
        failing.add(at)
    candidates = _candidates(trace_errors, order, errors, failing, made_good)
    failing |= candidates
    unjudged = {
        at
        for at, step in enumerate(steps)
        if at not in failing
        and step.step_id not in made_good
        and ((v := verdicts.get(step.step_id)) is None or v.verdict == "not_judged")
    }
    return Judged(
        steps=steps,
        order=order,
        verdicts=verdicts,
        errors=errors,
        failing=failing,
        unjudged=unjudged,
        excused=set(made_good),
        recovered=list(made_good.values()),
        trace_errors=trace_errors,
        suspects=suspects,
        candidates=candidates,
    )


def _candidates(
    trace_errors: Sequence[Finding],
    order: Mapping[str, int],
    errors: dict[str, list[Finding]],
    failing: Collection[int],
    made_good: Collection[str],
) -> set[int]:
    """The steps between which an error cannot choose, but those that fail anyway; the error is put to each."""
    found: set[int] = set()
    for finding in trace_errors:
        told = _told(finding, "candidates")
        for step_id in told if isinstance(told, list | tuple) else ():
            at = order.get(step_id) if isinstance(step_id, str) else None
            if at is not None and at not in failing and step_id not in made_good:
                errors.setdefault(step_id, []).append(finding)
                found.add(at)
    return found


def _is_bad(verdict: Verdict | None, tau: float) -> bool:
    if verdict is None or verdict.verdict == "not_judged":
        return False
    return verdict.verdict == "fail" or (verdict.score is not None and verdict.score < tau)


def _recovered(finding: Finding) -> Recovered | None:
    evidence = finding.evidence if isinstance(finding.evidence, Mapping) else {}
    if finding.step_id is None or not ("recovered_by" in evidence or "excused_by" in evidence):
        return None
    by = evidence.get("recovered_by")
    how = evidence.get("how") or evidence.get("excused_by") or "made good later"
    return Recovered(finding.step_id, by if isinstance(by, str) else None, f"{finding.code}: {how}"[:300])


def _excuse_those_who_asked(
    steps: Sequence[Step], order: Mapping[str, int], errors: Mapping[str, object], made_good: dict[str, Recovered]
) -> None:
    """The model's step whose every call was made good is as blameless as those calls."""
    asked: dict[str, list[Step]] = {}
    for step in steps:
        if step.kind in ("tool", "handoff") and step.request_step is not None and step.request_step in order:
            asked.setdefault(step.request_step, []).append(step)
    for asker, calls in asked.items():
        if asker in errors or asker in made_good or not all(call.step_id in made_good for call in calls):
            continue
        if all(steps[order[call.step_id]].kind == "tool" for call in calls):
            by = made_good[calls[0].step_id].by
            made_good[asker] = Recovered(asker, by, "what it asked for failed and was made good")


def _in_order(steps: Sequence[Step]) -> Sequence[Step]:
    """Parents before children. A trace is in this order already; one made by hand may not be, or may hold a cycle."""
    at = {step.step_id: i for i, step in enumerate(steps)}
    if all(at.get(e.step_id, -1) < i for i, step in enumerate(steps) for e in step.parents):
        return steps
    children: dict[int, list[int]] = {}
    open_parents = [0] * len(steps)
    for i, step in enumerate(steps):
        for parent in {at[e.step_id] for e in step.parents if e.step_id in at and at[e.step_id] != i}:
            children.setdefault(parent, []).append(i)
            open_parents[i] += 1
    ready = [(steps[i].start_ns, i) for i, n in enumerate(open_parents) if n == 0]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        _, i = heapq.heappop(ready)
        done.append(i)
        for child in children.get(i, ()):
            open_parents[child] -= 1
            if open_parents[child] == 0:
                heapq.heappush(ready, (steps[child].start_ns, child))
    stuck = sorted(set(range(len(steps))) - set(done), key=lambda i: (steps[i].start_ns, i))
    return [steps[i] for i in (*done, *stuck)]
