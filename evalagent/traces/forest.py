"""The spans of one trace as a forest: who is inside whom, without recursion and whatever order they came in."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalagent.model import Span


@dataclass(slots=True)
class Forest:
    """Spans by start, then id, and their nesting. Positions are places in `spans`; -1 is no parent.

    `enter[i]..leave[i]` is the range that `enter` of everything inside i (and i itself) falls in.
    """

    spans: tuple[Span, ...]
    parents: list[int]
    children: list[Sequence[int]]
    roots: list[int]
    preorder: list[int]
    enter: list[int]
    leave: list[int]
    orphans: list[int]
    """Spans whose parent is named and not here."""
    cycles: list[int]
    """Spans whose parent was cut because it is inside themselves."""
    ends: list[int]
    """When each span ended; for one that never did, the latest moment known inside it."""

    def inside(self, inner: int, outer: int) -> bool:
        """Whether one span is the other or inside it."""
        return self.enter[outer] <= self.enter[inner] <= self.leave[outer]


def forest(spans: Sequence[Span]) -> Forest:
    """The forest of one trace's spans, each id once."""
    ordered = tuple(sorted(spans, key=lambda s: (s.start_ns, s.span_id)))
    place = {span.span_id: at for at, span in enumerate(ordered)}
    size = len(ordered)
    parents = [-1] * size
    orphans: list[int] = []
    for at, span in enumerate(ordered):
        if span.parent_id:
            parents[at] = place.get(span.parent_id, -1)
            if parents[at] < 0:
                orphans.append(at)
    cycles = _cut_cycles(parents)
    below: dict[int, list[int]] = {}
    for at, above in enumerate(parents):
        below.setdefault(above, []).append(at)
    roots = below.get(-1, [])
    children: list[Sequence[int]] = [below.get(at, ()) for at in range(size)]
    preorder: list[int] = []
    enter, leave = [0] * size, [0] * size
    stack = list(reversed(roots))
    while stack:
        at = stack.pop()
        enter[at] = leave[at] = len(preorder)
        preorder.append(at)
        stack.extend(reversed(children[at]))
    for at in reversed(preorder):
        if parents[at] >= 0:
            leave[parents[at]] = max(leave[parents[at]], leave[at])
    return Forest(
        ordered, parents, children, roots, preorder, enter, leave, orphans, cycles, _ends(ordered, parents, preorder)
    )


def _cut_cycles(parents: list[int]) -> list[int]:
    """Cut each ring of parents at its earliest span, which cannot be inside a later one; gives the spans cut."""
    state = bytearray(len(parents))
    cut: list[int] = []
    for start in range(len(parents)):
        way: list[int] = []
        at = start
        while at >= 0 and not state[at]:
            state[at] = 1
            way.append(at)
            at = parents[at]
        if at >= 0 and state[at] == 1:
            ring = way[way.index(at) :]
            first = min(ring)
            parents[first] = -1
            cut.append(first)
        for done in way:
            state[done] = 2
    return cut


def _ends(spans: tuple[Span, ...], parents: list[int], preorder: list[int]) -> list[int]:
    ends = [span.end_ns if span.end_ns is not None else -1 for span in spans]
    latest = list(ends)
    for at in reversed(preorder):
        latest[at] = max(latest[at], spans[at].start_ns)
        if parents[at] >= 0:
            latest[parents[at]] = max(latest[parents[at]], latest[at])
    return [max(ends[at], spans[at].start_ns) if ends[at] >= 0 else latest[at] for at in range(len(spans))]
