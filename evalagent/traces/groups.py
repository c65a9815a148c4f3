"""The steps below one child of a container, and which of them came before which."""

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalagent.model import Json
from evalagent.traces.drafts import Drafts
from evalagent.traces.requests import plain_name

TOOLS = ("tool", "handoff")
_BACK = 16
_NEAR = 64
"""So many steps before an agent's start are looked at for the tool that it ran in."""
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
        if not self._running or self._running[0][0] > group.start + self._slack:
            return self._finished
        while self._running and self._running[0][0] <= group.start + self._slack:
            self._finished.append(heapq.heappop(self._running)[2])
        last = max(self._finished, key=lambda g: g.order)
        self._finished = [g for g in self._finished if g is last or g.end > last.start]
        return self._finished


class SentCalls:
    """Calls with nothing inside them (no span of their own, or one that ended at once), by the agents that their
    arguments name (`coworker`, `member_id`)."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts
        self._calls: dict[str, deque[int]] = {}

    def put(self, group: Group) -> None:
        for number in group.sinks:
            step = self._drafts.steps[number]
            given = step.request.arguments if step.virtual and step.request is not None else step.observation.arguments
            if step.kind == "tool" and isinstance(given, dict) and (step.virtual or self._empty(step.at)):
                for value in given.values():
                    if isinstance(value, str) and len(value) <= _NAME:
                        self._calls.setdefault(plain_name(value), deque()).append(number)

    def _empty(self, at: int) -> bool:
        return self._drafts.forest.leave[at] == self._drafts.forest.enter[at]

    def to(self, name: str) -> int | None:
        """The first call that names this agent and that no other run of it has taken."""
        waiting = self._calls.get(plain_name(name)) if self._calls else None
        return waiting.popleft() if waiting else None


class OpenTools:
    """Tool spans that are still open when an agent beside them, or beside the agent that called them, starts: of those
    beside it only such as no later one outlasts."""

    def __init__(self, drafts: Drafts, starts: Sequence[int], container: int) -> None:
        """`starts`: when each step starts (ns), in the order of the steps; `container`: what the groups are in, -1 for
        the trace."""
        self._drafts = drafts
        self._starts = starts
        self._container = container
        self._taken: set[int] = set()
        self._tools: list[tuple[int, int]] = []
        self._ends: list[int] = []
        """Of those tools, negative and so in order: a later one ends earlier."""

    def put(self, group: Group) -> None:
        if len(group.sources) == 1 and len(group.sinks) == 1:
            number = group.sources[0]
            if self._drafts.steps[number].kind in TOOLS and self._drafts.steps[number].at == group.at:
                at = bisect_left(self._tools, (group.start, number))
                if at < len(self._tools) and -self._ends[at] >= group.end:
                    return
                first = at
                while first > 0 and -self._ends[first - 1] <= group.end:
                    first -= 1
                self._tools[first:at] = [(group.start, number)]
                self._ends[first:at] = [-group.end]

    def open_at(self, group: Group) -> int | None:
        """The tool that started last of those that end after this group."""
        at = bisect_right(self._ends, -group.end) - 1
        return self._tools[at][1] if at >= 0 else self._nephew(group)

    def _nephew(self, group: Group) -> int | None:
        """The tool that an agent beside this one had open all the while and gave this agent's task to: that it was open
        alone says nothing, since agents may run at the same time. OpenAI Agents under OpenLLMetry are such."""
        steps = self._drafts.steps
        last = bisect_right(self._starts, group.start) - 1
        near = range(last, max(-1, last - _NEAR), -1)
        open_ = [n for n in near if steps[n].end >= group.end and self._runs(n, group)]
        task = self._task(group)
        found = next((n for n in open_ if task and _holds(steps[n].observation.arguments, task)), None)
        if found is not None:
            self._taken.add(found)
        return found

    def _runs(self, number: int, group: Group) -> bool:
        """Whether a step is a tool span with nothing in it, in the same container, that may have run the agent."""
        step, forest = self._drafts.steps[number], self._drafts.forest
        if step.kind not in TOOLS or step.virtual or number in self._taken or step.at == group.at:
            return False
        if forest.leave[step.at] > forest.enter[step.at]:
            return False
        return self._container < 0 or forest.inside(step.at, self._container)

    def _task(self, group: Group) -> str | None:
        for source in group.sources:
            step = self._drafts.steps[source]
            said = next((m.text for m in reversed(step.core) if m.role == "user" and m.text), None)
            if said:
                return said
        return self._drafts.observations[group.at].task


def _holds(arguments: Json, text: str) -> bool:
    values = arguments.values() if isinstance(arguments, dict) else (arguments,)
    return any(isinstance(value, str) and value and value in text for value in values)
