"""Edges between traces, from evidence and never from time: links, one session's messages, a resumed graph."""

from collections.abc import Mapping

from evalagent.model import Edge, Message
from evalagent.traces.drafts import Draft
from evalagent.traces.requests import SLACK_NS
from evalagent.traces.strands import Strand, conversations
from evalagent.traces.unwrapping import collapsed

_HOPS = 256
_WALKED = 20_000
"""Steps looked at to find one parent behind another."""


def between(strands: list[Strand]) -> None:
    """Add the edges from other traces."""
    if len(strands) < 2:
        return
    for strand in strands:
        histories = strand.histories
        if histories is not None:
            for number, request in histories.far_answers:
                if request.foreign is not None:
                    trace, step = request.foreign
                    strand.drafts.steps[number].afar += (Edge(step, "data", 1.0, trace),)
    lost = {(s.trace_id, d.step_id): (s, d) for s in strands for d in s.drafts.steps if d.asked_afar is not None}
    for members in conversations(strands):
        _histories(members)
        _answers(members, lost)
        _resumes(members)
    _links(strands)
    _reduce(strands)


def _reduce(strands: list[Strand]) -> None:
    """Drop each parent in another trace that stands behind another parent of the same step; keep in mind the steps that
    start before one that is left."""
    if not any(step.afar for strand in strands for step in strand.drafts.steps):
        return
    home = {(strand.trace_id, step.step_id): (strand, step) for strand in strands for step in strand.drafts.steps}
    for strand in strands:
        for step in strand.drafts.steps:
            if step.afar and len(step.afar) + len(step.parents) > 1:
                far = [(e.trace_id or strand.trace_id, e.step_id) for e in step.afar]
                behind = _behind(strand, step, set(far), home)
                step.afar = tuple(edge for edge, key in zip(step.afar, far, strict=True) if key not in behind)
            for edge in step.afar:
                known = home.get((edge.trace_id or strand.trace_id, edge.step_id))
                if known is not None and known[1].start > step.start + SLACK_NS:
                    strand.drafts.askew.append(step.step_id)
                    break


def _behind(
    strand: Strand, step: Draft, far: set[tuple[str, str]], home: dict[tuple[str, str], tuple[Strand, Draft]]
) -> set[tuple[str, str]]:
    """Which of a step's far parents another of its parents depends on, as far as a bounded walk back tells."""
    floor = min((home[key][1].start for key in far if key in home), default=0)
    found: set[tuple[str, str]] = set()
    seen = {(strand.trace_id, step.step_id)}
    todo = [above for parent in _above(strand, step) if parent in home for above in _above(*home[parent])]
    while todo and len(seen) < _WALKED:
        key = todo.pop()
        if key in seen or key not in home:
            continue
        seen.add(key)
        if key in far:
            found.add(key)
        if home[key][1].start >= floor:
            todo.extend(_above(*home[key]))
    return found


def _above(strand: Strand, step: Draft) -> list[tuple[str, str]]:
    own = [(strand.trace_id, strand.drafts.steps[parent].step_id) for parent in step.parents]
    return own + [(edge.trace_id or strand.trace_id, edge.step_id) for edge in step.afar]


def _histories(members: list[Strand]) -> None:
    """A reply that stands in the history of a call in a later trace."""
    made: dict[tuple[str, str], tuple[Strand, Draft]] = {}
    for strand in members:
        histories = strand.histories
        for number, message in histories.unknown if histories is not None else ():
            step = strand.drafts.steps[number]
            for key in _said(message):
                known = made.get(key)
                if known is not None and known[1].end <= step.start:
                    edge = Edge(known[1].step_id, "data", 0.9, known[0].trace_id)
                    if edge not in step.afar:
                        step.afar += (edge,)
                    break
        for step in strand.drafts.steps:
            reply = step.observation.reply if step.kind == "llm" and not step.virtual else None
            if reply is not None:
                for key in _said(reply):
                    made[key] = (strand, step)
    order = {member.trace_id: at for at, member in enumerate(members)}
    for strand in members:
        for step in strand.drafts.steps:
            if len(step.afar) > 1:
                _latest_only(step, order)


def _answers(members: list[Strand], lost: Mapping[tuple[str, str], tuple[Strand, Draft]]) -> None:
    """The result of a call that an earlier trace made, in the input of a call in a later one. `lost`: tools that ran in
    another trace than the call that asked for them, by trace and step."""
    asked: dict[str, tuple[Strand, Draft]] = {}
    for strand in members:
        histories = strand.histories
        places: dict[int, int] = {}
        for number, answer in histories.unmatched if histories is not None else ():
            home, tool = asked.get(answer.id or "", (None, None))
            if home is None or tool is None or tool.start > strand.drafts.steps[number].start:
                continue
            if home is strand:  # it ran here, and only the call that asked for it is another trace's
                places = places or {id(one): at for at, one in enumerate(strand.drafts.steps)}
                strand.drafts.add(number, places[id(tool)], "result_id", 1.0)
                continue
            edge = Edge(tool.step_id, "data", 1.0, home.trace_id)
            if edge not in strand.drafts.steps[number].afar:
                strand.drafts.steps[number].afar += (edge,)
            tool.answered_afar += (strand.drafts.steps[number].step_id,)
            if tool.virtual and tool.answer is None:
                tool.answer = answer.content
        for step in strand.drafts.steps:
            identity = step.request.id if step.request is not None else step.observation.call_id
            if identity and step.kind in ("tool", "handoff"):
                asked[identity] = (strand, step)
            for request in step.requests:
                ran = lost.get(request.foreign) if request.foreign is not None else None
                if request.id and ran is not None:
                    asked[request.id] = ran


def _latest_only(step: Draft, order: Mapping[str, int]) -> None:
    """Of the earlier turns of a conversation the last is the parent; the others are behind it."""
    replies = [e for e in step.afar if e.via == "data" and e.confidence == 0.9 and e.trace_id in order]
    if len(replies) > 1:
        latest = max(order[e.trace_id or ""] for e in replies)
        step.afar = tuple(e for e in step.afar if e not in replies or order[e.trace_id or ""] == latest)


def _said(message: Message) -> list[tuple[str, str]]:
    keys = [("id", request.id) for request in message.requests if request.id]
    if message.text and not message.requests:
        keys.append(("text", collapsed(message.text)))
    return keys


def _resumes(members: list[Strand]) -> None:
    """A graph that waited for a person goes on in a later trace, in the same node of the same thread."""
    waiting: dict[tuple[str, str], tuple[Strand, Draft]] = {}
    for strand in members:
        for at in strand.drafts.forest.preorder:
            one = strand.drafts.observations[at]
            key = (one.place.thread or "", one.place.node or "")
            if not key[0] or one.name != one.place.node or key not in waiting:
                continue
            origin, human = waiting[key]
            if origin is strand:
                continue
            group = strand.grouping.group_at(at) if strand.grouping is not None else None
            if group is not None:
                for source in group.sources:
                    step = strand.drafts.steps[source]
                    if not step.parents:
                        step.afar += (Edge(human.step_id, "link", 0.8, origin.trace_id),)
                del waiting[key]
        for step in strand.drafts.steps:
            if step.kind == "human" and step.observation.place.thread and step.observation.place.node:
                waiting[(step.observation.place.thread, step.observation.place.node)] = (strand, step)


def _links(strands: list[Strand]) -> None:
    """Back over links into other traces, to the nearest container there that holds finished steps."""
    by_trace = {strand.trace_id: strand for strand in strands}
    places: dict[str, dict[str, int]] = {}

    def place(trace: str, span: str) -> int | None:
        if trace not in places:
            places[trace] = {s.span_id: at for at, s in enumerate(by_trace[trace].drafts.forest.spans)}
        return places[trace].get(span)

    for strand in strands:
        if not any(span.links for span in strand.drafts.forest.spans):
            continue
        for step in strand.drafts.steps:
            if step.parents or step.virtual:
                continue
            todo = [(strand, step.at)]
            seen: set[tuple[str, int]] = set()
            found: list[Edge] = []
            for _ in range(_HOPS):
                if not todo:
                    break
                here, at = todo.pop(0)
                while at >= 0 and (here.trace_id, at) not in seen:
                    seen.add((here.trace_id, at))
                    group = here.grouping.group_at(at) if here is not strand and here.grouping is not None else None
                    if group is not None and group.start <= step.start:
                        found += [Edge(here.drafts.steps[n].step_id, "link", 0.9, here.trace_id) for n in group.sinks]
                        break
                    for link in here.drafts.forest.spans[at].links:
                        there = by_trace.get(link.trace_id)
                        target = place(link.trace_id, link.span_id) if there is not None else None
                        if there is not None and target is not None:
                            todo.append((there, target))
                    at = here.drafts.forest.parents[at]
            step.afar += tuple(edge for edge in found if edge not in step.afar)
