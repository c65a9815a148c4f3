"""Calls that a model made in words: code that calls a tool or a managed agent (smolagents), ReAct's `Action: NAME`.

They are no tool calls of a reply, so nothing runs them that could be missed; what did run is joined to who asked for
it.
"""

import re
from collections.abc import Sequence

from evalagent.traces.drafts import Drafts, Request
from evalagent.traces.groups import TOOLS

_IN_WORDS = -1
"""The position of a call that is none of a reply's."""


def asked_in_words(drafts: Drafts, last: Sequence[int], sources: Sequence[int], agent: str | None) -> bool:
    """Whether the one step that ended just before asked in words for what begins here: a tool, or `agent` by name. A
    tool that code called after another tool is joined to the model call too, though the other came between."""
    if len(last) != 1:
        return False
    before, begun = drafts.steps[last[0]], drafts.steps[sources[0]]
    asker = last[0]
    if before.kind in TOOLS and before.request is not None and before.request.position == _IN_WORDS:
        asker = before.request.llm
    called = agent
    if called is None and len(sources) == 1 and begun.kind in TOOLS:
        called = begun.name
    if called is None or not _says(drafts, asker, called):
        return False
    if agent is None:
        begun.request = Request(asker, _IN_WORDS, None, called, begun.observation.arguments, "", sources[0])
        begun.agent = begun.agent or drafts.steps[asker].agent
    return asker == last[0]


def _says(drafts: Drafts, number: int, called: str) -> bool:
    step = drafts.steps[number]
    reply = step.observation.reply if step.kind == "llm" and not step.requests else None
    if reply is None or not reply.text:
        return False
    name = re.escape(called)
    return bool(re.search(rf"(?<![\w.]){name}\s*\(|\bAction:\s*{name}\s*$", reply.text, re.M))
