"""Langfuse 5.x OpenTelemetry spans."""

import re

from evalagent.model import Json, Span, Tokens
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_KINDS = {
    "generation": "llm",
    "agent": "agent",
    "tool": "tool",
    "chain": "node",
    "retriever": "retrieval",
    "embedding": "embedding",
    "evaluator": "other",
    "guardrail": "guardrail",
    "event": "plumbing",
    "span": "node",
}
_INTERRUPTS = ("(Interrupt(", "Interrupt(", "GraphInterrupt(", "[Interrupt(")
_IN_MEMORY = re.compile(r"<[\w.]{1,200} object at 0x[0-9a-fA-F]+>\s*$")
_INPUT = ("input", "prompt_tokens", "input_tokens", "promptTokens", "inputTokens")
_OUTPUT = ("output", "completion_tokens", "output_tokens", "completionTokens", "outputTokens")
_READ = ("input_cached_tokens", "cache_read_input_tokens", "input_cache_read")
_WRITE = ("cache_creation_input_tokens", "input_cache_creation")


def speaks(span: Span) -> bool:
    """Its observation type."""
    return names.LF_KIND in span.attributes


def observe(source: Source) -> Observation:
    """A Langfuse observation."""
    span, attributes = source.span, source.attributes
    kind = _KINDS.get(str(attributes.get(names.LF_KIND)).lower(), "node")
    observation = fields.begin(source, kind, span.name)
    given, output = attributes.get(names.LF_INPUT), attributes.get(names.LF_OUTPUT)
    _graph(observation, source)
    if attributes.get(names.LF_LEVEL) == "ERROR" and observation.error is None and not observation.interrupted:
        observation.error = fields.text(attributes.get(names.LF_STATUS)) or "error"
    usage = parse(attributes.get(names.LF_USAGE)).value
    if isinstance(usage, dict):
        observation.tokens = fields.tokens(usage, _INPUT, _OUTPUT, _READ, _WRITE)
    if kind in ("llm", "embedding"):
        observation.model = fields.text(attributes.get(names.LF_MODEL))
        observation.name = observation.model or span.name
        if kind == "llm":
            messages(observation, source, given, output)
        cost = parse(attributes.get(names.LF_COST)).value
        if isinstance(cost, dict):
            observation.cost_usd = fields.number(cost.get("total"))
    elif kind in ("tool", "retrieval", "guardrail", "other"):
        fields.take_arguments(observation, given)
        fields.take_result(observation, output, encoded=True)
        found = observation.result
        if kind == "retrieval" and isinstance(found, list):
            observation.texts = tuple(t for t in (_text_of(item) for item in found) if t)
        genai.as_handoff(observation)
    else:
        if kind == "node" and observation.agent == span.name:
            observation.kind = kind = "agent"
        observation.weak = kind == "node"
        observation.task, observation.answer = fields.asked(given), fields.answered(output)
        observation.aggregated = True
    return observation


def _graph(observation: Observation, source: Source) -> None:
    """What the LangChain handler copies of LangGraph's metadata, each value JSON (3.x: as it is), and a graph that
    waits for a person, which it tells as a message that is no error."""
    size = len(names.LF_METADATA)
    metadata = {
        key[size:]: parse(value).value for key, value in source.attributes.items() if key.startswith(names.LF_METADATA)
    }
    if metadata:
        observation.place = fields.place(metadata)
        observation.agent = fields.text(metadata.get("lc_agent_name"))
        observation.session = observation.session or observation.place.thread
    said = fields.text(source.attributes.get(names.LF_STATUS))
    if said is not None and said.startswith(_INTERRUPTS):
        observation.interrupted, observation.error = True, None


def messages(observation: Observation, source: Source, given: Json, output: Json) -> None:
    """A generation's messages, in whatever shape its SDK was given them."""
    parsed, answered = parse(given), parse(output)
    asked: Json = parsed.value
    system: Json = None
    if isinstance(asked, dict):
        if isinstance(asked.get("tools"), list):
            observation.tools = source.reader.tools(asked["tools"])
        system = next((asked[k] for k in ("system", "instructions") if told(asked.get(k))), None)
        asked = next((asked[k] for k in ("messages", "prompt", "input", "contents") if told(asked.get(k))), asked)
    reply: Json = answered.value
    if isinstance(reply, dict):
        for key in ("choices", "generations", "messages", "message"):
            if reply.get(key):
                reply = reply[key]
                break
        else:
            reply = reply["output"] if isinstance(reply.get("output"), list) else reply
    while isinstance(reply, list) and len(reply) == 1 and isinstance(reply[0], list):
        reply = reply[0]
    fields.take_messages(observation, source, asked, reply if told(reply) else None, system)
    observation.truncated = observation.truncated or parsed.truncated or answered.truncated


def told(value: Json) -> bool:
    """Whether a value was written and not only the place of an object in a program's memory: what an SDK was not given,
    or a stream that nobody had read yet."""
    return value is not None and not (isinstance(value, str) and bool(_IN_MEMORY.match(value)))


def _text_of(item: Json) -> str | None:
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        return next((item[k] for k in ("content", "text", "page_content") if isinstance(item.get(k), str)), None)
    return None


def usage_of(value: Json) -> Tokens | None:
    """Tokens out of a usage object of any SDK."""
    usage = parse(value).value
    return fields.tokens(usage, _INPUT, _OUTPUT, _READ, _WRITE) if isinstance(usage, dict) else None
