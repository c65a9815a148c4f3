"""Codex CLI: spans of its own program, of which few are the agent's, and log records that hold what tools were given.

Seen: codex-cli 0.171.0 with `trace_exporter` and `exporter` of `[otel]`. One attempt at a model call encloses the
stream of its reply, whose last part tells the tokens, and the tools that it starts. Replies are told nowhere, and
arguments, outputs and prompts in log records alone, which carry the id of whatever span was active.
"""

from collections.abc import Mapping, Sequence

from evalagent.model import Event, Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields
from evalagent.traces.observing import Observation, Source

_PROGRAM = "codex_"
_RESULT, _DECISION, _PROMPT = "codex.tool_result", "codex.tool_decision", "codex.user_prompt"
_TURN = "session_task.turn"


def speaks(span: Span) -> bool:
    """A span of one of its modules."""
    module = span.attributes.get(names.CODE_MODULE)
    return isinstance(module, str) and module.startswith(_PROGRAM)


def addressed(spans: Sequence[Span], events: Mapping[str, list[Event]]) -> Mapping[str, list[Event]]:
    """Log records by span id, those of Codex moved to the tool's span with their call id, prompts to the turn's."""
    if not any(_named(event) in (_RESULT, _DECISION, _PROMPT) for told in events.values() for event in told):
        return events
    tools: dict[str, str] = {}
    turns = []
    for span in spans:
        if speaks(span):
            call = fields.text(span.attributes.get(names.CODEX_CALL_ID)) if _is_tool(span) else None
            if call is not None:
                tools[call] = span.span_id
            if span.name == _TURN:
                turns.append(span.span_id)
    moved: dict[str, list[Event]] = {}
    for span_id, told in events.items():
        for event in told:
            there = span_id
            if _named(event) in (_RESULT, _DECISION):
                there = tools.get(fields.text(event.attributes.get(names.CODEX_CALL_ID)) or "", span_id)
            elif _named(event) == _PROMPT and len(turns) == 1:
                there = turns[0]
            moved.setdefault(there, []).append(event)
    return moved


def _named(event: Event) -> str:
    """A record's name as Codex means it: the name on the wire is a place in its source."""
    return fields.text(event.attributes.get(names.EVENT_NAME)) or event.name


def _is_tool(span: Span) -> bool:
    return names.CODEX_TOOL_SOURCE in span.attributes and names.CC_TOOL in span.attributes


def observe(source: Source) -> Observation:
    """A Codex span; most are plumbing."""
    span, attributes = source.span, source.attributes
    observation = fields.begin(source, "plumbing", span.name)
    observation.session = observation.session or fields.text(attributes.get(names.CODEX_CONVERSATION))
    if span.name == _TURN:
        observation.kind, observation.name = "agent", "codex"
        observation.model = fields.text(attributes.get(names.CC_MODEL))
        observation.tokens = fields.tokens(
            attributes, (names.CODEX_TURN_TOKENS + "input_tokens",), (names.CODEX_TURN_TOKENS + "output_tokens",)
        )
        observation.aggregated = True
        observation.task = fields.text(_told(source, _PROMPT, "prompt"))
        if observation.task == "[REDACTED]":
            observation.task = None
    elif span.name == "try_run_sampling_request":
        observation.kind = "llm"
        observation.model = fields.text(attributes.get(names.CC_MODEL))
        observation.name = observation.model or span.name
    elif names.INPUT_TOKENS[0] in attributes:
        observation.kind, observation.tokens = "llm", fields.tokens(attributes)
    elif _is_tool(span):
        _tool_call(observation, source)
    return observation


def _tool_call(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    observation.kind = "tool"
    observation.name = fields.text(attributes.get(names.CC_TOOL)) or source.span.name
    observation.call_id = fields.text(attributes.get(names.CODEX_CALL_ID))
    output = _told(source, _RESULT, "output")
    fields.take_arguments(observation, _told(source, _RESULT, "arguments"))
    fields.take_result(observation, output)
    if _told(source, _DECISION, "decision") in ("denied", "abort"):
        observation.error = observation.error or "permission denied"
    elif _told(source, _RESULT, "success") in ("false", False):
        observation.error = observation.error or fields.text(output) or "error"


def _told(source: Source, name: str, key: str) -> Json:
    """What the last log record of this name that has the key says under it; a copy without contents comes beside it."""
    told = (
        event.attributes[key] for event in reversed(source.events) if _named(event) == name and key in event.attributes
    )
    return next(told, None)
