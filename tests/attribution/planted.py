"""Made-up DAGs of steps with faults planted in them, and the verdicts that a perfect judge would give."""

import random
from dataclasses import dataclass

from evalagent.model import Edge, OwnFault, Step, Trace, Verdict, Via

TRACE = "d" * 32


def step(name: str, start: int, *parents: str, via: Via = "data", **more: object) -> Step:
    edges = tuple(Edge(parent, via, 1.0) for parent in parents)
    return Step(TRACE, name, (name,), "llm", "model", start, start + 1, parents=edges, **more)  # type: ignore[arg-type]


def trace(*steps: Step) -> Trace:
    return Trace(TRACE, steps)


def verdict(name: str, score: float | None, own_fault: OwnFault = "unknown", category: str | None = None) -> Verdict:
    ruling = "not_judged" if score is None else "fail" if score < 0.7 else "pass"
    return Verdict(TRACE, name, "step", ruling, score, own_fault, "rules", f"{name} is {ruling}", category=category)


@dataclass(frozen=True)
class Planted:
    trace: Trace
    verdicts: dict[str, Verdict]
    faults: tuple[str, ...]


def planted(seed: int, faults: int = 1) -> Planted:
    """A random DAG of 5 to 60 steps; each fault spreads along its edges with 80 %, weaker at each step."""
    chance = random.Random(seed)
    size = chance.randint(5, 60)
    steps: list[Step] = []
    for at in range(size):
        near = range(max(0, at - 8), at)
        parents = sorted(chance.sample(near, min(len(near), chance.choice([1, 1, 1, 2, 3]))))
        edges = tuple(Edge(f"s{p:02}", chance.choice(["data", "call", "handoff", "link"]), 1.0) for p in parents)
        steps.append(Step(TRACE, f"s{at:02}", (), "llm", "model", at, at + 1, parents=edges))
    ancestors: list[set[int]] = []
    for one in steps:
        direct = {int(e.step_id[1:]) for e in one.parents}
        ancestors.append(direct.union(*(ancestors[p] for p in direct)) if direct else set())
    chosen = [chance.randrange(size)]
    while len(chosen) < faults:
        other = chance.randrange(size)
        apart = all(other not in ancestors[c] and c not in ancestors[other] and other != c for c in chosen)
        if apart:
            chosen.append(other)
        elif chance.random() < 0.02:
            return planted(seed + 100_000, faults)
    scores = [1.0] * size
    for at, one in enumerate(steps):
        if at in chosen:
            scores[at] = 0.05
            continue
        infected = [scores[int(e.step_id[1:])] for e in one.parents if scores[int(e.step_id[1:])] < 0.7]
        if infected and chance.random() < 0.8:
            scores[at] = min(0.65, min(infected) + 0.02)
    verdicts = {s.step_id: verdict(s.step_id, scores[at]) for at, s in enumerate(steps)}
    return Planted(Trace(TRACE, tuple(steps)), verdicts, tuple(f"s{c:02}" for c in sorted(chosen)))
