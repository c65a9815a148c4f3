"""Pydantic AI instrumentation settings v1 to v6, also through Logfire.

Seen: 0.2.20 and 1.29 (v1, events as an attribute and as log records; v2, v3), 2.68 (v2 to v6, contents on and off).
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from evalagent.model import Json, Message, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_SCOPE = "pydantic-ai"
_HAS_OUTPUT_TOOLS = re.compile(r'"output_tools":\s*\[\s*\{')


def speaks(span: Span) -> bool:
    """Its scope, or the keys that only it has."""
    attributes = span.attributes
    return (
        span.scope == _SCOPE
        or names.LOGFIRE_SPAN_TYPE in attributes
        or "model_request_parameters" in attributes
        or any(key in attributes for key in names.PY_ALL_MESSAGES)
    )


def observe(source: Source) -> Observation:
    """A Pydantic AI span."""
    span, attributes = source.span, source.attributes
    if attributes.get(names.LOGFIRE_SPAN_TYPE) == "pending_span":
        observation = fields.begin(source, "ignored", span.name)
        observation.reason = "pending_span"
        return observation
    observation = genai.observe(source) if genai.speaks(span) else fields.begin(source, "plumbing", span.name)
    agent = fields.text(attributes.get(names.PY_AGENT))
    if agent and observation.kind not in ("llm", "tool", "handoff"):
        observation.kind, observation.weak = "agent", False
        observation.name = observation.agent = agent
        observation.tokens, observation.aggregated = fields.tokens(attributes), True
        observation.answer = fields.answered(attributes.get(names.PY_FINAL)) or fields.text(
            attributes.get(names.PY_FINAL)
        )
        history = fields.first(attributes, names.PY_ALL_MESSAGES)
        earlier = fields.integer(attributes.get(names.PY_NEW_MESSAGES)) or 0
        observation.task = _task(source.reader.many(_events(history), "user")[0], earlier)
    elif span.name.startswith("running ") and span.name.endswith("tools"):
        observation.kind = "plumbing"
    elif observation.kind in ("tool", "handoff"):
        if observation.arguments is None:
            fields.take_arguments(observation, attributes.get(names.PY_ARGUMENTS))
        if observation.result is None:
            fields.take_result(observation, attributes.get(names.PY_RESULT))
        genai.as_handoff(observation)
    elif observation.kind == "llm":
        if names.PY_EVENTS in attributes and not observation.messages:
            _old_messages(observation, source)
        observation.ending = _output_tools(attributes.get(names.PY_REQUEST))
    elif observation.kind == "embedding":
        fields.take_arguments(observation, attributes.get(names.PY_INPUTS))
    if observation.kind in ("llm", "embedding"):
        observation.cost_usd = fields.number(attributes.get(names.PY_COST))
    return observation


def _task(history: Sequence[Message], earlier: int) -> str | None:
    """What this run was asked. `earlier`: so many requests and replies, in turn, are an earlier run's."""
    replies = 0
    asked = None
    for message in history:
        if message.role == "assistant":
            replies += 1
        elif message.role == "user" and message.text:
            asked = message.text
            if replies >= earlier // 2:
                break
    return asked


def _output_tools(parameters: Json) -> frozenset[str]:
    """Names of the tools by which the model gives its structured answer."""
    if not isinstance(parameters, str) or not _HAS_OUTPUT_TOOLS.search(parameters):
        return frozenset()
    return _named(parameters)


@lru_cache(maxsize=16)
def _named(parameters: str) -> frozenset[str]:
    request = parse(parameters).value
    tools = request.get("output_tools") if isinstance(request, dict) else None
    listed = tools if isinstance(tools, list) else []
    return frozenset(str(tool["name"]) for tool in listed if isinstance(tool, dict) and tool.get("name"))


def _events(value: Json) -> Json:
    value = parse(value).value
    return value if isinstance(value, list) else None


def _old_messages(observation: Observation, source: Source) -> None:
    """v1: one attribute with all message events, the reply as `gen_ai.choice`."""
    events = _events(source.attributes.get(names.PY_EVENTS)) or []
    given = [e for e in events if isinstance(e, dict) and e.get("event.name") != names.EVENT_CHOICE]
    replies = [e.get("message") for e in events if isinstance(e, dict) and e.get("event.name") == names.EVENT_CHOICE]
    observation.messages = source.reader.many(given, "user")[0]
    observation.reply = source.reader.joined(source.reader.many(replies, "assistant")[0])
