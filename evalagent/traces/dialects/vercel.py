"""Vercel AI SDK 4 to 6 (`ai.*`), 7 with LegacyOpenTelemetry, and 7 itself, whose spans are GenAI ones.

Seen: ai 4.3.19, 5.0.277, 6.0.326, 7.0.173 with @ai-sdk/otel 1.0.173. A retried model call is one span from 5 on, and
one for each attempt in 4. A streamed call is the parent of the tools that it asks for. 4 tells no usage of a stream
(NaN on the wire) unless the provider is asked for it. OpenInference's exporter (2.8.1) leaves these names beside its
own, which tell less.
"""

from evalagent.model import Json, Span, Tokens
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_SCOPE = "gen_ai"
_SESSION = ("sessionId", "session_id", "threadId", "thread_id", "conversationId", "conversation_id", "chatId")


def speaks(span: Span) -> bool:
    """Its operation id, where the span is not a GenAI one at the same time; or a GenAI span of version 7's scope."""
    if names.OPERATION in span.attributes:
        return span.scope == _SCOPE
    return names.AI_OPERATION in span.attributes


def observe(source: Source) -> Observation:
    """A span of the AI SDK: `….doGenerate` and `….doStream` are model calls, what is around them an agent."""
    span, attributes = source.span, source.attributes
    if names.OPERATION in attributes:
        return _seven(source)
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
    observation.session = observation.session or _session(source)
    observation.agent = fields.text(attributes.get(names.AI_FUNCTION))
    if kind == "llm":
        _model_call(observation, source)
    elif kind in ("embedding", "reranker"):
        _vectors(observation, source)
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


def _seven(source: Source) -> Observation:
    """A GenAI span of version 7, with what it adds to the convention."""
    observation = genai.observe(source)
    observation.session = observation.session or _session(source)
    if source.attributes.get(names.OPERATION) == "decide":
        observation.kind, observation.weak = "llm", False
        genai.model_call(observation, source)
    elif observation.kind in ("embedding", "reranker"):
        _embedded(observation, source)
    return observation


def _session(source: Source) -> str | None:
    keys = (prefix + key for prefix in (names.AI_METADATA, names.AI_CONTEXT) for key in _SESSION)
    return fields.text(fields.first(source.attributes, keys))


def _vectors(observation: Observation, source: Source) -> None:
    """An embedding or a ranking: model, tokens, and the texts that went in."""
    attributes = source.attributes
    observation.model = fields.text(attributes.get(names.AI_MODEL)) or fields.text(attributes.get(names.REQUEST_MODEL))
    observation.name = observation.model or source.span.name
    observation.tokens = _tokens(observation, source)
    _embedded(observation, source)


def _embedded(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    texts = fields.first(attributes, (names.AI_VALUES, names.AI_VALUE, names.AI_DOCUMENTS))
    if texts is not None:
        texts = [parse(text).value for text in texts] if isinstance(texts, list) else parse(texts).value
        observation.arguments = texts[0] if isinstance(texts, list) and len(texts) == 1 else texts
    ranking = attributes.get(names.AI_RANKING)
    if isinstance(ranking, list):
        observation.result = [parse(place).value for place in ranking]


def _asked(source: Source, prompt: Json) -> str | None:
    if isinstance(prompt, dict):
        if isinstance(prompt.get("prompt"), str):
            return str(prompt["prompt"])
        given = prompt.get("messages") or prompt.get("prompt")
        return genai.last_user(source.reader.many(given, "user")[0])
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
    if attributes.get(names.AI_FINISH) not in (None, "error") and not source.events:
        observation.error = None  # OpenInference's exporter copies the status of a tool that failed to what ends later
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
