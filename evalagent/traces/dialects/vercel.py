"""Vercel AI SDK 5 and 6 (`ai.*`), and 7 with LegacyOpenTelemetry; 7 itself writes GenAI spans."""

from evalagent.model import Json, Span, Tokens
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse


def speaks(span: Span) -> bool:
    """Its operation id, where the span is not a GenAI one at the same time."""
    return names.AI_OPERATION in span.attributes and names.OPERATION not in span.attributes


def observe(source: Source) -> Observation:
    """A span of the AI SDK: `….doGenerate` and `….doStream` are model calls, what is around them an agent."""
    span, attributes = source.span, source.attributes
    operation = str(attributes.get(names.AI_OPERATION))
    action = operation.rpartition(".")[2]
    if action in ("doGenerate", "doStream"):
        kind = "llm"
    elif action == "doEmbed":
        kind = "embedding"
    elif action == "toolCall":
        kind = "tool"
    elif action in ("doRerank", "rerank"):
        kind = "reranker" if action == "doRerank" else "node"
    elif action in ("embed", "embedMany"):
        kind = "node"
    else:
        kind = "agent"
    observation = fields.begin(source, kind, span.name)
    for key in ("sessionId", "session_id", "threadId", "conversationId"):
        observation.session = observation.session or fields.text(attributes.get(names.AI_METADATA + key))
    observation.agent = fields.text(attributes.get(names.AI_FUNCTION))
    if kind in ("llm", "embedding", "reranker"):
        _model_call(observation, source)
    elif kind == "tool":
        observation.name = fields.text(attributes.get(names.AI_TOOL_NAME)) or span.name
        observation.call_id = fields.text(attributes.get(names.AI_TOOL_ID))
        fields.take_arguments(observation, attributes.get(names.AI_TOOL_ARGS))
        fields.take_result(observation, attributes.get(names.AI_TOOL_RESULT), encoded=True)
        genai.as_handoff(observation)
    else:
        observation.weak = kind == "node"
        observation.name = observation.agent or operation
        observation.tokens, observation.aggregated = _tokens(observation, source), True
        prompt = parse(attributes.get(names.AI_PROMPT)).value
        observation.task = _asked(source, prompt)
        observation.answer = fields.text(fields.first(attributes, (names.AI_TEXT, names.AI_OBJECT)))
    return observation


def _asked(source: Source, prompt: Json) -> str | None:
    if isinstance(prompt, dict):
        if isinstance(prompt.get("prompt"), str):
            return str(prompt["prompt"])
        given = prompt.get("messages") or prompt.get("prompt")
        return genai.first_user(source.reader.many(given, "user")[0])
    return prompt if isinstance(prompt, str) else None


def _tokens(observation: Observation, source: Source) -> Tokens | None:
    attributes = source.attributes
    return fields.tokens(
        attributes,
        (*names.AI_INPUT_TOKENS, *names.INPUT_TOKENS),
        (*names.AI_OUTPUT_TOKENS, *names.OUTPUT_TOKENS),
        names.AI_CACHE_READ,
        names.AI_CACHE_WRITE,
    )


def _model_call(observation: Observation, source: Source) -> None:
    attributes, reader = source.attributes, source.reader
    asked = fields.text(attributes.get(names.AI_MODEL)) or fields.text(attributes.get(names.REQUEST_MODEL))
    observation.model = fields.text(attributes.get(names.AI_RESPONSE_MODEL)) or asked
    observation.name = asked or source.span.name
    observation.tokens = _tokens(observation, source)
    observation.response_id = fields.text(attributes.get(names.AI_RESPONSE_ID))
    fields.take_messages(observation, source, attributes.get(names.AI_MESSAGES), None)
    calls = parse(attributes.get(names.AI_CALLS))
    said = fields.first(attributes, (names.AI_TEXT, names.AI_OBJECT))
    reply: dict[str, Json] = {"role": "assistant", "content": said}
    if isinstance(calls.value, list):
        reply["tool_calls"] = calls.value
    observation.reply = reader.one(reply)
    observation.truncated = observation.truncated or calls.truncated
    tools = attributes.get(names.AI_TOOLS)
    if isinstance(tools, list):
        observation.tools = reader.tools([parse(tool).value for tool in tools])
