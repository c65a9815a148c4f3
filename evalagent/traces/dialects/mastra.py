"""Mastra's exporter of its own tracing: a generation is the turn of an agent, its steps are the model calls.

Seen: @mastra/core 0.24.9 with @mastra/otel-exporter 0.3.3. A step tells the request's body as the provider was sent it
and, without a stream, the response's; tokens are in that and, for all steps together, on the generation. Tools carry no
call ids.
"""

from collections.abc import Mapping

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_KINDS = {
    "agent_run": "agent",
    "workflow_run": "workflow",
    "model_generation": "turn",
    "model_step": "llm",
    "llm_generation": "llm",
    "tool_call": "tool",
    "mcp_tool_call": "tool",
    "model_chunk": "ignored",
    "llm_chunk": "ignored",
}


def speaks(span: Span) -> bool:
    """Its span type."""
    return names.MASTRA_KIND in span.attributes


def observe(source: Source) -> Observation:
    """A Mastra span; workflow steps, processors and what is generic are nodes."""
    span, attributes = source.span, source.attributes
    kind = _KINDS.get(str(attributes.get(names.MASTRA_KIND)), "node")
    observation = fields.begin(source, kind, span.name)
    for key in ("threadId", "sessionId"):
        observation.session = observation.session or fields.text(attributes.get(key))
    if kind == "ignored":
        observation.reason = "chunk"
    elif kind == "llm":
        _model_call(observation, source)
    elif kind == "tool":
        observation.name = fields.text(attributes.get(names.TOOL_NAME)) or span.name
        fields.take_arguments(observation, attributes.get(names.MASTRA_INPUT))
        fields.take_result(observation, attributes.get(names.MASTRA_OUTPUT))
        genai.as_handoff(observation)
    else:
        observation.weak = kind == "node"
        observation.tokens, observation.aggregated = fields.tokens(attributes), True
        if kind == "agent":
            observation.name = span.name.removeprefix("agent.")
            observation.agent = observation.name
        observation.task = fields.asked(attributes.get(names.MASTRA_INPUT))
        observation.answer = fields.answered(attributes.get(names.MASTRA_OUTPUT))
    return observation


def _model_call(observation: Observation, source: Source) -> None:
    attributes, reader = source.attributes, source.reader
    genai.model_call(observation, source)
    model = fields.text(attributes.get("modelId")) or fields.text(attributes.get("model"))
    observation.model = observation.model or model
    observation.name = observation.model or source.span.name
    given = _object(attributes.get(names.MASTRA_INPUT))
    body = _object(given.get("body")) or given
    observation.messages = reader.many(body.get("messages", body.get("input")), "user")[0]
    if body.get("tools") is not None:
        observation.tools = reader.tools(body["tools"])
    said = _object(attributes.get(names.MASTRA_OUTPUT))
    reply: dict[str, Json] = {"role": "assistant", "content": said.get("text")}
    if isinstance(said.get("toolCalls"), list):
        reply["tool_calls"] = said["toolCalls"]
    observation.reply = reader.one(reply, "assistant")
    observation.response_id = observation.response_id or fields.text(attributes.get("id"))
    usage = _object(_object(attributes.get("body")).get("usage")) or _object(attributes.get("usage"))
    if observation.tokens is None and usage:
        inputs, outputs = ("prompt_tokens", "input_tokens", "inputTokens"), ("completion_tokens", "output_tokens")
        observation.tokens = fields.tokens(usage, inputs, (*outputs, "outputTokens"), (), ())


def _object(value: Json) -> Mapping[str, Json]:
    parsed = parse(value).value
    return parsed if isinstance(parsed, dict) else {}
