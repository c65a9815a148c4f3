"""OpenTelemetry GenAI semantic conventions, 1.27 and before to 1.42: on spans, in span events, in log records."""

import re
from collections.abc import Sequence
from dataclasses import replace

from evalagent.model import Event, Json, Message, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields
from evalagent.traces.messages import Reader
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import looks_cut, parse

_GOOGLE_SDK = "opentelemetry.instrumentation.google_genai"
_MADE_ID = re.compile(r"_\d+$")
MODEL_CALLS = frozenset({"chat", "generate_content", "text_completion", "completion", "call_llm", "responses"})
_MEMORY = frozenset({"create_memory", "search_memory", "update_memory", "upsert_memory", "delete_memory"})
_KINDS = {
    "embeddings": "embedding",
    "embedding": "embedding",
    "retrieval": "retrieval",
    "rerank": "reranker",
    "execute_tool": "tool",
    "handoff": "handoff",
    "invoke_agent": "agent",
    "process_thread_run": "agent",  # azure-ai-agents
    "start_thread_run": "agent",
    "invoke_swarm": "workflow",
    "invoke_graph": "workflow",
    "invoke_workflow": "workflow",
    "agent_step": "turn",
    "execute_event_loop_cycle": "turn",
    "plan": "llm",
    "guardrail": "guardrail",
}
_SHAPES = frozenset({"content", "tool_calls", "text", "parts", "type", "toolUse", "toolResult", "message"})
_IGNORED = {
    "create_agent": "create_agent",
    "goto": "goto",
    **dict.fromkeys(("create_thread", "create_message", "list_messages", "list_run_steps", "get_thread_run"), "thread"),
}


def speaks(span: Span) -> bool:
    """Anything with an operation, a model or messages of the convention."""
    attributes = span.attributes
    if names.OPERATION in attributes or names.REQUEST_MODEL in attributes or names.INPUT_MESSAGES in attributes:
        return True
    return names.TOOL_NAME in attributes or names.OUTPUT_MESSAGES in attributes


def kind_of(span: Span) -> tuple[str, str]:
    """Kind by operation, and the reason where it is ignored; an operation that nobody knows holds steps or nothing."""
    attributes = span.attributes
    operation = attributes.get(names.OPERATION)
    if not isinstance(operation, str) or not operation:
        if names.TOOL_NAME in attributes:
            return "tool", ""
        return ("llm", "") if names.REQUEST_MODEL in attributes or names.OUTPUT_MESSAGES in attributes else ("node", "")
    if operation in MODEL_CALLS:
        return "llm", ""
    if operation in _MEMORY:
        return "memory", ""
    if operation in _IGNORED:
        return "ignored", _IGNORED[operation]
    return _KINDS.get(operation, "node"), ""


def observe(source: Source) -> Observation:
    """A span of the convention."""
    span, attributes = source.span, source.attributes
    kind, reason = kind_of(span)
    observation = fields.begin(source, kind, span.name)
    observation.reason = reason
    observation.agent = fields.text(attributes.get(names.AGENT_NAME))
    observation.weak = kind in ("node", "turn")
    if kind in ("llm", "embedding"):
        model_call(observation, source)
    elif kind in ("tool", "handoff", "memory"):
        tool_call(observation, source)
    elif kind in ("retrieval", "reranker"):
        observation.name = fields.text(attributes.get("gen_ai.data_source.id")) or span.name
        fields.take_arguments(observation, attributes.get(names.RETRIEVAL_QUERY))
        fields.take_result(observation, attributes.get(names.RETRIEVAL_DOCUMENTS))
    else:
        container(observation, source)
    return observation


def model_call(observation: Observation, source: Source) -> None:
    """Model, tokens, messages wherever this stage of the convention puts them."""
    attributes = source.attributes
    requested = fields.text(attributes.get(names.REQUEST_MODEL))
    answered = fields.text(attributes.get(names.RESPONSE_MODEL))
    observation.model = answered or requested
    observation.name = requested or answered or source.span.name
    observation.tokens = fields.tokens(attributes)
    observation.response_id = fields.text(attributes.get(names.RESPONSE_ID))
    definitions = attributes.get(names.TOOL_DEFINITIONS)
    if definitions is not None:
        observation.tools = source.reader.tools(definitions)
    given = fields.first(attributes, (names.INPUT_MESSAGES, names.PROMPT))
    reply = fields.first(attributes, (names.OUTPUT_MESSAGES, names.COMPLETION))
    system = attributes.get(names.SYSTEM_INSTRUCTIONS)
    fields.take_messages(observation, source, given, reply, system)
    if given is None or reply is None:
        from_events(observation, source, given is None, reply is None)
    if source.span.scope == _GOOGLE_SDK:
        observation.messages = tuple(_without_ids(source.reader, m) for m in observation.messages)
        observation.reply = _without_ids(source.reader, observation.reply) if observation.reply is not None else None


def _without_ids(reader: Reader, message: Message) -> Message:
    """The message without the ids that google-genai's instrumentor makes of a name and the part's place (1.3b0): those
    of results count from another part than those of calls, and come again each turn. Their order is what joins them."""
    if not message.requests and not message.answers:
        return message
    requests = tuple(replace(r, id=None) if _MADE_ID.search(r.id or "") else r for r in message.requests)
    answers = tuple(replace(a, id=None) if _MADE_ID.search(a.id or "") else a for a in message.answers)
    return reader.intern(replace(message, requests=requests, answers=answers))


def from_events(observation: Observation, source: Source, want_input: bool, want_reply: bool) -> None:
    """Messages out of span events or log records, one event a message or one event for several."""
    reader = source.reader
    given: list[Message] = []
    replies: list[Message] = []
    system: list[Message] = []
    for event in map(_opened, source.events):
        body = event.attributes
        if event.name == names.EVENT_DETAILS:
            for key, role, into in (
                (names.SYSTEM_INSTRUCTIONS, "system", system),
                (names.INPUT_MESSAGES, "user", given),
                (names.OUTPUT_MESSAGES, "assistant", replies),
            ):
                if body.get(key) is not None:
                    found, cut = reader.many(body[key], role)
                    into.extend(found)
                    observation.truncated = observation.truncated or cut
        elif event.name == names.EVENT_PROMPT:
            given.extend(reader.many(body.get(names.PROMPT), "user")[0])
        elif event.name == names.EVENT_COMPLETION:
            replies.extend(reader.many(body.get(names.COMPLETION), "assistant")[0])
        elif event.name in names.EVENT_MESSAGES:
            one, cut = message_event(source, event, names.EVENT_MESSAGES[event.name])
            observation.truncated = observation.truncated or cut
            if one is not None:
                given.append(one)
        elif event.name == names.EVENT_CHOICE and not fields.integer(body.get("index")):
            one, cut = message_event(source, event, "assistant")
            observation.truncated = observation.truncated or cut
            if one is not None:
                replies.append(one)
    if want_input and (given or system):
        if system and not (given and given[0] == system[0]):
            given = [*system, *given]
        observation.messages = tuple(given)
    if want_reply and replies:
        observation.reply = reader.joined(replies)


def _opened(event: Event) -> Event:
    """Azure's SDKs and Semantic Kernel write what an event says as one JSON text."""
    told = event.attributes.get(names.EVENT_CONTENT)
    inner = parse(told).value if told is not None else None
    return replace(event, attributes={**event.attributes, **inner}) if isinstance(inner, dict) else event


def message_event(source: Source, event: Event, role: str) -> tuple[Message | None, bool]:
    """The message of one `gen_ai.*.message` or `gen_ai.choice` event, and whether it had been cut."""
    body = event.attributes
    content = body.get("message", body.get("content"))
    cut = False
    if isinstance(content, str) and content[:1] in "[{":
        parsed = parse(content)
        cut = parsed.truncated and looks_cut(content)
        if not isinstance(parsed.value, dict) or _SHAPES & set(parsed.value):
            content = parsed.value  # else a structured answer, which is told as it is
    value: dict[str, Json] = {"role": body.get("role") if isinstance(body.get("role"), str) else role}
    if isinstance(content, dict) and ("content" in content or "tool_calls" in content):
        value = {"role": role, **content}
    else:
        value["content"] = content
        if body.get("tool_calls") is not None:
            value["tool_calls"] = body["tool_calls"]
        identity = body.get("id") or body.get("tool_call_id")
        if role == "tool" and identity:
            value["tool_call_id"] = identity
    message = source.reader.one(value, role)
    return (source.reader.cut_short(message) if cut and message is not None else message), cut


def tool_call(observation: Observation, source: Source) -> None:
    """Name, id, arguments, result; a hand-off where name or transfer attributes say so."""
    attributes = source.attributes
    name = fields.text(attributes.get(names.TOOL_NAME))
    observation.name = name or source.span.name.removeprefix("execute_tool ")
    observation.call_id = fields.text(attributes.get(names.TOOL_CALL_ID))
    fields.take_arguments(observation, attributes.get(names.TOOL_ARGUMENTS))
    fields.take_result(observation, attributes.get(names.TOOL_RESULT), encoded=True)
    if "(merged)" in (observation.name, source.span.name.removeprefix("execute_tool ")):
        observation.kind, observation.reason = "ignored", "merged_tool_response"
        return
    as_handoff(observation, attributes.get(names.TRANSFER_TARGET))
    if names.TRANSFER_MODE in attributes:
        observation.kind = "handoff"


def as_handoff(observation: Observation, target: Json = None) -> None:
    """A tool whose name says so is a hand-off; its target from attribute, name or arguments."""
    if observation.kind in ("tool", "handoff") and (
        observation.kind == "handoff" or fields.is_handoff(observation.name)
    ):
        observation.kind = "handoff"
        observation.target = fields.text(target) or fields.handoff_target(observation.name, observation.arguments)


def container(observation: Observation, source: Source) -> None:
    """Agents, workflows, turns: their name, what they were asked and what they answered."""
    attributes = source.attributes
    name = fields.text(attributes.get(names.AGENT_NAME)) if observation.kind == "agent" else None
    name = name or fields.text(attributes.get(names.WORKFLOW_NAME))
    observation.name = name or source.span.name.removeprefix("invoke_agent ").removeprefix("invoke_workflow ")
    observation.unnamed = name is None and not source.span.name.startswith("invoke_agent ")
    observation.tokens, observation.aggregated = fields.tokens(attributes), True
    observation.model = fields.text(attributes.get(names.RESPONSE_MODEL)) or fields.text(
        attributes.get(names.REQUEST_MODEL)
    )
    reader = source.reader
    given, _ = reader.many(attributes.get(names.INPUT_MESSAGES), "user")
    reply, _ = reader.many(attributes.get(names.OUTPUT_MESSAGES), "assistant")
    if not given and not reply:
        probe = fields.begin(source, "agent", "")
        from_events(probe, source, True, True)
        given, reply = probe.messages, ((probe.reply,) if probe.reply is not None else ())
    observation.task = last_user(given)
    observation.answer = last_text(reply)
    observation.graph = static_edges(attributes.get(names.TL_WORKFLOW_EDGES))


def last_user(messages: Sequence[Message]) -> str | None:
    """The last text that a user said: what stands before it is history."""
    return next((m.text for m in reversed(messages) if m.role == "user" and m.text), None)


def last_text(messages: Sequence[Message]) -> str | None:
    """The last text that is no tool's."""
    return next((m.text for m in reversed(messages) if m.text and m.role == "assistant"), None)


def static_edges(value: Json) -> tuple[str, ...]:
    """`gen_ai.workflow.edges`, `A -> B` each."""
    value = parse(value).value
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
