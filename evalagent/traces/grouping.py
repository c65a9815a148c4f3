"""Edges that structure shows where messages do not: graphs, links, nesting, and time as the last resort.

Containers are treated from the inside out. In each, the steps below one child are a group; a group's sources are its
steps without a parent, its sinks those that no step of it depends on. Rules (confidence): child_embedding (0.9),
agent_call and agent_result (0.9), link (0.9), graph_edge (0.85), open_tool (0.7), handoff (0.9), container (0.8),
spoken (0.9), superstep (0.6), sequence (0.4). All but links, the joins of a graph and hand-offs are for steps without
a parent.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping

from evalagent.traces.drafts import Drafts
from evalagent.traces.groups import Frontier, Group, OpenTools, Runs, SentCalls
from evalagent.traces.requests import SLACK_NS
from evalagent.traces.spoken import asked_in_words
from evalagent.traces.uncaptured import join_uncaptured

_WIDE = 4096
_JOIN = re.compile(r"^join:(?P<sources>.+):(?P<into>[^:]+)$")


class Grouping:
    """One trace's structure, worked through once."""

    def __init__(self, drafts: Drafts, waiting: Mapping[int, list[tuple[int, str, float]]]) -> None:
        self._drafts = drafts
        self._forest = drafts.forest
        self._waiting = {at: list(readers) for at, readers in waiting.items()}
        self._own: dict[int, list[int]] = {}
        for number, step in enumerate(drafts.steps):
            self._own.setdefault(step.at, []).append(number)
        self._graph = self._graphs()
        self._starts = [step.start for step in drafts.steps]
        self._callers: dict[int, list[int]] = {}
        for number, step in enumerate(drafts.steps):
            for request in step.requests:
                if request.container is not None:
                    self._callers.setdefault(request.container, []).append(number)
        self._done: dict[int, Group] = {}
        self._links = any(span.links for span in self._forest.spans)
        self._place = {span.span_id: at for at, span in enumerate(self._forest.spans)} if self._links else {}
        self._whole_ms = all(s.start_ns % SLACK_NS == 0 for s in self._forest.spans[:64])

    def _graphs(self) -> list[tuple[str, ...]]:
        graph: list[tuple[str, ...]] = [()] * len(self._forest.spans)
        for at in self._forest.preorder:
            own = self._drafts.observations[at].graph
            above = self._forest.parents[at]
            graph[at] = own or (graph[above] if above >= 0 else ())
        return graph

    def group_at(self, at: int) -> Group | None:
        """The steps below a span, with what begins and what ends them; None where there are none."""
        return self._done.get(at)

    @property
    def _slack(self) -> int:
        return SLACK_NS if self._whole_ms else 0

    # --- from the inside out ----------------------------------------------------------------------

    def work(self) -> None:
        """Add every edge that structure shows."""
        join_uncaptured(self._drafts, self._waiting, self._slack)
        pending: dict[int, list[Group]] = {}
        for at in reversed(self._forest.preorder):
            groups = pending.pop(at, [])
            own = self._own.pop(at, [])
            group = self._combine(at, own, groups) if own or groups else None
            self._flush(at, group, bool(own))
            if group is not None:
                self._done[at] = group
                pending.setdefault(self._forest.parents[at], []).append(group)
        roots = pending.get(-1, [])
        if len(roots) > 1:
            self._order(-1, sorted(roots, key=lambda g: g.order), [])

    def _combine(self, at: int, own: list[int], groups: list[Group]) -> Group:
        steps = self._drafts.steps
        if groups:
            owners = [n for n in own if not steps[n].virtual]
            groups.sort(key=lambda g: g.order)
            if owners and self._children_first(owners[0], groups):
                owners = []
            self._order(at, groups, owners)
        inner = groups[0] if len(groups) == 1 and not own else None
        if inner is not None:  # lists that nobody changes may be shared, however deep a nest is
            sources, sinks, start, end = inner.sources, inner.sinks, inner.start, inner.end
        elif len(own) == 1 and not groups:
            sources, sinks, start, end = own, own, steps[own[0]].start, steps[own[0]].end
        else:
            low, high = self._forest.enter[at], self._forest.leave[at]
            sources = [*own, *(s for g in groups for s in g.sources)]
            sinks = [*own, *(s for g in groups for s in g.sinks)]
            if len(sources) > 1 or len(sinks) > 1:
                sources = [n for n in sources if not any(self._within(p, low, high) for p in steps[n].parents)]
                sinks = [n for n in sinks if not any(self._within(c, low, high) for c in steps[n].children)]
            start = min([steps[n].start for n in own] + [g.start for g in groups])
            end = max([steps[n].end for n in own] + [g.end for g in groups])
        one = self._drafts.observations[at]
        place = one.place
        if place.node is None and place.step is None and inner is not None and one.kind in ("plumbing", "ignored"):
            return Group(
                at,
                sources,
                sinks,
                start,
                end,
                inner.step,
                inner.node,
                inner.namespace,
                inner.triggers,
                inner.node_id,
                inner.follows,
            )
        return Group(
            at,
            sources,
            sinks,
            start,
            end,
            place.step,
            place.node,
            place.namespace,
            place.triggers,
            one.node_id,
            one.follows,
        )

    def _within(self, number: int, low: int, high: int) -> bool:
        return low <= self._forest.enter[self._drafts.steps[number].at] <= high

    def _children_first(self, owner: int, groups: list[Group]) -> bool:
        """What is inside a retrieval (the embedding of the question) is made for it: whether it was one."""
        if self._drafts.steps[owner].kind not in ("retrieval", "reranker"):
            return False
        for group in groups:
            for sink in group.sinks:
                self._drafts.add(owner, sink, "child_embedding", 0.9)
        return True

    def _flush(self, at: int, group: Group | None, owned: bool) -> None:
        """What waited for this span to be complete: its callers and the readers of what it came to."""
        if group is None:
            return
        steps = self._drafts.steps
        low, high = self._forest.enter[at], self._forest.leave[at]
        for caller in self._callers.get(at, ()):
            if not self._within(caller, low, high):
                self._connect([caller], group.sources, "agent_call", 0.9)
        for reader, rule, confidence in self._waiting.get(at, ()):
            if self._within(reader, low, high):
                continue
            for sink in group.sinks:
                if not (owned and steps[sink].at == at):
                    self._drafts.add(reader, sink, rule, confidence)

    def _connect(self, parents: Iterable[int], sources: Iterable[int], rule: str, confidence: float) -> bool:
        """Edges from all to all of those that have no parent yet."""
        parents = list(parents)
        bare = [s for s in sources if not self._drafts.steps[s].parents]
        if not parents or not bare:
            return False
        if len(parents) * len(bare) > _WIDE:
            parents = [max(parents, key=lambda n: (self._drafts.steps[n].end, n))]
        for child in bare:
            for parent in parents:
                self._drafts.add(child, parent, rule, confidence)
        return True

    # --- the groups of one container ----------------------------------------------------------------

    def _order(self, at: int, groups: list[Group], owners: list[int]) -> None:
        if len(groups) == 1 and not owners and not self._links:
            return  # nothing to be ordered after
        named: dict[tuple[str, str], list[Group]] = {}
        by_step: dict[tuple[str, int], list[Group]] = {}
        identified: dict[str, list[Group]] = {}
        steps_at: dict[str, list[int]] = {}
        for group in groups:
            if group.node is not None:
                named.setdefault((group.namespace, group.node), []).append(group)
            if group.step is not None:
                by_step.setdefault((group.namespace, group.step), []).append(group)
            if group.node_id is not None:
                identified.setdefault(group.node_id, []).append(group)
        for namespace, step in by_step:
            steps_at.setdefault(namespace, []).append(step)
        for known in steps_at.values():
            known.sort()
        by_node = {key: Runs(runs) for key, runs in named.items()}
        by_node_id = {key: Runs(runs) for key, runs in identified.items()}
        frontier = Frontier(self._slack)
        tools = OpenTools(self._drafts, self._starts, at)
        sent = SentCalls(self._drafts)
        agents = any(self._is_agent(group) for group in groups)
        for group in groups:
            if group.triggers:
                self._joins(group, by_node)
            is_agent = agents and self._is_agent(group)
            tool = tools.open_at(group) if is_agent else None
            if tool is None and is_agent and self._bare(group):
                tool = sent.to(self._drafts.observations[group.at].name)
            if tool is not None:
                self._connect([tool], group.sources, "open_tool", 0.7)
                reader = self._drafts.steps[tool].reader
                inside = self._forest.enter[group.at], self._forest.leave[group.at]
                if reader is not None and not self._within(reader, *inside):
                    for sink in group.sinks:
                        self._drafts.add(reader, sink, "agent_result", 0.7)
            if self._links:
                self._linked_to(group)
            if is_agent:
                self._hand_over(frontier.at(group), group)
            if self._bare(group):
                self._predecessors(at, group, groups, by_node, by_step, by_node_id, steps_at)
            if self._bare(group):
                before = frontier.at(group)
                if before:
                    last = [s for g in before for s in g.sinks]
                    name = self._drafts.observations[group.at].name if is_agent else None
                    asked = asked_in_words(self._drafts, last, group.sources, name)
                    self._connect(last, group.sources, *(("spoken", 0.9) if asked else ("sequence", 0.4)))
                elif owners:
                    self._connect(owners[:1], group.sources, "container", 0.8)
            frontier.put(group)
            if agents:
                tools.put(group)
                sent.put(group)

    def _bare(self, group: Group) -> bool:
        return any(not self._drafts.steps[s].parents for s in group.sources)

    def _is_agent(self, group: Group) -> bool:
        return self._drafts.observations[group.at].kind in ("agent", "agent-step")

    def _linked_to(self, group: Group) -> None:
        """A link says where the work came from, also where a history shows who said the words."""
        sinks = [s for g in self._linked(group) for s in g.sinks]
        if len(sinks) * len(group.sources) > _WIDE:
            self._connect(sinks, group.sources, "link", 0.9)
            return
        for source in group.sources:
            for sink in sinks:
                self._drafts.add(source, sink, "link", 0.9)

    def _hand_over(self, before: list[Group], group: Group) -> None:
        """What ended just before was a hand-off to the agent that begins here: it began by that, whatever it read."""
        last = [sink for earlier in before for sink in earlier.sinks]
        if len(last) != 1:
            return
        step = self._drafts.steps[last[0]]
        target = step.observation.target
        if step.kind == "handoff" and target is not None and target == self._drafts.observations[group.at].name:
            for source in group.sources:
                self._drafts.add(source, last[0], "handoff", 0.9)

    def _joins(self, group: Group, by_node: Mapping[tuple[str, str], Runs]) -> None:
        """`join:A+B:X` names all that X waited for, whatever else is known of it."""
        for trigger in group.triggers:
            match = _JOIN.match(trigger)
            if match and match["into"] == group.node:
                for name in match["sources"].split("+"):
                    run = _before(by_node.get((group.namespace, name)), group)
                    if run is not None:
                        for source in group.sources:
                            for sink in run.sinks:
                                self._drafts.add(source, sink, "graph_edge", 0.85)

    def _predecessors(
        self,
        at: int,
        group: Group,
        groups: list[Group],
        by_node: Mapping[tuple[str, str], Runs],
        by_step: Mapping[tuple[str, int], list[Group]],
        by_node_id: Mapping[str, Runs],
        steps_at: Mapping[str, list[int]],
    ) -> None:
        named = self._named(at, group, by_node)
        if named and self._connect([s for g in named for s in g.sinks], group.sources, "graph_edge", 0.85):
            return
        if group.follows is not None:
            run = _before(by_node_id.get(group.follows), group, group.start + SLACK_NS)
            if run is not None and self._connect(run.sinks, group.sources, "graph_edge", 0.85):
                return
        if group.step is not None:
            known = steps_at.get(group.namespace, [])
            place = bisect_right(known, group.step - 1) - 1
            if place >= 0:
                earlier = by_step[(group.namespace, known[place])]
                self._connect([s for g in earlier for s in g.sinks], group.sources, "superstep", 0.6)

    def _named(self, at: int, group: Group, by_node: Mapping[tuple[str, str], Runs]) -> list[Group]:
        """The static graph's edges into this node: those that ran one step before, else the latest."""
        graph = self._graph[group.at]
        if not graph or group.node is None:
            return []
        sources = [a.strip() for a, arrow, b in (e.partition("->") for e in graph) if arrow and b.strip() == group.node]
        runs = [r for r in (_before(by_node.get((group.namespace, s)), group) for s in sources) if r is not None]
        if not runs:
            return []
        just = [r for r in runs if group.step is not None and r.step == group.step - 1]
        if just:
            return just
        newest = max((r.step or 0, r.start) for r in runs)
        return [r for r in runs if ((r.step or 0), r.start) == newest]

    def _linked(self, group: Group) -> list[Group]:
        """Back over links, and from what they point to up to the nearest container that holds finished steps."""
        found: dict[int, Group] = {}
        seen: set[int] = set()
        passed: set[int] = set()
        todo = [group.at]
        for _ in range(64):
            if not todo:
                break
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            for link in self._forest.spans[at].links:
                target = self._place.get(link.span_id)
                if target is None or link.trace_id != self._forest.spans[at].trace_id:
                    continue
                up = target
                while up >= 0 and up not in self._done and up not in passed:
                    passed.add(up)
                    if self._forest.spans[up].links:
                        todo.append(up)
                    up = self._forest.parents[up]
                if up >= 0 and up in self._done and not self._related(group.at, up):
                    found[up] = self._done[up]
        return [found[at] for at in sorted(found) if found[at].start <= group.start]

    def _related(self, a: int, b: int) -> bool:
        return self._forest.inside(a, b) or self._forest.inside(b, a)


def _before(runs: Runs | None, group: Group, ended_by: int | None = None) -> Group | None:
    return None if runs is None else runs.before(group, ended_by)
