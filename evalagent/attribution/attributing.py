"""Where a failure began: from each failing step back along edges of evidence to the worst failing parent, repeated.

The rule is the published one for causal chains of agent steps (worst failing parent, repeated), made iterative and
honest: a step that nobody judged on the way, or a way by time order alone, gives a candidate and never a claim. A call
that did as it was asked passes a fault in the wish on to whoever used what it returned.
Time and space are linear in steps and edges.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalagent.attribution.carrying import Carrying
from evalagent.attribution.judged import Judged, read_judged
from evalagent.model import Attribution, Finding, Recovered, RootCause, Ruling, Step, Trace, Verdict

_LONGER_PATHS = 200_000
"""So many step ids are spent at most on following a cause beyond the symptoms that are put down to it."""


def attribute(
    trace: Trace,
    verdicts: Mapping[str, Verdict],
    findings: Sequence[Finding],
    failed: bool | None,
    tau: float = 0.7,
) -> Attribution:
    """First failing step, ranked root causes and recovered errors of one trace.

    `verdicts` are by step id. A step fails by its verdict, by a score under `tau`, or by an error finding. `failed` is
    what the end state says: True, False, or None where nobody graded it. Where the end state is right, a step that only
    a judge holds for bad is listed as recovered; an error finding still counts.
    """
    judged = read_judged(trace, verdicts, findings, failed, tau)
    real = judged.failing - judged.suspects
    verdict = _verdict(trace, judged, real, verdicts, failed)
    if not real:
        # a change that no step explains is no question of which step it was
        unexplained = any(f.code in ("unexpected_change", "missing_change") for f in judged.trace_errors)
        open_ = verdict == "fail" and not unexplained
        return Attribution(trace.trace_id, verdict, None, (), _listed(judged, frozenset()), ambiguous=open_)
    chains = _walk(judged, Carrying(judged.steps, trace.task))
    causes = _causes(judged, chains, real)
    blamed = frozenset(step_id for cause in causes for step_id in cause.path)
    known = judged.failing - judged.candidates
    first = min(
        (at for at in known if at in real or judged.steps[at].step_id in blamed),
        key=lambda i: (judged.steps[i].start_ns, i),
        default=None,
    )
    return Attribution(
        trace_id=trace.trace_id,
        verdict=verdict,
        first_failing_step=judged.steps[first].step_id if first is not None else None,
        root_causes=causes,
        recovered=_listed(judged, blamed),
        ambiguous=any(judged.order[cause.step_id] in chains.doubts for cause in causes),
    )


def _listed(judged: Judged, blamed: frozenset[str]) -> tuple[Recovered, ...]:
    kept = (r for r in judged.recovered if r.step_id not in blamed)
    return tuple(sorted(kept, key=lambda r: judged.order[r.step_id]))


def _verdict(
    trace: Trace, judged: Judged, real: set[int], verdicts: Mapping[str, Verdict], failed: bool | None
) -> Ruling:
    if failed or real or judged.trace_errors:
        return "fail"
    if failed is False:
        return "pass"
    whole = trace.steps and all(
        ((v := verdicts.get(s.step_id)) is not None and v.verdict == "pass") or s.step_id in judged.excused
        for s in trace.steps
    )
    return "pass" if whole else "not_judged"


@dataclass(slots=True)
class _Chains:
    """What the walk found, by position of the step."""

    origin: dict[int, int] = field(default_factory=dict)
    """failing step -> where its failure began."""
    up: dict[int, int] = field(default_factory=dict)
    """the next step on the way back."""
    forward: dict[int, int] = field(default_factory=dict)
    """failing step -> the last failing step that depends on it directly."""
    behind: dict[int, int] = field(default_factory=dict)
    """step that passes blame on, since nobody judged it or it only did as asked -> the worst failing step behind it."""
    unsure: dict[int, int] = field(default_factory=dict)
    """such a step -> the nearest step on its way back that nobody judged."""
    doubts: dict[int, str] = field(default_factory=dict)
    """candidate origin -> why it is no more than that."""
    also: set[int] = field(default_factory=set)
    """failing steps that may be origins themselves, though an earlier failing step is behind them."""

    def source(self, at: int) -> int:
        """The failing step that blame arriving here goes on to."""
        return self.behind.get(at, at)


def _walk(judged: Judged, carrying: Carrying) -> _Chains:
    """One pass, parents before children."""
    chains = _Chains()
    for at in range(len(judged.steps)):
        if at in judged.failing:
            _trace_back(judged, chains, carrying, at)
        elif at in judged.unjudged or judged.transparent(at):
            _pass_on(judged, chains, at)
    return chains


def _pass_on(judged: Judged, chains: _Chains, at: int) -> None:
    parents = judged.evidence(at)
    if at in judged.unjudged:
        chains.unsure[at] = at
    ways = [p for p in parents if p in judged.failing or p in chains.behind]
    if ways:
        way = ways[0]
        if len(ways) > 1:
            way = min(ways, key=lambda p: (p in chains.unsure, judged.badness(chains.source(p))))
        chains.behind[at], chains.up[at] = chains.source(way), way
        if at not in chains.unsure and way in chains.unsure:
            chains.unsure[at] = chains.unsure[way]
    elif at not in chains.unsure:
        dark = next((p for p in parents if p in chains.unsure), None)
        if dark is not None:
            chains.unsure[at] = chains.unsure[dark]


def _trace_back(judged: Judged, chains: _Chains, carrying: Carrying, at: int) -> None:
    if at in judged.candidates or judged.apart(at):
        chains.origin[at] = at
        if at in judged.candidates:
            chains.doubts[at] = "another call may as well have done it"
        return
    parents = judged.evidence(at)
    failing = [p for p in parents if p in judged.failing]
    if failing:
        for parent in failing:
            chains.forward[parent] = at
        worst = failing[0] if len(failing) == 1 else min(failing, key=judged.badness)
        chains.origin[at], chains.up[at] = chains.origin[worst], worst
        if len(failing) > 1:
            _doubt_ties(judged, chains, worst, failing)
        return
    fault = judged.own_fault(at)
    chains.origin[at] = at
    if fault == "yes":
        return
    ways = [p for p in parents if p in chains.behind]
    # a result that left no value here may have had no part in it
    open_ = [p for p in ways if fault == "no" or p in judged.unjudged or carrying.carries(p, at)]
    unsure = next((p for p in parents if p in chains.unsure), None)
    if open_:
        way = min(open_, key=lambda p: (p in chains.unsure, judged.badness(chains.behind[p])))
        source = chains.origin[chains.behind[way]]
        chains.origin[at], chains.up[at] = source, way
        if way not in chains.unsure:
            return
        dark = judged.steps[chains.unsure[way]].step_id
        chains.doubts[source] = f"the way to it leads through step {dark}, which nobody judged"
        if fault == "unknown":
            chains.also.add(at)
            chains.doubts[at] = f"step {dark} before it was judged by nobody"
    elif ways:
        chains.doubts[at] = f"whether what step {judged.steps[ways[0]].step_id} returned had a part in it is not known"
    elif unsure is not None:
        chains.doubts[at] = f"step {judged.steps[chains.unsure[unsure]].step_id} before it was judged by nobody"
    elif any(p in judged.failing for p in judged.weak(at)) or (not parents and judged.weak(at)):
        chains.doubts[at] = "what came before is known by order of time alone"
    elif judged.outside(at):
        chains.doubts[at] = "it depends on a step of another trace"
    elif fault == "no":
        chains.doubts[at] = "its fault was in its inputs, and none of the steps behind it is known to have failed"


def _doubt_ties(judged: Judged, chains: _Chains, worst: int, failing: Sequence[int]) -> None:
    """Where another parent is as bad and goes back to another origin, the scores cannot tell."""
    rivals = {chains.origin[p] for p in failing if judged.score(p) == judged.score(worst)}
    if len(rivals) > 1:
        for origin in rivals:
            if judged.own_fault(origin) != "yes":
                chains.doubts.setdefault(origin, "another failing step is as bad and as near")


def _causes(judged: Judged, chains: _Chains, real: set[int]) -> tuple[RootCause, ...]:
    """The origins: those that explain most failing steps first, then the worst, the earliest, and by id."""
    last: dict[int, int] = {}
    weight: dict[int, int] = {}
    for at in sorted(real):
        origin = chains.origin[at]
        last[origin] = at
        weight[origin] = weight.get(origin, 0) + 1
    for at in chains.also & real:
        last.setdefault(at, at)
        weight.setdefault(at, 0)
    ranked = sorted(last, key=lambda o: (-weight[o], judged.badness(o)))
    spare = _LONGER_PATHS
    causes = []
    for origin in ranked:
        path = [last[origin]]
        while path[-1] != origin:
            path.append(chains.up[path[-1]])
        path.reverse()
        while spare > 0 and path[-1] in chains.forward:
            path.append(chains.forward[path[-1]])
            spare -= 1
        step = judged.steps[origin]
        ids = tuple(judged.steps[i].step_id for i in path)
        reason = _reason(judged, chains, origin, len(ids), weight[origin])
        causes.append(RootCause(step.step_id, judged.shown_score(origin), judged.category(origin), ids, reason))
    return tuple(causes)


def _reason(judged: Judged, chains: _Chains, origin: int, length: int, explained: int) -> str:
    step: Step = judged.steps[origin]
    said = judged.reason(origin)
    parts = [f"{step.kind} `{step.name:.80}` failed" + (f": {said}" if said else "")]
    if explained > 1:
        parts.append(f"{explained - 1} failing {'step' if explained == 2 else 'steps'} after it follow from it")
    doubt = chains.doubts.get(origin)
    alone = "no step asked for that" if judged.apart(origin) else "no step that it depends on failed"
    parts.append(f"not certain: {doubt}" if doubt else alone)
    return "; ".join(parts)


__all__ = ["Recovered", "attribute"]
