"""LangSmith's OpenTelemetry export 0.15: one JSON blob for what went in, one for what came out."""

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai, langfuse
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_KINDS = {
    "llm": "llm",
    "tool": "tool",
    "chain": "node",
    "retriever": "retrieval",
    "embedding": "embedding",
    "prompt": "plumbing",
    "parser": "plumbing",
}


def speaks(span: Span) -> bool:
    """Its span kind."""
    return names.LS_KIND in span.attributes


def observe(source: Source) -> Observation:
    """A LangSmith run."""
    span, attributes = source.span, source.attributes
    kind = _KINDS.get(str(attributes.get(names.LS_KIND)).lower(), "node")
    observation = fields.begin(source, kind, span.name)
    observation.place = fields.place(attributes, names.LS_METADATA)
    observation.agent = fields.text(attributes.get(names.LS_METADATA + "lc_agent_name"))
    for key in ("session_id", "thread_id"):
        observation.session = observation.session or fields.text(attributes.get(names.LS_METADATA + key))
    given, output = attributes.get(names.PROMPT), attributes.get(names.COMPLETION)
    if kind in ("llm", "embedding"):
        genai.model_call(observation, source)
        if kind == "llm":
            langfuse.messages(observation, source, given, output)
        observation.response_id = observation.response_id or fields.langchain_id(parse(output).value)
    elif kind in ("tool", "retrieval"):
        genai.tool_call(observation, source)
        if kind == "retrieval":
            observation.name = span.name
        fields.take_arguments(observation, given)
        fields.take_result(observation, _result(output), encoded=True)
        genai.as_handoff(observation)
    else:
        place = observation.place
        observation.weak = True
        observation.aggregated = True
        if observation.agent == span.name or (place.node is None and span.parent_id is None):
            observation.kind = "agent" if observation.agent == span.name else "workflow"
            observation.weak = False
        observation.task, observation.answer = fields.asked(given), fields.answered(output)
    return observation


def _result(output: Json) -> Json:
    value = parse(output).value
    if isinstance(value, dict) and isinstance(value.get("output"), dict):
        return value["output"]
    return output
