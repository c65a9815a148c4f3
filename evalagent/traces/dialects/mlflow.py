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
    metadata = _decoded(attributes.get("metadata"))
    if isinstance(metadata, dict):
        observation.place = fields.place(metadata)
    if kind in ("llm", "embedding"):
        asked = _decoded(given)
        model = _decoded(attributes.get(names.ML_MODEL)) or (asked.get("model") if isinstance(asked, dict) else None)
        observation.model = fields.text(model)
        observation.name = observation.model or span.name
        if kind == "llm":
            langfuse.messages(observation, source, given, output)
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
        observation.weak = kind == "node"
        observation.aggregated = True
        observation.task, observation.answer = fields.asked(given), fields.answered(_decoded(output))
    return observation
