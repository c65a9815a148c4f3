"""Pydantic AI instrumentation settings v1 to v6, also through Logfire."""

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_SCOPE = "pydantic-ai"


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
        observation.task = genai.first_user(source.reader.many(_events(history), "user")[0])
    elif span.name.startswith("running ") and span.name.endswith("tools"):
        observation.kind = "plumbing"
    elif observation.kind in ("tool", "handoff"):
        if observation.arguments is None:
            fields.take_arguments(observation, attributes.get(names.PY_ARGUMENTS))
        if observation.result is None:
            fields.take_result(observation, attributes.get(names.PY_RESULT))
        genai.as_handoff(observation)
    elif observation.kind == "llm" and names.PY_EVENTS in attributes and not observation.messages:
        _old_messages(observation, source)
    return observation


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
