"""From observed spans to drafts of steps: which span is a step, which holds steps, which is left out and why."""

from bisect import bisect_left
from collections.abc import Sequence

from evalagent.model import Container
from evalagent.traces.drafts import Draft, Drafts, core_of
from evalagent.traces.forest import Forest
from evalagent.traces.merging import twins
from evalagent.traces.observing import CONTAINERS, Observation

_MODEL_NODES = frozenset({"agent", "model", "model_request"})
_UNNAMED_GRAPHS = frozenset({"LangGraph", "RunnableSequence", "AgentExecutor"})


def draft(forest: Forest, observations: list[Observation]) -> Drafts:
    """Decide for each span of one trace what it is; every span becomes exactly one thing."""
    _graph_agents(forest, observations)
    kept = twins(forest, observations)
    _leaves(forest, observations, kept)
    inside = _steps_inside(forest, observations, kept)
    agents = _agents(forest, observations)
    nodes = _nodes(forest, observations)
    members: dict[int, list[int]] = {}
    for at, into in kept.items():
        members.setdefault(into, []).append(at)
    containers: list[Container] = []
    ignored: dict[str, str] = {}
    steps: list[Draft] = []
    for at, one in enumerate(observations):
        span = forest.spans[at]
        if at in kept:
            continue
        if one.kind in CONTAINERS and (inside[at] or not one.weak):
            containers.append(Container(span.trace_id, span.span_id, one.kind, one.name, span.parent_id))  # type: ignore[arg-type]
        elif one.is_step or one.kind in ("agent-step", "node-step"):
            steps.append(_step(forest, observations, agents, nodes, at, members.get(at, [])))
        elif one.kind == "ignored":
            ignored[span.span_id] = one.reason
        elif inside[at] and forest.parents[at] < 0:
            containers.append(Container(span.trace_id, span.span_id, "workflow", one.name, span.parent_id))
        else:
            ignored[span.span_id] = "plumbing"
    steps.sort(key=lambda s: (s.start, forest.enter[s.at], s.step_id))
    by_span = {step.at: number for number, step in enumerate(steps)}
    by_span.update({at: by_span[into] for at, into in kept.items()})
    drafts = Drafts(forest, observations, steps, by_span, containers, ignored, agents)
    _container_tokens(drafts)
    return drafts


def _container_tokens(drafts: Drafts) -> None:
    """What only a container says was spent, below which no step says anything and no model call was seen, stands at the
    last agent step inside it, else at the last step, once."""
    forest = drafts.forest
    spoken = [False] * len(forest.spans)
    last: list[int | None] = [None] * len(forest.spans)
    for number, step in enumerate(drafts.steps):
        spoken[step.at] = step.observation.tokens is not None or step.kind == "llm"
        last[step.at] = number
    for at in reversed(forest.preorder):
        one = drafts.observations[at]
        heir = last[at]
        if (
            not spoken[at]
            and at not in drafts.by_span
            and one.aggregated
            and one.tokens is not None
            and heir is not None
        ):
            drafts.steps[heir].observation.tokens = one.tokens
            drafts.summed.append(drafts.steps[heir].step_id)
            spoken[at] = True
        above = forest.parents[at]
        if above >= 0:
            spoken[above] = spoken[above] or spoken[at]
            if heir is not None:
                known = last[above]
                last[above] = (
                    heir if known is None else max(heir, known, key=lambda n: (drafts.steps[n].kind == "agent", n))
                )


def _step(
    forest: Forest,
    observations: Sequence[Observation],
    agents: list[int],
    nodes: list[tuple[str | None, int]],
    at: int,
    twins_of: list[int],
) -> Draft:
    one = observations[at]
    span = forest.spans[at]
    kind = one.kind.removesuffix("-step")
    above = agents[at] if kind != "agent" else agents[forest.parents[at]] if forest.parents[at] >= 0 else -1
    around = observations[above] if above >= 0 else None
    nearest = None if around is None else around.target if around.kind != "agent" else _agent_of(around)
    agent = (_agent_of(one) if kind == "agent" else None) or one.agent or nearest
    made = Draft(
        at,
        span.span_id,
        kind,
        one.name,
        one,
        span.start_ns,
        forest.ends[at],
        (span.span_id, *sorted(forest.spans[t].span_id for t in twins_of)) if twins_of else (span.span_id,),
        above,
        agent,
    )
    made.node, made.attempt = nodes[at]
    if kind == "llm":
        made.core = core_of(one)
    return made


def _graph_agents(forest: Forest, observations: Sequence[Observation]) -> None:
    """A named graph of LangGraph's prebuilt kind (a node that calls the model, one that runs tools) is an agent."""
    for at, one in enumerate(observations):
        if one.place.node in _MODEL_NODES and one.name == one.place.node and forest.parents[at] >= 0:
            graph = observations[forest.parents[at]]
            if graph.kind in ("node", "workflow") and graph.name not in _UNNAMED_GRAPHS:
                graph.kind, graph.weak = "agent", False
                graph.agent = graph.agent or graph.name


def _agent_of(agent: Observation) -> str | None:
    return None if agent.unnamed and agent.agent is None else agent.name


def _agents(forest: Forest, observations: Sequence[Observation]) -> list[int]:
    agents = [-1] * len(observations)
    for at in forest.preorder:
        above = forest.parents[at]
        if observations[at].kind == "agent":
            agents[at] = at
        elif above >= 0:
            agents[at] = above if _hands_to(observations[above]) else agents[above]
    return agents


def _hands_to(one: Observation) -> bool:
    """Whether what is inside a tool's span is another agent's, even if that has no span of its own."""
    return one.kind in ("tool", "handoff") and one.target is not None


def _nodes(forest: Forest, observations: Sequence[Observation]) -> list[tuple[str | None, int]]:
    """For each span the graph node that it ran in, and at which step of the graph."""
    nodes: list[tuple[str | None, int]] = [(None, 0)] * len(observations)
    for at in forest.preorder:
        one = observations[at]
        if one.place.node is not None:
            nodes[at] = (one.place.node, one.place.step or 0)
        elif one.node_id is not None:
            nodes[at] = (one.node_id, 0)
        elif forest.parents[at] >= 0:
            nodes[at] = nodes[forest.parents[at]]
    return nodes


def _steps_inside(forest: Forest, observations: Sequence[Observation], kept: dict[int, int]) -> list[int]:
    """How many steps are inside each span, itself not counted."""
    inside = [0] * len(observations)
    for at in reversed(forest.preorder):
        above = forest.parents[at]
        if above >= 0:
            own = observations[at].is_step or observations[at].kind in ("agent-step", "node-step")
            inside[above] += inside[at] + (1 if own and at not in kept else 0)
    return inside


def _leaves(forest: Forest, observations: Sequence[Observation], kept: dict[int, int]) -> None:
    """Nodes and agents with no step inside are steps themselves; not where steps that lost their parents say that they
    ran in that very node."""
    inside = [0] * len(observations)
    spots = {_spot(one) for one in observations if one.is_step and one.place.node is not None}
    for at in reversed(forest.preorder):
        one = observations[at]
        if not inside[at] and not one.is_step:
            if one.kind == "node" and _is_leaf_node(one) and _spot(one) not in spots:
                one.kind = "human" if one.interrupted else "node-step"
            elif one.kind == "agent" and one.interrupted and one.place.node == one.name and _spot(one) not in spots:
                one.kind = "human"
        above = forest.parents[at]
        if above >= 0:
            inside[above] += inside[at] + (1 if one.is_step or one.kind == "node-step" else 0)
    _leaf_agents(forest, observations, inside)


def _spot(one: Observation) -> tuple[str | None, int | None, str | None]:
    return one.place.thread, one.place.step, one.place.node


def _is_leaf_node(one: Observation) -> bool:
    if one.place.node is not None:
        return one.place.node == one.name and not one.name.startswith("__")
    return one.node_id is not None and not one.weak


def _leaf_agents(forest: Forest, observations: Sequence[Observation], inside: list[int]) -> None:
    """An agent without steps is a step, unless the steps beside it at the same time, or in a subtree that lost its
    parent, are its own."""
    empty = [at for at in reversed(forest.preorder) if observations[at].kind == "agent" and not inside[at]]
    if not empty:
        return
    orphans = set(forest.orphans)
    detached = _Intervals(forest, [r for r in forest.roots if r in orphans and (inside[r] or observations[r].is_step)])
    beside: dict[int, _Intervals] = {}
    became: set[int] = set()
    for at in empty:
        if any(child in became for child in forest.children[at]) or inside[at]:
            continue
        above = forest.parents[at]
        if above not in beside:
            family: Sequence[int] = (
                forest.children[above] if above >= 0 else [r for r in forest.roots if r not in orphans]
            )
            beside[above] = _Intervals(forest, [s for s in family if inside[s] or observations[s].is_step])
        if beside[above].overlap(at) or detached.overlap(at):
            continue
        observations[at].kind = "agent-step"
        became.add(at)
        up = above
        while up >= 0:
            inside[up] += 1
            up = forest.parents[up]


class _Intervals:
    """Whether anything of a set of spans overlaps a span; log n a question."""

    def __init__(self, forest: Forest, members: list[int]) -> None:
        self._forest = forest
        ordered = sorted(members, key=lambda at: forest.spans[at].start_ns)
        self._starts = [forest.spans[at].start_ns for at in ordered]
        self._latest: list[int] = []
        for at in ordered:
            self._latest.append(max(forest.ends[at], self._latest[-1] if self._latest else 0))

    def overlap(self, at: int) -> bool:
        before = bisect_left(self._starts, self._forest.ends[at])
        return before > 0 and self._latest[before - 1] > self._forest.spans[at].start_ns
