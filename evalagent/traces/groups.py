"""The steps below one child of a container, and which of them came before which."""

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from evalagent.traces.drafts import Drafts
from evalagent.traces.requests import plain_name

TOOLS = ("tool", "handoff")
_BACK = 16
_NAME = 80


@dataclass(slots=True)
class Group:
    """The steps below one child of a container."""

    at: int
    sources: list[int]
    sinks: list[int]
    start: int
    end: int
    step: int | None = None
    node: str | None = None
    namespace: str = ""
    triggers: tuple[str, ...] = ()
    node_id: str | None = None
    follows: str | None = None

    @property
    def order(self) -> tuple[int, int, int]:
        return (self.start, self.end, self.at)


class Runs:
    """The runs of one node, in order; gives the latest before another group."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._groups = sorted(groups, key=lambda g: (-1 if g.step is None else g.step, g.order))
        self._steps = [-1 if g.step is None else g.step for g in self._groups]
        self._starts = [g.start for g in self._groups]
        self._stepped = all(step >= 0 for step in self._steps)

    def before(self, group: Group, ended_by: int | None = None) -> Group | None:
        """The latest run before this group: by the graph's step where there is one, else by start. `ended_by`: it must
        have ended by that moment (ns)."""
        if self._stepped and group.step is not None:
            at = bisect_left(self._steps, group.step) - 1
        else:
            at = bisect_right(self._starts, group.start) - 1
        for back in range(at, max(-1, at - _BACK), -1):
            run = self._groups[back]
            if run is not group and (ended_by is None or run.end <= ended_by):
                return run
        return None


class Frontier:
    """The finished groups that no other finished group followed, at each group's start."""

    def __init__(self, slack: int) -> None:
        self._slack = slack
        self._running: list[tuple[int, int, Group]] = []
        self._finished: list[Group] = []
        self._count = 0

    def put(self, group: Group) -> None:
        heapq.heappush(self._running, (group.end, self._count, group))
        self._count += 1

    def at(self, group: Group) -> list[Group]:
        while self._running and self._running[0][0] <= group.start + self._slack:
            self._finished.append(heapq.heappop(self._running)[2])
        if not self._finished:
            return []
        last = max(self._finished, key=lambda g: g.order)
        self._finished = [g for g in self._finished if g is last or g.end > last.start]
        return self._finished


class SentCalls:
    """Calls without a span of their own, by the agents that their arguments name (`coworker`, `member_id`)."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts
        self._calls: dict[str, deque[int]] = {}

    def put(self, group: Group) -> None:
        for number in group.sinks:
            step = self._drafts.steps[number]
            if step.virtual and step.request is not None and isinstance(step.request.arguments, dict):
                for value in step.request.arguments.values():
                    if isinstance(value, str) and len(value) <= _NAME:
                        self._calls.setdefault(plain_name(value), deque()).append(number)

    def to(self, name: str) -> int | None:
        """The first call that names this agent and that no other run of it has taken."""
        waiting = self._calls.get(plain_name(name)) if self._calls else None
        return waiting.popleft() if waiting else None


class OpenTools:
    """Tool spans that are still open when an agent beside them starts."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts
        self._tools: list[tuple[int, int, int]] = []

    def put(self, group: Group) -> None:
        if len(group.sources) == 1 and len(group.sinks) == 1:
            number = group.sources[0]
            if self._drafts.steps[number].kind in TOOLS and self._drafts.steps[number].at == group.at:
                heapq.heappush(self._tools, (group.end, group.start, number))

    def open_at(self, group: Group) -> int | None:
        while self._tools and self._tools[0][0] < group.start:
            heapq.heappop(self._tools)
        inside = [(start, number) for end, start, number in self._tools if end >= group.end]
        return max(inside)[1] if inside else None
