"""Gemini CLI: GenAI names with operations of its own, each model call and each tool call the root of a trace.

Seen: gemini-cli 0.61.0 with `telemetry.traces`. A tool's span tells the scheduler's whole record of the call: what was
asked, how it ended, and the parts that went back to the model. A session's traces are joined by the calls' ids, which
stand in histories without the tool's name before them.
"""

from dataclasses import replace

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_SCOPE = "gemini-cli"
_KINDS = {
    "llm_call": "llm",
    "tool_call": "tool",
    "agent_call": "agent",
    "user_prompt": "agent",
    "system_prompt": "turn",
    "schedule_tool_calls": "turn",
}


def speaks(span: Span) -> bool:
    """Its scope; where an exporter lost that, its operations under its name."""
    if str(span.attributes.get(names.OPERATION)) not in _KINDS:
        return False
    return span.scope == _SCOPE or span.attributes.get(names.AGENT_NAME) == _SCOPE


def observe(source: Source) -> Observation:
    """A Gemini CLI span."""
    span, attributes = source.span, source.attributes
    observation = fields.begin(source, _KINDS[str(attributes[names.OPERATION])], span.name)
    observation.agent = fields.text(attributes.get(names.AGENT_NAME))
    if observation.kind == "llm":
        genai.model_call(observation, source)
        reply = observation.reply
        if reply is not None and reply.requests:
            requests = tuple(replace(call, id=_plain(call.id, call.name)) for call in reply.requests)
            observation.reply = source.reader.intern(replace(reply, requests=requests))
        observation.task = _asked(attributes.get(names.INPUT_MESSAGES))
    elif observation.kind == "tool":
        _tool_call(observation, source)
    else:
        observation.weak = observation.kind == "turn"
        observation.name = observation.agent or span.name
        given = parse(attributes.get(names.INPUT_MESSAGES)).value
        observation.task = fields.asked(given) if observation.kind == "agent" else None
    return observation


def _tool_call(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    asked, ended = parse(attributes.get(names.INPUT_MESSAGES)), parse(attributes.get(names.OUTPUT_MESSAGES))
    observation.truncated = asked.truncated or ended.truncated
    request = asked.value if isinstance(asked.value, dict) else {}
    record = ended.value if isinstance(ended.value, dict) else {}
    observation.name = fields.text(attributes.get(names.TOOL_NAME)) or source.span.name
    identity = fields.text(attributes.get(names.GEMINI_CALL_ID)) or fields.text(request.get("callId"))
    observation.call_id = _plain(identity, observation.name)
    fields.take_arguments(observation, request.get("args"))
    told = _told(record.get("response"))
    fields.take_result(observation, told)
    if record.get("status") == "error" and observation.error is None:
        inner = told.get("error") if isinstance(told, dict) else None
        observation.error = fields.text(inner) or "error"
    genai.as_handoff(observation)


def _plain(identity: str | None, name: str) -> str | None:
    return identity if identity is None else identity.removeprefix(f"{name}__")


def _asked(given: Json) -> str | None:
    """What the person wrote last: the last text of a message that begins with what the program tells of itself."""
    messages = parse(given).value
    for message in reversed(messages) if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) and message.get("role") == "user" else None
        for part in reversed(parts) if isinstance(parts, list) else ():
            if isinstance(part, dict) and isinstance(part.get("text"), str) and part["text"]:
                return str(part["text"])
    return None


def _told(response: Json) -> Json:
    """What went back to the model."""
    parts = response.get("responseParts") if isinstance(response, dict) else None
    for part in parts if isinstance(parts, list) else ():
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(answer, dict) and answer.get("response") is not None:
            return answer["response"]
    return response.get("resultDisplay") if isinstance(response, dict) else None
