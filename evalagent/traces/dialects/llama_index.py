"""LlamaIndex (core 0.14) under OpenInference (4.6) and OpenLLMetry (0.62): workflows of agents, retrieval, synthesis.

Both follow the framework's own dispatcher, which reports methods: one call is several spans, and what an agent is
called is known from the events that go between the methods of its workflow. OpenLLMetry tells no model calls here; the
provider's instrumentation does.
"""

import re

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai, openinference, openllmetry
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import structured

_OPENINFERENCE = "openinference.instrumentation.llama_index"
_OPENLLMETRY = "opentelemetry.instrumentation.llamaindex"
_TURN = ".run_agent_step"
_PREPARING = re.compile(r"\._prepare_\w+$")
_ASKING = re.compile(r"\.a?(predict|stream)$")
_PROGRAMS = re.compile(r"\.a?(stream_)?(structured_predict|predict_and_call)$")
_CURRENT = re.compile(r"current_agent_name='((?:[^'\\]|\\.){1,200})'")
_OBJECT = "<workflows."  # the context that the framework hands to a tool, as Python repr
_STEP = re.compile(r"\.(task|workflow)$")


def speaks(span: Span) -> bool:
    """The scopes of its two instrumentors, or the methods that only its agents have."""
    return span.scope.startswith((_OPENINFERENCE, _OPENLLMETRY)) or (
        names.OI_KIND in span.attributes and (span.name.endswith(_TURN) or bool(_PREPARING.search(span.name)))
    )


def observe(source: Source) -> Observation:
    """A span of one of the two."""
    if names.OI_KIND in source.attributes or source.span.scope.startswith(_OPENINFERENCE):
        return _openinference(source)
    return _openllmetry(source)


def _openinference(source: Source) -> Observation:
    span, attributes = source.span, source.attributes
    observation = openinference.observe(source)
    if observation.kind == "llm":
        if _PREPARING.search(span.name):
            observation = fields.begin(source, "plumbing", span.name)
        elif _PROGRAMS.search(span.name):
            observation.kind, observation.weak = "node", True
        elif _ASKING.search(span.name) and names.OI_INPUT_MESSAGES not in fields.families(span):
            observation.messages = ()  # the template; the call inside has the words
    elif observation.kind in ("tool", "handoff") and isinstance(observation.arguments, dict):
        given = observation.arguments
        observation.arguments = {k: v for k, v in given.items() if not (isinstance(v, str) and v.startswith(_OBJECT))}
    elif observation.kind == "retrieval":
        observation.arguments = _question(observation.arguments)
    elif span.name.endswith(_TURN):
        name = _current(attributes.get(names.OI_INPUT)) or _current(attributes.get(names.OI_OUTPUT))
        if name is not None:
            _as_agent(observation, name)
            observation.task = observation.answer = None
    return observation


def _question(given: Json) -> Json:
    """The words of a retriever's query."""
    bundle = next(iter(given.values())) if isinstance(given, dict) and len(given) == 1 else given
    return bundle["query_str"] if isinstance(bundle, dict) and fields.text(bundle.get("query_str")) else given


def _current(value: Json) -> str | None:
    """The agent that an event, written as Python repr, is for."""
    found = _CURRENT.search(value) if isinstance(value, str) else None
    return found[1] if found else None


def _as_agent(observation: Observation, name: str) -> None:
    observation.kind, observation.weak = "agent", False
    observation.name = observation.agent = name


def _openllmetry(source: Source) -> Observation:
    attributes = source.attributes
    observation = openllmetry.observe(source)
    if observation.kind not in ("node", "workflow"):
        return observation
    entity = _STEP.sub("", fields.text(attributes.get(names.TL_NAME)) or source.span.name)
    output = structured(attributes.get(names.TL_OUTPUT))
    said = output if isinstance(output, dict) else {}
    name = fields.text(attributes.get(names.OI_TOOL_NAME)) or fields.text(said.get("tool_name"))
    if name is not None:
        return _tool(observation, source, name, said)
    if entity.endswith(("Retriever", "Rerank", "Reranker")):
        observation.kind = "retrieval" if entity.endswith("Retriever") else "reranker"
        observation.name, observation.weak = entity, False
        fields.take_arguments(observation, attributes.get(names.TL_INPUT))
        observation.arguments = _question(observation.arguments)
        _nodes(observation, output)
    elif entity.endswith("Embedding"):
        observation.kind, observation.name, observation.weak = "embedding", entity, False
    elif isinstance(said.get("response"), dict) and fields.text(said.get("current_agent_name")):
        _as_agent(observation, str(said["current_agent_name"]))
    return observation


def _tool(observation: Observation, source: Source, name: str, said: dict[str, Json]) -> Observation:
    attributes = source.attributes
    call = fields.begin(source, "tool", name)
    call.session, call.agent = observation.session, observation.agent
    given = attributes.get(names.TL_TOOL_ARGUMENTS)
    fields.take_arguments(call, given if given is not None else attributes.get(names.TL_INPUT))
    call.call_id = fields.text(said.get("tool_id"))
    fields.take_result(call, said.get("tool_output", said) if said else None)
    genai.as_handoff(call)
    return call


def _nodes(observation: Observation, output: Json) -> None:
    """What was found: each node's text."""
    documents = [structured(item) for item in output] if isinstance(output, list) else []
    inner = [d["node"] if isinstance(d.get("node"), dict) else d for d in documents if isinstance(d, dict)]
    observation.texts = tuple(str(node["text"]) for node in inner if node.get("text"))
    observation.result = documents or None
