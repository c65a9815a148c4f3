"""Claude Code 2.x, and the Agent SDK that starts it: spans, and the log records that say what spans do not.

Seen: Claude Code 2.1.197 with `CLAUDE_CODE_ENHANCED_TELEMETRY_BETA`, plain and with detailed tracing (`new_context`,
`response.model_output`, `tool_input`), prompts and tool contents on and off. A log record carries the id of whatever
span was active, often the interaction's; which tool or model call it is about is said by its tool use or request id.
A subagent has no span of its own: it is what is inside the span of the tool that starts it.
"""

import re
from collections.abc import Mapping, Sequence

from evalagent.model import Event, Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_SCOPE = "com.anthropic.claude_code.tracing"
_NAME = "claude_code."
_ARGUMENTS = (
    "file_path",
    "command",
    "pattern",
    "path",
    "url",
    "query",
    "description",
    "subagent_type",
    "skill_name",
)
_ECHOES = frozenset({"file_path", "bash_command"})
_STARTERS = frozenset({"Agent", "Task"})
_CONTEXT = re.compile(r"\[(?:USER(?: PROMPT)?|TOOL RESULT: (?P<id>[^\]\n]+))\]\n")
_BETWEEN = "\n\n---\n\n"
_LABEL = re.compile(r"\[TOOL (?:INPUT|RESULT): [^\]\n]*\]\n")


def speaks(span: Span) -> bool:
    """Its scope, or its span names with its kind."""
    return span.scope == _SCOPE or (span.name.startswith(_NAME) and names.CC_KIND in span.attributes)


def addressed(spans: Sequence[Span], events: Mapping[str, list[Event]]) -> Mapping[str, list[Event]]:
    """Log records by span id, those of Claude Code moved to the span that they are about."""
    if not any(_ours(event) for told in events.values() for event in told):
        return events
    about: dict[str, str] = {}
    for span in spans:
        kind = span.attributes.get(names.CC_KIND)
        key = names.CC_TOOL_USE_ID if kind == "tool" else names.CC_REQUEST_ID if kind == "llm_request" else None
        identity = fields.text(span.attributes.get(key)) if key is not None else None
        if identity is not None:
            about[identity] = span.span_id
    moved: dict[str, list[Event]] = {}
    for span_id, told in events.items():
        for event in told:
            identity = fields.text(fields.first(event.attributes, (names.CC_TOOL_USE_ID, names.CC_REQUEST_ID)))
            there = about.get(identity or "", span_id) if _ours(event) else span_id
            moved.setdefault(there, []).append(event)
    return moved


def _ours(event: Event) -> bool:
    return event.attributes.get("content") == _NAME + event.name or event.name.startswith(_NAME)


def observe(source: Source) -> Observation:
    """A Claude Code span."""
    span, attributes = source.span, source.attributes
    said = str(attributes.get(names.CC_KIND) or span.name.removeprefix(_NAME))
    observation = fields.begin(source, "plumbing", span.name)
    if said == "interaction":
        observation.kind, observation.name = "agent", "claude_code"
        observation.task = _shown(attributes.get(names.CC_PROMPT)) or _shown(_told(source, "user_prompt", "prompt"))
        observation.answer = _answer(source)
    elif said == "llm_request":
        _model_call(observation, source)
    elif said in ("tool", "tool.execution"):
        _tool_call(observation, source)
    elif said == "tool.blocked_on_user":
        observation.kind, observation.reason = "ignored", "permission_wait"
        if attributes.get("decision") == "reject":
            observation.kind, observation.name = "tool", "tool.execution"
            observation.error = "permission denied"
    elif said == "hook":
        observation.kind, observation.reason = "ignored", "hook"
    return observation


def _shown(value: Json) -> str | None:
    """A text that was not withheld."""
    said = fields.text(value)
    return None if said == "<REDACTED>" else said


def _told(source: Source, name: str, key: str) -> Json:
    """What the last log record of this name says under a key."""
    found = None
    for event in source.events:
        if event.name.removeprefix(_NAME) == name and _ours(event):
            found = event.attributes.get(key, found)
    return found


def _answer(source: Source) -> str | None:
    """The last text of the main conversation; a subagent's texts have its name in their source."""
    said = None
    for event in source.events:
        inner = str(event.attributes.get("query_source") or "").startswith("agent:")
        if event.name.removeprefix(_NAME) == "assistant_response" and _ours(event) and not inner:
            said = _shown(event.attributes.get("response")) or said
    return said


def _model_call(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    asked = fields.text(attributes.get(names.REQUEST_MODEL)) or fields.text(attributes.get(names.CC_MODEL))
    observation.kind, observation.name = "llm", asked or source.span.name
    observation.model = fields.text(attributes.get(names.CC_MODEL)) or asked
    observation.agent = fields.text(_told(source, "api_request", names.OI_AGENT_NAME))
    observation.cost_usd = fields.number(_told(source, "api_request", "cost_usd"))
    observation.tokens = fields.tokens(
        attributes, ("input_tokens",), ("output_tokens",), ("cache_read_tokens",), ("cache_creation_tokens",)
    )
    _fail(observation, source)
    observation.messages = source.reader.many(_context(attributes.get(names.CC_CONTEXT)), "user")[0]
    body = parse(_told(source, "api_response_body", "body"))
    if isinstance(body.value, dict) and not body.truncated:
        observation.reply = source.reader.one(body.value, "assistant")
    elif attributes.get("stop_reason") != "tool_use" and attributes.get(names.CC_CALLS) is not True:
        # Texts stand there without the calls beside them: they are the whole reply only where none was made.
        shown = _shown(attributes.get(names.CC_REPLY)) or _shown(_told(source, "assistant_response", "response"))
        if shown is not None:
            observation.reply = source.reader.one({"role": "assistant", "content": shown}, "assistant")


def _context(value: Json) -> list[Json]:
    """The messages that are new to a model call, out of the one text that detailed tracing makes of them."""
    messages: list[Json] = []
    for part in value.split(_BETWEEN) if isinstance(value, str) else ():
        match = _CONTEXT.match(part)
        if match is None and messages:
            messages[-1]["content"] += _BETWEEN + part
        elif match is None or match["id"] is None:
            messages.append({"role": "user", "content": part[match.end() :] if match is not None else part})
        else:
            messages.append({"role": "tool", "tool_call_id": match["id"], "content": part[match.end() :]})
    return messages


def _tool_call(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    observation.kind = "tool"
    observation.name = fields.text(attributes.get(names.CC_TOOL)) or "tool.execution"
    observation.call_id = fields.text(attributes.get(names.TOOL_CALL_ID)) or fields.text(
        attributes.get(names.CC_TOOL_USE_ID)
    )
    whole = parse(_told(source, "tool_result", "tool_input") or _unlabelled(attributes.get(names.CC_INPUT)))
    if isinstance(whole.value, dict):
        observation.arguments, observation.truncated = whole.value, whole.truncated
    else:
        given: dict[str, Json] = {key: attributes[key] for key in _ARGUMENTS if attributes.get(key) is not None}
        command = attributes.get("full_command")
        observation.arguments = ({"command": command} if command is not None else {}) | given or None
    for event in source.events:
        if event.name == "tool.output" and observation.result is None:
            output = fields.first(event.attributes, ("content", "output"))
            other = {key: value for key, value in event.attributes.items() if key not in _ECHOES}
            fields.take_result(observation, output if output is not None else other or None)
    if observation.result is None:
        fields.take_result(observation, _unlabelled(attributes.get(names.CC_CONTEXT)))
    if observation.name in _STARTERS:
        if isinstance(observation.result, dict) and "agentId" in observation.result:
            fields.take_result(observation, observation.result.get("content"))
        kind = observation.arguments.get("subagent_type") if isinstance(observation.arguments, dict) else None
        observation.target = fields.text(kind) or fields.text(attributes.get("subagent_type")) or "subagent"
    if _told(source, "tool_decision", "decision") == "reject" and observation.error is None:
        observation.error = "permission denied"
    _fail(observation, source)


def _unlabelled(value: Json) -> Json:
    return _LABEL.sub("", value, count=1) if isinstance(value, str) else None


def _fail(observation: Observation, source: Source) -> None:
    told = _told(source, "tool_result", "success")
    if observation.error is None and (source.attributes.get("success") in (False, "false") or told == "false"):
        said = fields.text(source.attributes.get("error")) or fields.text(_told(source, "tool_result", "error"))
        observation.error = said or fields.text(_told(source, "api_error", "error")) or "error"
