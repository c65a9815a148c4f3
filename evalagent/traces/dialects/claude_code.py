"""Claude Code 2.x, and the Agent SDK that starts it."""

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields
from evalagent.traces.observing import Observation, Source

_SCOPE = "com.anthropic.claude_code.tracing"
_ARGUMENTS = (
    "file_path",
    "command",
    "full_command",
    "pattern",
    "path",
    "url",
    "query",
    "description",
    "subagent_type",
    "skill_name",
)


def speaks(span: Span) -> bool:
    """Its scope, or its span names with its kind."""
    return span.scope == _SCOPE or (span.name.startswith("claude_code.") and names.CC_KIND in span.attributes)


def observe(source: Source) -> Observation:
    """A Claude Code span."""
    span, attributes = source.span, source.attributes
    said = str(attributes.get(names.CC_KIND) or span.name.removeprefix("claude_code."))
    observation = fields.begin(source, "plumbing", span.name)
    if said == "interaction":
        observation.kind, observation.name = "agent", "claude_code"
        observation.task = fields.text(attributes.get(names.CC_PROMPT))
    elif said == "llm_request":
        asked = fields.text(attributes.get(names.REQUEST_MODEL)) or fields.text(attributes.get(names.CC_MODEL))
        observation.kind, observation.name = "llm", asked or span.name
        observation.model = fields.text(attributes.get(names.CC_MODEL)) or asked
        observation.tokens = fields.tokens(
            attributes, ("input_tokens",), ("output_tokens",), ("cache_read_tokens",), ("cache_creation_tokens",)
        )
        if attributes.get("success") in (False, "false") and observation.error is None:
            observation.error = fields.text(attributes.get("error")) or "error"
    elif said in ("tool", "tool.execution"):
        observation.kind = "tool"
        observation.name = fields.text(attributes.get("tool_name")) or "tool.execution"
        observation.call_id = fields.text(attributes.get(names.TOOL_CALL_ID)) or fields.text(
            attributes.get(names.CC_TOOL_USE_ID)
        )
        given: dict[str, Json] = {key: attributes[key] for key in _ARGUMENTS if attributes.get(key) is not None}
        observation.arguments = given or None
        for event in source.events:
            if event.name == "tool.output" and observation.result is None:
                fields.take_result(observation, event.attributes.get("content", event.attributes.get("output")))
        if attributes.get("success") in (False, "false") and observation.error is None:
            observation.error = fields.text(attributes.get("error")) or "error"
    elif said == "tool.blocked_on_user":
        observation.kind, observation.reason = "ignored", "permission_wait"
    return observation
