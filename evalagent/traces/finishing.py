"""Drafts into the frozen steps and traces that the other rooms read."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

from evalagent.model import Edge, Json, Kind, Message, Step, Trace, Via
from evalagent.traces.aspects import aspect_of
from evalagent.traces.drafts import Draft, Drafts
from evalagent.traces.health import health
from evalagent.traces.observing import Observation
from evalagent.traces.prices import cost_of
from evalagent.traces.reduction import cut_cycles, order, reduce
from evalagent.traces.requests import PSEUDO_TOOLS
from evalagent.traces.strands import Strand
from evalagent.traces.transcripts import SCOPE
from evalagent.traces.unwrapping import canonical

VIA: Mapping[str, Via] = {
    "call_id": "call",
    "name_args": "call",
    "virtual": "call",
    "nearest_llm": "call",
    "agent_call": "call",
    "open_tool": "call",
    "spoken": "call",
    "container": "call",
    "handoff_name": "handoff",
    "handoff": "handoff",
    "result_id": "data",
    "result_position": "data",
    "result_text": "data",
    "agent_result": "data",
    "child_embedding": "data",
    "history": "data",
    "text": "data",
    "turn": "data",
    "link": "link",
    "graph_edge": "link",
    "resume": "link",
    "retry": "retry",
    "superstep": "order",
    "sequence": "order",
}
"""What each rule's edges are called outside."""


_REASONED = re.compile(r"(?s)\A\s*(?=Thought:|Final Answer:)(?:Thought:.*?\n)?\s*(?:Final )?Answer:\s*")
"""What ReAct agents write before their answer (LlamaIndex, CrewAI, LangChain)."""


def finish(strand: Strand, duplicates: int, prices: Mapping[str, Json] | None, alone: bool) -> Trace:
    """One trace, done."""
    drafts = strand.drafts
    steps = drafts.steps
    cut = [(steps[parent].step_id, steps[child].step_id) for parent, child in cut_cycles(steps)]
    ordered = order(steps)
    reduce(steps, ordered)
    for step in steps:
        step.children.clear()
    for number, step in enumerate(steps):
        for parent in step.parents:
            steps[parent].children.append(number)
    finished = tuple(_step(steps[number], drafts, strand.trace_id, prices) for number in ordered)
    state = health(strand.trace_id, drafts, finished, duplicates, cut, alone)
    spans = drafts.forest.spans
    root = next(
        (at for at in drafts.forest.roots if not spans[at].parent_id),
        drafts.forest.roots[0] if drafts.forest.roots else 0,
    )
    ends = [span.end_ns for span in spans if span.end_ns is not None and span.scope != SCOPE]
    return Trace(
        strand.trace_id,
        finished,
        tuple(sorted(drafts.containers, key=lambda c: c.span_id)),
        dict(sorted(drafts.ignored.items())),
        state.findings,
        state.quality,
        _task(drafts),
        _answer(drafts),
        strand.session,
        dict(spans[root].resource) if spans else {},
        strand.start,
        max(ends, default=None),
    )


def _step(step: Draft, drafts: Drafts, trace_id: str, prices: Mapping[str, Json] | None) -> Step:
    one = step.observation
    steps = drafts.steps
    parents = [
        Edge(steps[p].step_id, _via(steps[p], step, rule), confidence) for p, (rule, confidence) in step.parents.items()
    ]
    parents += step.afar
    parents.sort(key=lambda e: (e.trace_id or "", e.step_id, e.via))
    common = {
        "trace_id": trace_id,
        "step_id": step.step_id,
        "span_ids": step.span_ids,
        "kind": cast(Kind, step.kind),
        "name": step.name,
        "start_ns": step.start,
        "end_ns": None if one.span.scope == SCOPE else step.end if step.virtual else one.span.end_ns,
        "agent": step.agent,
        "parents": tuple(parents),
        "node": step.node,
        "attempt": step.attempt,
        "dialect": one.dialect,
    }
    answered = step.answered_afar
    if step.answered_in:
        answered = tuple(dict.fromkeys([*(steps[n].step_id for n in sorted(step.answered_in)), *answered]))
    request = step.request
    asked = steps[request.llm].step_id if request is not None else step.asked_afar
    if step.virtual and request is not None:
        executed = bool(answered) or request.answered is not None or _ends(step) or _handed_over(step, steps)
        return Step(
            **common,  # type: ignore[arg-type]
            input=request.arguments,
            output=step.answer,
            call_id=request.id,
            request_step=asked,
            answered_in=answered,
            arguments=request.arguments,
            result=step.answer,
            virtual=True,
            executed=executed,
            truncated=_cut_request(one.reply, request.position),
        )
    if step.kind == "llm":
        return Step(
            **common,  # type: ignore[arg-type]
            aspect=aspect_of(step, drafts),
            error=one.error,
            tokens=one.tokens,
            cost_usd=_spent(one, prices),
            input=[written(m) for m in step.fresh] if one.messages else None,
            output=written(one.reply) if one.reply is not None else None,
            model=one.model,
            messages=one.messages,
            reply=one.reply,
            tools=one.tools,
            content=one.has_content,
            truncated=one.truncated,
        )
    given = one.arguments if one.arguments is not None else one.task
    output = one.result if one.result is not None else one.answer
    return Step(
        **common,  # type: ignore[arg-type]
        error=one.error,
        tokens=one.tokens,
        cost_usd=_spent(one, prices),
        input=given,
        output=output,
        model=one.model,
        call_id=one.call_id or (request.id if request is not None else None),
        request_step=asked,
        answered_in=answered,
        arguments=one.arguments,
        result=one.result,
        content=one.has_content or given is not None or output is not None,
        truncated=one.truncated,
    )


def _spent(one: Observation, prices: Mapping[str, Json] | None) -> float | None:
    """US dollars as told, else from the tokens; what is told to be less than nothing is not known."""
    if one.cost_usd is not None and one.cost_usd >= 0:
        return one.cost_usd
    return cost_of(one.tokens, one.model, one.dialect, prices)


def _cut_request(reply: Message | None, position: int) -> bool:
    return reply is not None and position < len(reply.requests) and reply.requests[position].truncated


def _via(parent: Draft, child: Draft, rule: str) -> Via:
    if parent.kind == "handoff" and child.agent != parent.agent:
        return "handoff"
    return VIA[rule]


def written(message: Message) -> dict[str, Json]:
    """A message as it stands in steps.jsonl: role, and what there is of text, calls and results."""
    value: dict[str, Json] = {"role": message.role}
    if message.text:
        value["text"] = message.text
    if message.requests:
        value["calls"] = [{"id": r.id, "name": r.name, "arguments": r.arguments} for r in message.requests]
    if message.answers:
        value["results"] = [{"id": a.id, "name": a.name, "content": a.content} for a in message.answers]
    return value


def _task(drafts: Drafts) -> str | None:
    """What the outermost span says it was asked; else the last text of a user in the first model call: what stands
    before it is history."""
    for at in _outermost(drafts):
        one = drafts.observations[at]
        if one.task:
            return one.task
    for step in drafts.steps:
        said = next((m.text for m in reversed(step.core) if m.role == "user" and m.text), None)
        if said:
            return said
    return None


def _answer(drafts: Drafts) -> str | None:
    """What a tool that ends the run was given, if the run ends with it; the text of the last model call without tool
    calls on which nothing depends; else of the last such call; else what the outermost span says."""
    last = max(drafts.steps, key=lambda s: (s.end, s.start, s.step_id), default=None)
    if last is not None and last.kind == "tool" and _ends(last):
        given = last.request.arguments if last.virtual and last.request is not None else last.observation.arguments
        said = list(given.values()) if isinstance(given, dict) else [given]
        told = _root_answer(drafts)
        if len(said) == 1 and isinstance(said[0], str) and said[0] and (last.virtual or not told):
            return said[0]
        if told or given:
            return told or canonical(given)
    ended = sorted(
        (step.end, number)
        for number, step in enumerate(drafts.steps)
        if step.kind == "llm" and not step.virtual and _says(step)
    )
    sinks = [number for _, number in ended if not drafts.steps[number].children]
    if sinks or ended:
        reply = drafts.steps[sinks[-1] if sinks else ended[-1][1]].observation.reply
        if reply is not None and reply.text:
            last_call = max((s.end for s in drafts.steps if s.kind == "llm" and not s.virtual), default=0)
            chosen = drafts.steps[sinks[-1] if sinks else ended[-1][1]]
            if chosen.end >= last_call or not _root_answer(drafts):
                return _REASONED.sub("", reply.text) or reply.text
    return _root_answer(drafts)


def _handed_over(step: Draft, steps: Sequence[Draft]) -> bool:
    """Whether another agent went on after a hand-off that has no span of its own."""
    return step.kind == "handoff" and any(steps[child].agent != step.agent for child in step.children)


def _ends(step: Draft) -> bool:
    """Whether a tool is one by which the model ends the run with its answer."""
    ending = step.observation.ending if step.virtual else frozenset()
    return bool(PSEUDO_TOOLS.match(step.name)) or step.name in ending


def _root_answer(drafts: Drafts) -> str | None:
    """What the outermost span that did not fail gave back."""
    outermost = (drafts.observations[at] for at in _outermost(drafts))
    return next((one.answer for one in outermost if one.answer and not one.error), None)


def _outermost(drafts: Drafts) -> list[int]:
    """The spans that no other span of an agent is around: roots, or what stands in a server's or a program's own."""
    forest = drafts.forest
    found: list[int] = []
    inside = [False] * len(forest.spans)
    for at in forest.preorder:
        above = forest.parents[at]
        around = above >= 0 and inside[above]
        own = drafts.observations[at].kind not in ("plumbing", "ignored")
        inside[at] = around or own
        if own and not around:
            found.append(at)
    return found


def _says(step: Draft) -> bool:
    reply = step.observation.reply
    return reply is not None and bool(reply.text) and not reply.requests
