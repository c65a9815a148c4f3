"""OpenInference (Arize): LangChain, OpenAI Agents, smolagents, CrewAI, Agno, AutoGen, LlamaIndex and others."""

from collections.abc import Mapping

from evalagent.model import Json, Message, Span, Tokens
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.messages import nested
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse, structured

_KINDS = {
    "LLM": "llm",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
    "EMBEDDING": "embedding",
    "RERANKER": "reranker",
    "GUARDRAIL": "guardrail",
    "EVALUATOR": "other",
    "AGENT": "agent",
    "CHAIN": "node",
    "PROMPT": "plumbing",
    "DECISION": "node",
    "UNKNOWN": "node",
}
_RETOLD = ("pydantic-ai", "agent_framework")
"""Frameworks whose own spans a processor of OpenInference tells again beside what they said, and tells less."""
_NO_RESPONSE = "__fake_id__"
"""What OpenAI Agents calls a response that no server named."""
_USAGE = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"), ("cache_read_input_tokens",), ())
"""Usage as OpenAI and Anthropic write it in a raw response, where the instrumentor counted none."""
_AUTOGEN = "openinference.instrumentation.autogen"
_TURNS = ("Step ", "turn", "execute_event_loop_cycle")


def speaks(span: Span) -> bool:
    """Its own kind, or (where a limit dropped that, the oldest attribute) the keys that only it has."""
    attributes = span.attributes
    if span.scope in _RETOLD:
        return False
    return (
        names.OI_KIND in attributes
        or names.OI_TOKENS_PROMPT in attributes
        or names.OI_MODEL in attributes
        or names.OI_TOOL_NAME in attributes
        or names.OI_EMBEDDING_MODEL in attributes
        or bool(fields.families(span) & {names.OI_INPUT_MESSAGES, names.OI_OUTPUT_MESSAGES})
    )


def _kind(span: Span) -> str:
    said = span.attributes.get(names.OI_KIND)
    attributes = span.attributes
    if isinstance(said, str):
        kind = _KINDS.get(said.upper(), "node")
    elif names.OI_TOOL_NAME in attributes:
        kind = "tool"
    elif names.OI_EMBEDDING_MODEL in attributes:
        kind = "embedding"
    elif "llm." in fields.families(span):
        kind = "llm"
    else:
        kind = "node"
    if kind == "agent" and (names.OI_TOOL_NAME in attributes or names.OI_TOOL_DESCRIPTION in attributes):
        return "tool"
    return kind


def observe(source: Source) -> Observation:
    """An OpenInference span."""
    span, attributes = source.span, source.attributes
    kind = _kind(span)
    observation = fields.begin(source, kind, span.name)
    metadata = parse(attributes.get(names.OI_METADATA)).value
    if isinstance(metadata, dict):
        observation.place = fields.place(metadata)
        observation.agent = fields.text(metadata.get("lc_agent_name"))
        observation.session = observation.session or fields.text(metadata.get("session_id"))
        observation.session = observation.session or observation.place.thread
    observation.agent = fields.text(attributes.get(names.OI_AGENT_NAME)) or observation.agent
    if kind == "llm":
        _model_call(observation, source)
    elif kind == "tool":
        _tool_call(observation, source)
    elif kind in ("retrieval", "reranker"):
        _retrieval(observation, source)
    elif kind == "embedding":
        observation.model = fields.text(attributes.get(names.OI_EMBEDDING_MODEL))
        observation.name = observation.model or span.name
        observation.tokens = _tokens(attributes)
        observation.arguments = _embedded(attributes)
    elif kind in ("guardrail", "other"):
        fields.take_arguments(observation, attributes.get(names.OI_INPUT))
        fields.take_result(observation, attributes.get(names.OI_OUTPUT))
    else:
        _container(observation, source)
    return observation


def _tokens(attributes: Mapping[str, Json]) -> Tokens | None:
    """As reported; a prompt of no tokens is none: AutoGen writes 0 where a stream told no usage."""
    found = fields.tokens(
        attributes,
        (names.OI_TOKENS_PROMPT,),
        (names.OI_TOKENS_COMPLETION,),
        (names.OI_TOKENS_CACHE_READ,),
        (names.OI_TOKENS_CACHE_WRITE,),
    )
    return None if found is not None and found.input == 0 and not found.output else found


def _model_call(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    reader = source.reader
    settings = parse(attributes.get(names.OI_PARAMETERS))
    parameters = settings.value
    asked = parameters.get("model") if isinstance(parameters, dict) else None
    observation.model = fields.text(attributes.get(names.OI_MODEL)) or fields.text(asked)
    observation.name = fields.text(asked) or observation.model or source.span.name
    observation.tokens = _tokens(attributes)
    output = structured(attributes.get(names.OI_OUTPUT))
    if isinstance(output, list) and len(output) == 1 and isinstance(output[0], dict) and "output" in output[0]:
        output = output[0]  # OpenAI Agents: what a stream of Chat Completions came to, as a response
    if isinstance(output, dict):
        observation.response_id = fields.text(output.get("id")) or fields.langchain_id(output)
        if observation.response_id == _NO_RESPONSE:
            observation.response_id = None
        if observation.tokens is None and isinstance(output.get("usage"), dict):
            observation.tokens = fields.tokens(output["usage"], *_USAGE)
    given = reader.indexed(attributes, names.OI_INPUT_MESSAGES, "user")
    replies = reader.indexed(attributes, names.OI_OUTPUT_MESSAGES, "assistant")
    if not given:
        given = _plain_prompt(observation, source)
    if not replies and attributes.get(names.OI_OUTPUT) is not None:
        replies = _plain_reply(observation, source, output)
    observation.messages = given
    observation.reply = reader.joined(replies)
    declared = [value for key, value in attributes.items() if key.startswith(names.OI_TOOLS)]
    if source.span.scope.startswith(_AUTOGEN):
        return  # it lists the hand-offs alone, and the tools are more
    if names.OI_TOOL_LIST in attributes:
        observation.tools = reader.tools(attributes[names.OI_TOOL_LIST])
    elif declared:
        observation.tools = reader.tools(declared)
    elif isinstance(parameters, dict) and parameters.get("tools") and not settings.truncated:
        observation.tools = reader.tools(parameters["tools"])


def _plain_prompt(observation: Observation, source: Source) -> tuple[Message, ...]:
    attributes = source.attributes
    prompts = attributes.get(names.OI_PROMPTS)
    if prompts is not None:
        return source.reader.many(
            [{"role": "user", "content": str(p)} for p in prompts] if isinstance(prompts, list) else prompts
        )[0]
    value = attributes.get(names.OI_INPUT)
    if value is None:
        return ()
    parsed = parse(value)
    observation.truncated = observation.truncated or parsed.truncated
    inner = parsed.value
    if isinstance(inner, dict):
        inner = inner.get("messages", inner.get("input", inner.get("prompt", inner.get("contents"))))
    if inner is None:
        inner = value
    return source.reader.many(inner, "user")[0]


def _plain_reply(observation: Observation, source: Source, output: Json) -> tuple[Message, ...]:
    value = output
    if isinstance(value, dict):
        for key in ("choices", "generations", "message", "output", "content"):
            if value.get(key):
                value = value[key]
                break
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    found, cut = source.reader.many(value if value else source.attributes.get(names.OI_OUTPUT), "assistant")
    observation.truncated = observation.truncated or cut
    return found


def _tool_call(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    observation.name = fields.text(attributes.get(names.OI_TOOL_NAME)) or source.span.name
    observation.call_id = fields.text(fields.first(attributes, (*names.OI_TOOL_CALL_IDS, names.OI_TOOL_ID)))
    given = attributes.get(names.OI_INPUT)
    if given is None:
        declared = parse(attributes.get(names.OI_TOOL_PARAMETERS)).value
        given = declared if isinstance(declared, dict) and not ({"type", "properties"} & set(declared)) else None
    call = structured(given)
    if isinstance(call, dict) and call.get("type") == "tool_call" and "args" in call:
        observation.call_id = observation.call_id or fields.text(call.get("id"))
        given = call["args"]
    if fields.handoff_span(observation.name) or fields.handoff_span(source.span.name):
        observation.kind = "handoff"
        observation.target = fields.handoff_target(source.span.name, None)
    fields.take_arguments(observation, given)
    fields.take_result(observation, attributes.get(names.OI_OUTPUT))
    if observation.target is None:
        genai.as_handoff(observation)
    if isinstance(observation.arguments, dict) and observation.target is None:
        observation.target = fields.text(observation.arguments.get("coworker"))  # CrewAI


def _embedded(attributes: Mapping[str, Json]) -> Json:
    """The texts that were embedded."""
    found = [
        (int(number), value)
        for key, value in attributes.items()
        if key.startswith(names.OI_EMBEDDINGS) and key.endswith(".embedding.text")
        for number in [key[len(names.OI_EMBEDDINGS) :].partition(".")[0]]
        if number.isdecimal() and len(number) < 10
    ]
    texts = [value for _, value in sorted(found, key=lambda pair: pair[0])]
    return texts[0] if len(texts) == 1 else texts or None


def _retrieval(observation: Observation, source: Source) -> None:
    attributes = source.attributes
    fields.take_arguments(observation, attributes.get(names.OI_INPUT) or attributes.get("reranker.query"))
    pairs = [
        (key[len(prefix) :], value)
        for prefix in (names.OI_DOCUMENTS, names.OI_RERANKER_DOCUMENTS)
        for key, value in attributes.items()
        if key.startswith(prefix)
    ]
    shape = nested(pairs)
    items = [shape[key] for key in sorted(shape, key=lambda k: (len(k), k))]
    documents = [item.get("document", item) for item in items if isinstance(item, dict)]
    observation.texts = tuple(str(d["content"]) for d in documents if isinstance(d, dict) and d.get("content"))
    if documents:
        observation.result = documents
    else:
        fields.take_result(observation, attributes.get(names.OI_OUTPUT))


def _container(observation: Observation, source: Source) -> None:
    span, attributes = source.span, source.attributes
    place = observation.place
    if observation.kind == "agent" and place.node == span.name and observation.agent != span.name:
        observation.kind = "node"
    elif observation.kind == "node" and observation.agent == span.name:
        observation.kind = "agent"  # LangChain 1.x: the graph that an agent is; the instrumentor goes by its name
    if span.name.startswith(_TURNS):
        observation.kind = "turn"
    if observation.kind == "agent" and span.scope.endswith("openai_agents") and names.OI_NODE not in attributes:
        observation.kind = "workflow"  # OpenAI Agents: the whole run, which the instrumentor calls an agent too
        observation.name = span.name
    if observation.kind == "agent":
        observation.name = (
            fields.text(attributes.get(names.OI_AGENT_NAME))
            or fields.text(attributes.get(names.AGENT_NAME))
            or fields.text(attributes.get(names.OI_NODE_NAME))
            or (span.name.partition(".")[0] if "." in span.name else span.name)
        )
        node = fields.text(attributes.get(names.OI_NODE))
        if node and names.OI_AGENT_NAME not in attributes and "." in span.name:
            observation.name = node
        observation.agent = observation.name
    elif place.node is None and span.parent_id is None and observation.kind == "node":
        observation.kind = "workflow"
    observation.weak = observation.kind in ("node", "turn")
    observation.node_id = fields.text(attributes.get(names.OI_NODE)) if observation.kind != "turn" else None
    observation.follows = fields.text(attributes.get(names.OI_NODE_PARENT))
    observation.tokens, observation.aggregated = _tokens(attributes), True
    observation.task = fields.asked(attributes.get(names.OI_INPUT))
    observation.answer = fields.answered(attributes.get(names.OI_OUTPUT))
