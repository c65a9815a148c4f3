"""Traces in the making, and which of them are turns of one conversation."""

from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass

from evalagent.traces.drafts import Draft, Drafts
from evalagent.traces.grouping import Grouping
from evalagent.traces.histories import Histories
from evalagent.traces.unwrapping import canonical

WINDOW_NS = 600 * 1_000_000_000
"""How far apart in time traces may be where nothing but what they hold says that they belong together."""
_CARRIED = 512
"""So many calls of a history are looked at to find whose history it is: the newest."""

_Call = tuple[str, str, str, str]
"""Service, id, name and arguments of a call."""


@dataclass(slots=True)
class Strand:
    """One trace in the making."""

    trace_id: str
    drafts: Drafts
    histories: Histories | None = None
    grouping: Grouping | None = None

    @property
    def start(self) -> int:
        return self.drafts.forest.spans[0].start_ns if self.drafts.forest.spans else 0

    @property
    def session(self) -> str | None:
        """What its spans say the session is; the earliest that says so decides."""
        return next((one.session for one in self.drafts.observations if one.session), None)

    @property
    def service(self) -> str:
        spans = self.drafts.forest.spans
        return str(spans[0].resource.get("service.name", "")) if spans else ""


def conversations(strands: Sequence[Strand]) -> list[list[Strand]]:
    """The conversations of more than one trace, each in order of start: those of one session, and, of traces that name
    none, those whose first model call was given calls that another trace of the service had made."""
    sessions: dict[str, list[Strand]] = {}
    nameless: list[Strand] = []
    for strand in strands:
        session = strand.session
        if session:
            sessions.setdefault(session, []).append(strand)
        elif strand.drafts.steps:
            nameless.append(strand)
    found = [*sessions.values(), *_continued(nameless)]
    return [sorted(members, key=_order) for members in found if len(members) > 1]


def _order(strand: Strand) -> tuple[int, str]:
    return strand.start, strand.trace_id


def _continued(strands: list[Strand]) -> list[list[Strand]]:
    """Traces joined by the ids of calls, with name and arguments: the same call was made in one trace alone, up to ten
    minutes before, and stands in the history that another one begins with."""
    if len(strands) < 2:
        return []
    strands.sort(key=_order)
    made: dict[_Call, list[int]] = {}
    for place, strand in enumerate(strands):
        for step in strand.drafts.steps:
            for request in step.requests if not step.virtual else ():
                if request.id:
                    known = made.setdefault((strand.service, request.id, request.name, request.text), [])
                    if not known or known[-1] != place:
                        known.append(place)
    if not made:
        return []
    group = list(range(len(strands)))
    places = {strand.trace_id: place for place, strand in enumerate(strands)}
    for place, strand in enumerate(strands):
        for step in strand.drafts.steps:
            for edge in step.afar:
                if edge.via == "call" and edge.trace_id in places:  # a tool that is known to be the other trace's
                    group[root_of(group, place)] = root_of(group, places[edge.trace_id])
        first = next((step for step in strand.drafts.steps if step.kind == "llm" and not step.virtual), None)
        for call in given_calls(strand, first) if first is not None else ():
            makers = made.get(call, ())
            if len(makers) == 1 and makers[0] != place and strand.start - strands[makers[0]].start <= WINDOW_NS:
                group[root_of(group, place)] = root_of(group, makers[0])
    members: dict[int, list[Strand]] = {}
    for place, strand in enumerate(strands):
        members.setdefault(root_of(group, place), []).append(strand)
    return list(members.values())


def root_of(group: MutableSequence[int], place: int) -> int:
    """The root of a place in a forest of parents, whose ways are made shorter."""
    while group[place] != place:
        group[place] = group[group[place]]
        place = group[place]
    return place


def given_calls(strand: Strand, step: Draft) -> list[_Call]:
    calls = [
        (strand.service, request.id, request.name, canonical(request.arguments))
        for message in step.core[-_CARRIED:]
        if message.role == "assistant"
        for request in message.requests
        if request.id
    ]
    return calls[-_CARRIED:]
