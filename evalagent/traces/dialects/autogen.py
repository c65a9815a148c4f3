"""AutoGen 0.7 native: message passing between runtimes joined by links; no spans of model calls."""

from evalagent.model import Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source

_SCOPES = ("autogen-core", "autogen SingleThreadedAgentRuntime")


def speaks(span: Span) -> bool:
    """Its scopes, itself named as the system, or the names of its messaging spans."""
    return (
        span.scope in _SCOPES
        or span.attributes.get(names.SYSTEM) == "autogen"
        or (span.name.startswith("autogen ") and names.AUTOGEN_OPERATION in span.attributes)
    )


def observe(source: Source) -> Observation:
    """An AutoGen span: `process` holds what an agent did with one message, the other messaging spans hold nothing."""
    span, attributes = source.span, source.attributes
    if names.OPERATION in attributes:
        return genai.observe(source)
    observation = fields.begin(source, "plumbing", span.name)
    action = span.name.removeprefix("autogen ").partition(" ")[0]
    if action == "process":
        observation.kind, observation.weak = "node", True
        observation.name = fields.text(attributes.get(names.AUTOGEN_RECIPIENT)) or span.name
    elif span.name.startswith("autogen "):
        observation.kind, observation.reason = "ignored", f"autogen_{action}"
    return observation
