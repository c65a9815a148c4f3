"""MLflow tracing 3.x: every attribute is JSON, plain texts too."""

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai, langfuse
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_KINDS = {
    "LLM": "llm",
    "CHAT_MODEL": "llm",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
    "EMBEDDING": "embedding",
    "RERANKER": "reranker",
    "GUARDRAIL": "guardrail",
    "MEMORY": "memory",
    "AGENT": "agent",
    "WORKFLOW": "workflow",
    "CHAIN": "node",
    "TASK": "node",
    "PARSER": "plumbing",
    "EVALUATOR": "other",
    "UNKNOWN": "node",
}


def speaks(span: Span) -> bool:
    """Its span type."""
    return names.ML_KIND in span.attributes


def _decoded(value: Json) -> Json:
    return parse(value).value


def observe(source: Source) -> Observation:
    """An MLflow span."""
    span, attributes = source.span, source.attributes
    kind = _KINDS.get(str(_decoded(attributes.get(names.ML_KIND))).upper(), "node")
    observation = fields.begin(source, kind, span.name)
    given, output = attributes.get(names.ML_INPUTS), attributes.get(names.ML_OUTPUTS)
    observation.tokens = langfuse.usage_of(attributes.get(names.ML_USAGE))
    metadata = _decoded(attributes.get(names.OI_METADATA))
    if isinstance(metadata, dict):
        observation.place = fields.place(metadata)
        observation.agent = fields.text(metadata.get("lc_agent_name"))
        observation.session = observation.session or observation.place.thread
    if kind in ("llm", "embedding"):
        asked = _decoded(given)
        model = _decoded(attributes.get(names.ML_MODEL)) or (asked.get("model") if isinstance(asked, dict) else None)
        observation.model = fields.text(model)
        observation.name = observation.model or span.name
        if kind == "llm":
            langfuse.messages(observation, source, given, output)
            _streamed_calls(observation, source)
            answered = _decoded(output)
            if isinstance(answered, dict):
                observation.response_id = fields.text(answered.get("id")) or fields.langchain_id(answered)
            tools = attributes.get(names.ML_TOOLS)
            if tools is not None:
                observation.tools = source.reader.tools(_decoded(tools))
    elif kind in ("tool", "retrieval", "reranker", "guardrail", "memory", "other"):
        fields.take_arguments(observation, given)
        fields.take_result(observation, _decoded(output))
        if kind == "retrieval" and isinstance(observation.result, list):
            observation.texts = tuple(
                str(item["page_content"])
                for item in observation.result
                if isinstance(item, dict) and item.get("page_content")
            )
        genai.as_handoff(observation)
    else:
        if kind == "node" and observation.agent == span.name:
            observation.kind = kind = "agent"
        observation.weak = kind == "node"
        observation.aggregated = True
        observation.task, observation.answer = fields.asked(given), fields.answered(_decoded(output))
    return observation


def _streamed_calls(observation: Observation, source: Source) -> None:
    """Tool calls of a streamed OpenAI reply: MLflow leaves them out of the reply and keeps them in events, by chunk."""
    reply = observation.reply
    if reply is not None and reply.requests:
        return
    calls: dict[int, dict[str, Json]] = {}
    for event in source.events:
        if not event.name.startswith(names.ML_CHUNK_EVENT) or "tool_calls" not in str(event.attributes)[:100_000]:
            continue
        chunk = _decoded(event.attributes.get(names.ML_CHUNK))
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        delta = (
            choices[0].get("delta") if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
        )
        for part in (delta.get("tool_calls") if isinstance(delta, dict) else None) or []:
            made = part.get("function") if isinstance(part, dict) else None
            if not isinstance(part, dict) or not isinstance(made, dict):
                continue
            call = calls.setdefault(fields.integer(part.get("index")) or 0, {"id": None, "name": None, "arguments": ""})
            call["id"] = call["id"] or part.get("id")
            call["name"] = call["name"] or made.get("name")
            call["arguments"] = f"{call['arguments']}{made.get('arguments') or ''}"
    if calls:
        told: dict[str, Json] = {"role": "assistant", "content": reply.text if reply is not None else None}
        told["tool_calls"] = [calls[at] for at in sorted(calls)]
        observation.reply = source.reader.one(told, "assistant")
