"""Model Context Protocol spans of the Python SDK 2.x, client and server side."""

from evalagent.model import Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source

_CALL = "tools/call"


def speaks(span: Span) -> bool:
    """The protocol's method."""
    return names.MCP_METHOD in span.attributes or span.name.startswith("MCP send ")


def observe(source: Source) -> Observation:
    """A tool call on either side; the rest of the protocol is ignored."""
    span, attributes = source.span, source.attributes
    method = fields.text(attributes.get(names.MCP_METHOD)) or span.name.removeprefix("MCP send ").partition(" ")[0]
    observation = fields.begin(source, "ignored", span.name)
    observation.reason = "mcp_protocol"
    if method == _CALL:
        observation.kind, observation.reason = "tool", ""
        genai.tool_call(observation, source)
        observation.name = fields.text(attributes.get(names.TOOL_NAME)) or span.name.rpartition(" ")[2]
        genai.as_handoff(observation)
    return observation
