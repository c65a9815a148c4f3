"""A step's neighbourhood: what it depends on and what depends on it, at most two edges away.

Bounded at each hop, so that a step with thousands of neighbours costs no more than one with ten.
"""

from collections.abc import Iterator

from evalagent.model import Step, Trace, Via

NEAR_BEFORE, FAR_BEFORE, NEAR_AFTER, FAR_AFTER = 6, 4, 4, 2

_RANK: dict[Via, int] = {"call": 0, "data": 1, "handoff": 2, "link": 3, "retry": 4, "order": 5}


class Neighbourhood:
    """The steps around each step of one trace. Building it is linear in steps and edges."""

    def __init__(self, trace: Trace) -> None:
        self._steps = {step.step_id: step for step in trace.steps}
        self._after: dict[str, list[str]] = {}
        self._before: dict[str, list[str]] = {}
        self._more_after: dict[str, int] = {}
        for step in trace.steps:
            inside = [edge for edge in step.parents if edge.trace_id is None and edge.step_id in self._steps]
            inside.sort(key=lambda e: (_RANK[e.via], -e.confidence, -self._steps[e.step_id].start_ns, e.step_id))
            self._before[step.step_id] = list(dict.fromkeys(edge.step_id for edge in inside))
            for parent in self._before[step.step_id]:
                children = self._after.setdefault(parent, [])
                if len(children) < NEAR_AFTER:
                    children.append(step.step_id)
                else:
                    self._more_after[parent] = self._more_after.get(parent, 0) + 1

    def before(self, step: Step) -> Iterator[tuple[int, Step]]:
        """(hops, step) of what it depends on, the strongest ties first."""
        return self._around(step, self._before, NEAR_BEFORE, FAR_BEFORE)

    def after(self, step: Step) -> Iterator[tuple[int, Step]]:
        """(hops, step) of what depends on it, in the order of the trace."""
        return self._around(step, self._after, NEAR_AFTER, FAR_AFTER)

    def unseen(self, step: Step) -> tuple[int, int]:
        """How many direct neighbours before and after are left out."""
        before = len(self._before.get(step.step_id, ()))
        return max(0, before - NEAR_BEFORE), self._more_after.get(step.step_id, 0)

    def _around(self, step: Step, ties: dict[str, list[str]], near: int, far: int) -> Iterator[tuple[int, Step]]:
        first = ties.get(step.step_id, [])[:near]
        for step_id in first:
            yield 1, self._steps[step_id]
        seen = {step.step_id, *first}
        left = far
        for middle in first:
            for step_id in ties.get(middle, [])[:near]:
                if step_id in seen or not left:
                    continue
                seen.add(step_id)
                left -= 1
                yield 2, self._steps[step_id]
