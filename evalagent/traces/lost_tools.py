"""Tools that lost their context in a thread, or had to wait: they ran in another trace than the call that asked.

The call's id is proof. Without it, name and arguments are no more than a likeness that any other run of the service may
have: the tool must have run between the call that asked and the first one that was given the answer, and what it
returned must be what was given, where both are known.
"""

from collections.abc import Sequence
from itertools import islice

from evalagent.model import Edge, Json
from evalagent.traces.drafts import Draft, Request
from evalagent.traces.requests import SLACK_NS
from evalagent.traces.strands import WINDOW_NS, Strand, conversations
from evalagent.traces.unwrapping import canonical, plain, result

_TOOLS = ("tool", "handoff")
_LOOKED_AT = 64
"""So many open calls are looked at for the one that an answer without an id is to."""
_Asked = tuple[Strand, Draft, Request]


def orphan_tools(strands: Sequence[Strand]) -> None:
    """A trace of tools alone is the lost part of another: joined by the call's id, or by name and arguments where these
    are unique within the service and ten minutes. So is a tool that ran only in a later trace of its session."""
    if len(strands) < 2:
        return
    groups = conversations(strands)
    readers = _Readers(groups)
    _allowed_later(groups, readers)
    lost = [s for s in strands if s.drafts.steps and all(step.kind in _TOOLS for step in s.drafts.steps)]
    if not lost:
        return
    asked = _asked(strands, {strand.trace_id for strand in lost})
    if not asked:
        return
    ran: dict[tuple[str, ...], int] = {}
    for strand in lost:
        for step in strand.drafts.steps:
            for key in _keys(strand, step):
                ran[key] = ran.get(key, 0) + 1
    for strand in sorted(lost, key=lambda s: (s.start, s.trace_id)):
        for step in strand.drafts.steps:
            for key in _keys(strand, step):
                near = [
                    hit for hit in asked.get(key, ()) if not hit[2].used and abs(hit[1].start - step.start) <= WINDOW_NS
                ]
                proven = key[1] == "id"
                if not proven:
                    near = [hit for hit in near if ran[key] == 1 and readers.allow(hit, step)]
                if len(near) == 1:
                    _join(near[0], strand, step, proven, readers)
                    break


def _asked(strands: Sequence[Strand], lost: set[str]) -> dict[tuple[str, ...], list[_Asked]]:
    """The calls that nothing ran, by the keys of a tool that would have."""
    asked: dict[tuple[str, ...], list[_Asked]] = {}
    for strand in strands:
        for step in strand.drafts.steps if strand.trace_id not in lost else ():
            for request in step.requests:
                if not request.used:
                    hit = (strand, step, request)
                    if request.id:
                        asked.setdefault((strand.service, "id", request.id), []).append(hit)
                    asked.setdefault((strand.service, "call", request.name, request.text), []).append(hit)
    return asked


def _keys(strand: Strand, step: Draft) -> list[tuple[str, ...]]:
    keys: list[tuple[str, ...]] = []
    if step.observation.call_id:
        keys.append((strand.service, "id", step.observation.call_id))
    if step.observation.arguments is not None:
        keys.append((strand.service, "call", step.name, canonical(step.observation.arguments)))
    return keys


def _join(hit: _Asked, strand: Strand, step: Draft, proven: bool, readers: "_Readers") -> None:
    home, caller, request = hit
    if not request.used:
        if proven:
            readers.compare(hit, step)
        request.foreign = (strand.trace_id, step.step_id)
    step.asked_afar = caller.step_id
    step.afar += (Edge(caller.step_id, "call", 1.0 if proven else 0.8, home.trace_id),)


def _allowed_later(groups: Sequence[Sequence[Strand]], readers: "_Readers") -> None:
    """A call that had to wait (for a person's leave, for an answer from outside) runs in a later trace of its session,
    before any model call: the call's id tells who asked, else (Agno has none, ADK another) its name and arguments."""
    for members in groups:
        asked: dict[str, _Asked] = {}
        waiting: dict[tuple[str, str], _Asked] = {}
        for strand in members:
            for step in strand.drafts.steps:
                if step.kind not in _TOOLS or step.request is not None:
                    continue
                identity, given = step.observation.call_id, step.observation.arguments
                known, proven = asked.get(identity or ""), True
                if known is None and given is not None:
                    key = (step.name, canonical(given))
                    known, proven = waiting.get(key), False
                    if known is not None and not _waits(known) and not readers.allow(known, step):
                        continue
                    waiting.pop(key, None)
                if known is None or known[2].name != step.name or (not proven and known[2].foreign is not None):
                    continue
                _join(known, strand, step, proven, readers)
            for step in strand.drafts.steps:
                for request in step.requests:
                    hit = (strand, step, request)
                    if request.id:
                        asked[request.id] = hit
                    if not request.used or _waits(hit):
                        waiting[(request.name, request.text)] = hit


def _waits(asked: _Asked) -> bool:
    """Whether the tool that was to run a call stopped for a person instead."""
    strand, _, request = asked
    return request.step is not None and strand.drafts.steps[request.step].observation.interrupted


_Reading = tuple[Strand, Draft, Json]
"""A model call that was given an answer, its trace, and the answer."""


class _Readers:
    """Which model call was first given the answer to a call that nothing in its trace ran, and what that answer was.
    A conversation is read once, and only when it is asked for."""

    def __init__(self, groups: Sequence[Sequence[Strand]]) -> None:
        self._members = {strand.trace_id: members for members in groups for strand in members}
        self._read: dict[str, dict[tuple[str, ...], list[_Reading]]] = {}

    def allow(self, asked: _Asked, tool: Draft) -> bool:
        """Whether a tool can be what ran a call, as far as time and results tell."""
        _, caller, _ = asked
        first = self._first(asked)
        if tool.start < caller.start - SLACK_NS:
            return False
        return first is None or (tool.end <= first[1].start + SLACK_NS and _same(first[2], tool))

    def compare(self, asked: _Asked, tool: Draft) -> None:
        """Keep in mind that the call that was given the answer was told another one than the tool's."""
        first = self._first(asked)
        if first is not None and not _same(first[2], tool):
            first[0].drafts.contradicted.append(first[1].step_id)

    def _first(self, asked: _Asked) -> _Reading | None:
        home, caller, request = asked
        members = self._members.get(home.trace_id, (home,))
        name = members[0].trace_id
        if name not in self._read:
            self._read[name] = _readings(members)
        read = self._read[name]
        found = read.get(("id", request.id)) if request.id else None
        for one in found or read.get(("call", request.name, request.text)) or ():
            if one[1].start >= caller.start and one[1] is not caller:
                return one
        return None


def _readings(members: Sequence[Strand]) -> dict[tuple[str, ...], list[_Reading]]:
    """The model calls given the answer to each call that nothing ran, by start."""
    wanted: set[tuple[str, ...]] = set()
    for strand in members:
        for step in strand.drafts.steps:
            for request in step.requests:
                if not request.used:
                    wanted.add(("call", request.name, request.text))
                    if request.id:
                        wanted.add(("id", request.id))
    found: dict[tuple[str, ...], list[_Reading]] = {}
    texts: dict[int, str] = {}
    for strand in members if wanted else ():
        for step in strand.drafts.steps:
            if step.kind == "llm" and not step.virtual:
                for key, content in _answers(step, wanted, texts).items():
                    found.setdefault(key, []).append((strand, step, content))
    for readings in found.values():
        readings.sort(key=lambda one: (one[1].start, one[0].trace_id, one[1].step_id))
    return found


def _answers(step: Draft, wanted: set[tuple[str, ...]], texts: dict[int, str]) -> dict[tuple[str, ...], Json]:
    """The latest answer to each wanted call in what a model call was given. `texts`: the canonical texts of arguments
    that were met before, by the identity of their request, which is one object wherever it comes again."""
    found: dict[tuple[str, ...], Json] = {}
    opened: dict[int, tuple[str | None, tuple[str, ...]]] = {}
    """Calls that wait for an answer, by their number: id and key."""
    numbers: dict[str, int] = {}
    count = 0
    for message in step.core:
        for asked in message.requests if message.role == "assistant" else ():
            if id(asked) not in texts:
                texts[id(asked)] = canonical(asked.arguments)
            key: tuple[str, ...] = ("call", asked.name, texts[id(asked)])
            found.pop(key, None)
            opened[count] = (asked.id, key)
            if asked.id:
                numbers[asked.id] = count
            count += 1
        for answer in message.answers:
            keys: list[tuple[str, ...]] = []
            at: int | None
            if answer.id:
                keys.append(("id", answer.id))
                at = numbers.pop(answer.id, None)
            else:
                first = islice(opened.items(), _LOOKED_AT)
                at = next((n for n, (_, call) in first if answer.name in (None, call[1])), None)
            if at is not None and at in opened:
                identity, call = opened.pop(at)
                keys += [call, ("id", identity)] if identity else [call]
            found.update((key, answer.content) for key in keys if key in wanted)
    return found


def _same(given: Json, tool: Draft) -> bool:
    """Whether a model may have been given what a tool returned; what is not known or was cut may be."""
    own = tool.observation.result
    told, ran = _forms(given), _forms(own)
    return not told or not ran or tool.observation.truncated or not told.isdisjoint(ran)


def _forms(value: Json) -> set[str]:
    return {plain(value), plain(result(value).value)} - {""}
