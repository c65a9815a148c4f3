"""A DAG out of edges: cycles cut, what follows from others left out, steps in an order that edges allow."""

import heapq
from collections.abc import Collection, Sequence

from evalagent.traces.drafts import Draft

_GUESSED = 0.6
"""Edges up to this confidence rest on time; in a ring they are the first to go, and are no loss."""

_NEAR = 64
"""Parents this many steps apart are found out by a walk between them."""


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
    """Places with parents before children; among the free ones by start, then as they were asked for, then by id."""
    waiting = [len(step.parents) for step in steps]
    free = [_turn(step, at) for at, step in enumerate(steps) if not waiting[at]]
    heapq.heapify(free)
    found: list[int] = []
    while free:
        at = heapq.heappop(free)[-1]
        found.append(at)
        for child in steps[at].children:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(free, _turn(steps[child], child))
    return found


def _turn(step: Draft, at: int) -> tuple[int, int, int, str, int]:
    asked = step.request
    return step.start, -1 if asked is None else asked.llm, 0 if asked is None else asked.position, step.step_id, at


def reduce(steps: Sequence[Draft], ordered: Sequence[int]) -> None:
    """Leave out each edge from a step that is an ancestor by another way. `children` are left as they were.

    The search goes back no further than the earliest parent in question, so it mostly stays inside a short stretch of
    the run; a parent from far back is told by the line of descent of the latest one, or by how little came of it.
    """
    rank = [0] * len(steps)
    for at, number in enumerate(ordered):
        rank[number] = at
    lines = _Lines(len(steps)) if any(_reach(step, rank) > _NEAR for step in steps) else None
    for number in ordered:
        parents = steps[number].parents
        if len(parents) > 1:
            redundant: set[int] = set()
            doubtful = set(parents)
            if lines is not None and _reach(steps[number], rank) > _NEAR:
                redundant, doubtful = _from_afar(steps, parents, rank, lines)
            if doubtful:
                redundant |= _behind(steps, parents, rank, min(rank[p] for p in doubtful))
            for parent in redundant:
                del parents[parent]
        if lines is not None and parents:
            lines.put(number, max(parents, key=rank.__getitem__))


def _reach(step: Draft, rank: Sequence[int]) -> int:
    """How far apart the parents of a step are."""
    if len(step.parents) < 2:
        return 0
    ranks = [rank[parent] for parent in step.parents]
    return max(ranks) - min(ranks)


def _behind(steps: Sequence[Draft], parents: Collection[int], rank: Sequence[int], floor: int) -> set[int]:
    """Which parents, from a rank on, are ancestors of others."""
    seen: set[int] = set()
    found: set[int] = set()
    todo = sorted(parents, key=lambda p: rank[p])
    while todo:
        at = todo.pop()
        for above in steps[at].parents:
            if rank[above] >= floor and above not in seen:
                seen.add(above)
                if above in parents:
                    found.add(above)
                todo.append(above)
    return found


def _from_afar(
    steps: Sequence[Draft], parents: Collection[int], rank: Sequence[int], lines: "_Lines"
) -> tuple[set[int], set[int]]:
    """Of the parents far before the latest one: those that are ancestors of another for certain. And all parents of
    which that is still to be found out."""
    latest = max(parents, key=rank.__getitem__)
    found: set[int] = set()
    doubtful: set[int] = set()
    for parent in parents:
        if parent == latest:
            continue
        if rank[latest] - rank[parent] <= _NEAR:
            doubtful.add(parent)
        elif lines.descends(latest, parent):
            found.add(parent)
        else:
            came = _came_of(steps, parent, parents, rank, rank[latest])
            if came is None:
                doubtful.add(parent)
            elif came:
                found.add(parent)
    return found, doubtful


def _came_of(
    steps: Sequence[Draft], start: int, parents: Collection[int], rank: Sequence[int], last: int
) -> bool | None:
    """Whether another of the parents came of one, up to a rank; None where too much came of it to tell soon."""
    seen = {start}
    todo = [start]
    looked = 0
    while todo:
        for child in steps[todo.pop()].children:
            looked += 1
            if looked > _NEAR:
                return None
            if rank[child] <= last and child not in seen:
                if child in parents:
                    return True
                seen.add(child)
                todo.append(child)
    return False


class _Lines:
    """Each step's line of descent by its latest parents, with jumps that make a look far up short (logarithmic)."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))
        self._jump = list(range(size))
        self._depth = [0] * size

    def put(self, number: int, parent: int) -> None:
        """Parents are put before their children."""
        jump, depth = self._jump, self._depth
        over = jump[parent]
        self._parent[number] = parent
        depth[number] = depth[parent] + 1
        jump[number] = jump[over] if depth[parent] - depth[over] == depth[over] - depth[jump[over]] else parent

    def descends(self, number: int, ancestor: int) -> bool:
        """Whether one step stands in the line of another."""
        wanted = self._depth[ancestor]
        while self._depth[number] > wanted:
            over = self._jump[number]
            number = over if self._depth[over] >= wanted else self._parent[number]
        return number == ancestor
