"""By what a trace may belong with traces that are not at hand: the ends at which building joins one trace to another.

Where traces are too many to be built at once, those that share an end (service and key, in fitting roles and times) are
built together. An end says too much rather than too little: what it brings together, building may still leave apart.

* asked, ran: a call that nothing in its trace ran, and a step of a trace of tools alone (`lost_tools`)
* made, given: a call that a trace without a session made, and one in the history that such a trace begins with
  (`strands.conversations`)
* call, lone: a model call, and one of a trace of model calls alone, which may be its echo (`echoes.silence_echoes`)
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import orjson

from evalagent.model import Json
from evalagent.traces.drafts import Draft
from evalagent.traces.echoes import is_lone
from evalagent.traces.observing import Observation
from evalagent.traces.strands import Strand, given_calls
from evalagent.traces.unwrapping import canonical, collapsed

Role = Literal["asked", "ran", "made", "given", "call", "lone"]
_TOOLS = ("tool", "handoff")
_CALLS = ("llm", "embedding")


class Tie(NamedTuple):
    """One end of a trace. Times in ns; `key` begins with a letter that says what it is: `i` an id, which joins however
    often it is there, any other letter a content."""

    trace_id: str
    role: Role
    service: str
    key: str
    scope: str
    start_ns: int
    end_ns: int


def call_ties(strands: Sequence[Strand]) -> Iterator[Tie]:
    """The ends of model calls, before echoes are silenced."""
    for strand in strands:
        role: Role = "lone" if is_lone(strand) else "call"
        service = strand.service
        for step in strand.drafts.steps:
            if step.kind in _CALLS:
                for key in _call_keys(step.kind, step.observation, role):
                    yield Tie(strand.trace_id, role, service, key, step.observation.span.scope, step.start, step.end)


def request_ties(strands: Sequence[Strand]) -> Iterator[Tie]:
    """The ends of tool calls, when those were matched that were asked for and ran in one trace."""
    for strand in strands:
        steps, service, start = strand.drafts.steps, strand.service, strand.start
        if not steps:
            continue
        if all(step.kind in _TOOLS for step in steps):
            for step in steps:
                for key in _ran_keys(step):
                    yield Tie(strand.trace_id, "ran", service, key, "", step.start, step.start)
            continue
        nameless = strand.session is None
        for step in steps:
            for request in step.requests:
                if not request.used:
                    if request.id:
                        yield Tie(strand.trace_id, "asked", service, f"i{request.id}", "", step.start, step.start)
                    key = _key("c", request.name, request.text)
                    yield Tie(strand.trace_id, "asked", service, key, "", step.start, step.start)
                if nameless and request.id and not step.virtual:
                    key = _key("h", request.id, request.name, request.text)
                    yield Tie(strand.trace_id, "made", service, key, "", start, start)
        first = next((s for s in steps if s.kind == "llm" and not s.virtual), None) if nameless else None
        for _, identity, name, text in given_calls(strand, first) if first is not None else ():
            yield Tie(strand.trace_id, "given", service, _key("h", identity, name, text), "", start, start)


def _ran_keys(step: Draft) -> Iterator[str]:
    if step.observation.call_id:
        yield f"i{step.observation.call_id}"
    if step.observation.arguments is not None:
        yield _key("c", step.name, canonical(step.observation.arguments))


def _call_keys(kind: str, one: Observation, role: Role) -> Iterator[str]:
    """What two tellings of one call share: the reply's id, the reply, the tokens, or that just one of them is an SDK's
    own span."""
    if one.response_id:
        yield _key("r", kind, one.response_id)
    else:
        yield _key("n", kind, one.native != (role == "lone"))
    if one.reply is not None:
        asked = [[request.name, canonical(request.arguments)] for request in one.reply.requests]
        yield _key("p", kind, asked or collapsed(one.reply.text))
    if one.tokens is not None:
        tokens = one.tokens
        yield _key("k", kind, tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)


def _key(letter: str, *parts: Json) -> str:
    try:
        text = orjson.dumps(parts)  # texts and whole numbers, of which the canonical text is no other
    except TypeError:
        text = canonical(list(parts)).encode("utf-8", "replace")
    return letter + hashlib.blake2b(text, digest_size=8).hexdigest()
