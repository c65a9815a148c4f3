"""A DAG out of edges: cycles cut, what follows from others left out, steps in an order that edges allow."""

import heapq
from collections.abc import Sequence

from evalagent.traces.drafts import Draft

_GUESSED = 0.6
"""Edges up to this confidence rest on time; in a ring they are the first to go, and are no loss."""


def cut_cycles(steps: Sequence[Draft]) -> list[tuple[int, int]]:
    """Cut what closes a ring of steps; gives the edges with evidence that had to be cut, as (parent, child).

    Places follow time, so a ring needs an edge to a smaller place: a clock that is off, or a contradiction. The weakest
    edges of a ring go first; edges against time last, and then no ring can be.
    """
    lost: list[tuple[int, int]] = []
    if not any(parent > child for child, step in enumerate(steps) for parent in step.parents):
        return lost
    levels = sorted({confidence for step in steps for _, confidence in step.parents.values()})
    for level in [*levels, None]:
        ring = _rings(steps)
        cut = [
            (parent, child)
            for child, step in enumerate(steps)
            for parent, (_, confidence) in step.parents.items()
            if ring[parent] == ring[child]
            and (confidence == level if level is not None else parent > child)
            and (parent > child or (level is not None and level <= _GUESSED))
        ]
        if not cut and all(ring[p] != ring[c] for c, step in enumerate(steps) for p in step.parents):
            return lost
        for parent, child in cut:
            confidence = steps[child].parents.pop(parent)[1]
            if confidence > _GUESSED:
                lost.append((parent, child))
        gone = set(cut)
        for parent in {parent for parent, _ in cut}:
            steps[parent].children = [c for c in steps[parent].children if (parent, c) not in gone]
    return lost


def _rings(steps: Sequence[Draft]) -> list[int]:
    """The strongly connected component of each step (Tarjan's algorithm with an explicit stack)."""
    size = len(steps)
    index, low, ring = [-1] * size, [0] * size, [-1] * size
    count = 0
    path: list[int] = []
    on_path = bytearray(size)
    for root in range(size):
        if index[root] >= 0:
            continue
        work: list[tuple[int, int]] = [(root, 0)]
        while work:
            at, child = work.pop()
            if child == 0:
                index[at] = low[at] = count
                count += 1
                path.append(at)
                on_path[at] = 1
            children = steps[at].children
            if child < len(children):
                work.append((at, child + 1))
                to = children[child]
                if index[to] < 0:
                    work.append((to, 0))
                elif on_path[to]:
                    low[at] = min(low[at], index[to])
                continue
            if low[at] == index[at]:
                while True:
                    member = path.pop()
                    on_path[member] = 0
                    ring[member] = at
                    if member == at:
                        break
            if work:
                above = work[-1][0]
                low[above] = min(low[above], low[at])
    return ring


def order(steps: Sequence[Draft]) -> list[int]:
    """Places with parents before children; among the free ones by start, then by id."""
    waiting = [len(step.parents) for step in steps]
    free = [(step.start, step.step_id, at) for at, step in enumerate(steps) if not waiting[at]]
    heapq.heapify(free)
    found: list[int] = []
    while free:
        _, _, at = heapq.heappop(free)
        found.append(at)
        for child in steps[at].children:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(free, (steps[child].start, steps[child].step_id, child))
    return found


def reduce(steps: Sequence[Draft], ordered: Sequence[int]) -> None:
    """Leave out each edge from a step that is an ancestor by another way. The search goes back no further than the
    earliest parent in question, so it stays inside a short stretch of the run. `children` are left as they were."""
    rank = [0] * len(steps)
    for at, number in enumerate(ordered):
        rank[number] = at
    for number in ordered:
        parents = steps[number].parents
        if len(parents) < 2:
            continue
        floor = min(rank[p] for p in parents)
        wanted = set(parents)
        seen: set[int] = set()
        redundant: set[int] = set()
        todo = sorted(parents, key=lambda p: rank[p])
        while todo:
            at = todo.pop()
            for above in steps[at].parents:
                if rank[above] >= floor and above not in seen:
                    seen.add(above)
                    if above in wanted:
                        redundant.add(above)
                    todo.append(above)
        for parent in redundant:
            del parents[parent]
