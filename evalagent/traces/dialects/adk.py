"""Google Agent Development Kit 1.x and 2.x.

Seen: 1.14.1 and 1.29.0 (contents in `gcp.vertex.agent.*`; 1.29 tells each model call by two spans), 2.13.0 (none by
default; on spans or in log records by opt-in), with sequential, parallel and loop agents, transfers there and back,
AgentTool, streams. The OpenInference instrumentor 1.0.5 leaves 1.x as it is; of 2.13 it overwrites each agent's span
with that agent's last model call: the others are lost.
"""

import re

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_SCOPE = "gcp.vertex.agent"
_NOTHING = "<not specified>"
"""What stands for the result and the id of a tool that raised."""
_CONFIRM = "This tool call requires confirmation, please approve or reject."
"""What stands for the result of a call that a person has to allow first."""
_REJECTED = "This tool call is rejected."
"""What stands for it where the person did not: no error of the tool's."""
_AGENT_RUN = re.compile(r"^(agent_run|invoke_agent) \[?(?P<name>.+?)\]?$")


def speaks(span: Span) -> bool:
    """Its scope, itself named as the system, or its own keys."""
    attributes = span.attributes
    return (
        span.scope == _SCOPE or attributes.get(names.SYSTEM) == _SCOPE or "gcp.vertex.agent." in fields.families(span)
    )


def observe(source: Source) -> Observation:
    """An ADK span; 1.x says by its name what it is."""
    span, attributes = source.span, source.attributes
    observation = genai.observe(source)
    if names.OPERATION not in attributes:
        match = _AGENT_RUN.match(span.name)
        if span.name == "call_llm":
            observation.kind = "llm"
            genai.model_call(observation, source)
        elif match:
            observation.kind, observation.name = "agent", match["name"]
            observation.agent, observation.weak = match["name"], False
        elif span.name == "invocation" or span.name.startswith("invocation"):
            observation.kind, observation.weak = "workflow", False
        elif span.name.startswith("execute_tool"):
            observation.kind = "tool"
            genai.tool_call(observation, source)
        elif names.REQUEST_MODEL not in attributes and names.TOOL_NAME not in attributes:
            observation.kind = "plumbing"
    observation.session = observation.session or fields.text(attributes.get(names.ADK_SESSION))
    if observation.kind == "llm":
        _request(observation, source)
    elif observation.kind in ("tool", "handoff"):
        if observation.arguments is None:
            fields.take_arguments(observation, attributes.get(names.ADK_ARGUMENTS))
        if observation.result is None:
            fields.take_result(observation, attributes.get(names.ADK_RESULT))
        said = observation.result.get("error") if isinstance(observation.result, dict) else None
        if said == _CONFIRM:
            observation.result, observation.interrupted = None, True
        elif said == _REJECTED:
            observation.result = said
        if observation.result == _NOTHING:
            observation.result = None
        if observation.call_id == _NOTHING:
            observation.call_id = None
        genai.as_handoff(observation)
    return observation


def _request(observation: Observation, source: Source) -> None:
    attributes, reader = source.attributes, source.reader
    request = parse(attributes.get(names.ADK_REQUEST))
    if isinstance(request.value, dict) and not observation.messages:
        config = request.value.get("config")
        system = config.get("system_instruction") if isinstance(config, dict) else None
        contents = request.value.get("contents")
        fields.take_messages(observation, source, contents, None, _instruction(system))
        tools = config.get("tools") if isinstance(config, dict) else None
        if tools and not observation.tools and not request.truncated:
            observation.tools = reader.tools(tools)
    response = parse(attributes.get(names.ADK_RESPONSE))
    if isinstance(response.value, dict) and observation.reply is None:
        observation.reply = reader.joined(reader.many(response.value.get("content"), "assistant")[0])
        if observation.tokens is None and isinstance(response.value.get("usage_metadata"), dict):
            observation.tokens = fields.tokens(
                response.value["usage_metadata"],
                ("prompt_token_count",),
                ("candidates_token_count",),
                ("cached_content_token_count",),
                (),
            )
    observation.truncated = observation.truncated or request.truncated or response.truncated


def _instruction(system: Json) -> Json:
    if isinstance(system, dict) and isinstance(system.get("parts"), list):
        return [{"role": "system", "parts": system["parts"]}]
    return system
