"""Strands Agents 0.2 to 1.62: messages in span events, tools' arguments and results too.

Seen: 1.62.0 with both opt-ins (plain, `gen_ai_latest_experimental`): agents, agents as tools, swarms, graphs, streams,
structured output, interrupts. A tool that interrupts has no result and no error; its run goes on in a trace of its own.
"""

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_SCOPE = "strands.telemetry.tracer"


def speaks(span: Span) -> bool:
    """Its scope, or itself named as the system."""
    attributes = span.attributes
    return (
        span.scope == _SCOPE
        or attributes.get(names.SYSTEM) == "strands-agents"
        or attributes.get(names.PROVIDER) == "strands-agents"
        or "event_loop.cycle_id" in attributes
    )


def observe(source: Source) -> Observation:
    """A Strands span; 0.2 has names only (`Model invoke`, `Tool: x`, `Cycle …`)."""
    span, attributes = source.span, source.attributes
    observation = genai.observe(source)
    if names.OPERATION not in attributes:
        if span.name.startswith("Cycle") or "event_loop.cycle_id" in attributes:
            observation.kind, observation.weak = "turn", True
        elif span.name.startswith("Tool: "):
            observation.kind, observation.name = "tool", span.name.removeprefix("Tool: ")
        elif span.name == "Model invoke":
            observation.kind = "llm"
            genai.model_call(observation, source)
    if observation.kind in ("tool", "handoff"):
        _content(observation, source)
    elif observation.kind == "agent" and _waits(source):
        observation.answer, observation.interrupted = None, True
    return observation


def _waits(source: Source) -> bool:
    """Whether the agent stopped for a person; what it then says is a list of its questions, no answer."""
    for event in source.events:
        if event.name == names.EVENT_CHOICE and event.attributes.get("finish_reason") == "interrupt":
            return True
        if event.name == names.EVENT_DETAILS:
            replies = parse(event.attributes.get(names.OUTPUT_MESSAGES)).value
            if isinstance(replies, list) and any(
                isinstance(reply, dict) and reply.get("finish_reason") == "interrupt" for reply in replies
            ):
                return True
    return False


def _content(observation: Observation, source: Source) -> None:
    for event in source.events:
        body = event.attributes
        if event.name == "gen_ai.tool.message" and observation.arguments is None:
            fields.take_arguments(observation, body.get("content"))
        elif event.name == names.EVENT_CHOICE and observation.result is None:
            fields.take_result(observation, body.get("message"))
        elif event.name == names.EVENT_DETAILS:
            given, _ = source.reader.many(body.get(names.INPUT_MESSAGES), "tool")
            reply, _ = source.reader.many(body.get(names.OUTPUT_MESSAGES), "tool")
            if observation.arguments is None:
                observation.arguments = next((r.arguments for m in given for r in m.requests), None)
            if observation.result is None:
                fields.take_result(observation, next((a.content for m in reply for a in m.answers), None))
    said = names.STRANDS_TOOL_STATUS & source.attributes.keys()
    failed = any(source.attributes[key] == "error" for key in said)
    if failed and observation.error is None and not _tells_failure(observation.result):
        observation.result = {"status": "error", "content": observation.result}
    genai.as_handoff(observation)


def _tells_failure(result: Json) -> bool:
    return isinstance(result, dict) and result.get("status") == "error"
