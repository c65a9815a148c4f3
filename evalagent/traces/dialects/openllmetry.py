"""OpenLLMetry (Traceloop) 0.44 to 0.62: decorators, LangGraph, CrewAI, OpenAI Agents, MCP, plain SDKs."""

import re
from collections.abc import Mapping

from evalagent.model import Json, Span, Tokens
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.messages import nested
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import structured

_SCOPES = "opentelemetry.instrumentation."
_MCP_SCOPE = "opentelemetry.instrumentation.mcp"
_KINDS = {"workflow": "workflow", "agent": "agent", "task": "node", "tool": "tool", "handoff": "handoff"}
_SUFFIX = re.compile(r"\.(workflow|agent|task|tool|handoff)$")
_MCP_NOISE = ("ResponseStreamWriter", "RequestStreamWriter")
_USAGE = re.compile(r"(?<!\w)(?P<key>prompt_tokens|completion_tokens)=(?P<value>\d+)")


def speaks(span: Span) -> bool:
    """Any `traceloop.*` key, the old request type, or the indexed prompts that only it writes."""
    attributes = span.attributes
    if names.TL_REQUEST_TYPE in attributes or names.TL_HANDOFF_FROM in attributes:
        return True
    if span.scope.startswith(_MCP_SCOPE) or names.TL_WORKFLOW_EDGES in attributes:
        return True
    return bool(fields.families(span) & {names.TL_PREFIX, "gen_ai.prompt.0.", "gen_ai.completion.0."})


def _kind(span: Span) -> tuple[str, str]:
    attributes = span.attributes
    said = attributes.get(names.TL_KIND)
    operation = attributes.get(names.OPERATION)
    if span.name in _MCP_NOISE or span.name.endswith(".mcp"):
        return "ignored", "mcp_protocol"
    if isinstance(operation, str) and operation and operation not in ("invoke_agent", "execute_task"):
        return genai.kind_of(span)
    if isinstance(said, str) and said in _KINDS:
        return _KINDS[said], ""
    if operation == "execute_task":
        return "node", ""
    if operation == "invoke_agent":
        return "agent", ""
    request = attributes.get(names.TL_REQUEST_TYPE)
    if request in ("embedding", "embeddings"):
        return "embedding", ""
    if request == "rerank":
        return "reranker", ""
    if request or names.REQUEST_MODEL in attributes:
        return "llm", ""
    if span.scope.startswith(_MCP_SCOPE):
        return "ignored", "mcp_protocol"
    return "plumbing", ""


def observe(source: Source) -> Observation:
    """An OpenLLMetry span."""
    span, attributes = source.span, source.attributes
    kind, reason = _kind(span)
    observation = fields.begin(source, kind, span.name)
    observation.reason = reason
    observation.place = fields.place(attributes, names.TL_PROPERTIES)
    for key in ("session_id", "thread_id"):
        observation.session = observation.session or fields.text(attributes.get(names.TL_PROPERTIES + key))
    observation.agent = fields.text(attributes.get(names.AGENT_NAME)) or fields.text(
        attributes.get(names.TL_PROPERTIES + "lc_agent_name")
    )
    if kind in ("llm", "embedding"):
        _model_call(observation, source)
    elif kind in ("tool", "handoff", "retrieval", "reranker", "memory"):
        _tool_call(observation, source)
    elif kind not in ("plumbing", "ignored"):
        _container(observation, source)
    return observation


def _model_call(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    genai.model_call(observation, source)
    if not observation.messages:
        observation.messages = source.reader.indexed(attributes, "gen_ai.prompt.", "user")
    if observation.reply is None:
        replies = source.reader.indexed(attributes, "gen_ai.completion.", "assistant")
        observation.reply = source.reader.joined(replies)
    if not observation.tools:
        pairs = [(k[len(names.TL_FUNCTIONS) :], v) for k, v in attributes.items() if k.startswith(names.TL_FUNCTIONS)]
        shape = nested(pairs)
        if pairs:
            observation.tools = source.reader.tools([shape[key] for key in sorted(shape, key=lambda k: (len(k), k))])


def _tool_call(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    entity = fields.text(attributes.get(names.TL_NAME))
    own = fields.text(attributes.get(names.TOOL_NAME)) or entity
    observation.name = own or _SUFFIX.sub("", source.span.name).removeprefix("execute_tool ")
    observation.call_id = fields.text(attributes.get(names.TOOL_CALL_ID))
    fields.take_arguments(observation, fields.first(attributes, (names.TOOL_ARGUMENTS, names.TL_INPUT)))
    fields.take_result(observation, fields.first(attributes, (names.TOOL_RESULT, names.TL_OUTPUT)), encoded=True)
    given = observation.arguments
    alone = given.get("args") if isinstance(given, dict) and len(given) == 1 else None
    if isinstance(alone, list) and len(alone) == 1 and isinstance(structured(alone[0]), dict):
        given = observation.arguments = structured(alone[0])  # LangChain.js hands a tool its arguments as one text
    if isinstance(given, dict) and isinstance(given.get("arguments"), dict) and "name" in given:
        observation.arguments = given["arguments"]
    genai.as_handoff(observation, attributes.get(names.TL_HANDOFF_TO))
    if observation.kind == "handoff" and fields.handoff_span(source.span.name):
        target = fields.handoff_target(source.span.name, None)
        observation.target = None if target == "unknown" else target
        observation.name = own or target or observation.name


def _container(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    entity = fields.first(attributes, (names.TL_TASK_NAME, names.TL_NAME))
    if observation.kind == "agent":
        entity = attributes.get(names.AGENT_NAME) or entity
    observation.name = fields.text(entity) or _SUFFIX.sub("", source.span.name)
    if observation.kind == "agent":
        observation.agent = observation.name
    observation.weak = observation.kind in ("node", "turn")
    observation.tokens, observation.aggregated = fields.tokens(attributes), True
    crew = attributes.get(names.TL_CREW_USAGE)
    if observation.tokens is None and isinstance(crew, str):
        observation.tokens = _crew_usage(crew)
    observation.graph = genai.static_edges(attributes.get(names.TL_WORKFLOW_EDGES))
    given = fields.first(attributes, (names.TL_TASK_INPUT, names.TL_INPUT))
    reply = fields.first(attributes, (names.TL_TASK_OUTPUT, names.TL_OUTPUT, names.TL_CREW_RESULT))
    observation.task, observation.answer = fields.asked(_inner(given)), fields.answered(_inner(reply))


def _inner(value: Json) -> Json:
    value = structured(value)
    if isinstance(value, Mapping) and "inputs" in value:
        value = value["inputs"]
    elif isinstance(value, Mapping) and "outputs" in value:
        value = value["outputs"]
    return value


def _crew_usage(text: str) -> Tokens | None:
    found = {match["key"]: int(match["value"]) for match in _USAGE.finditer(text[:2000])}
    if not found:
        return None
    return Tokens(found.get("prompt_tokens"), found.get("completion_tokens"))
