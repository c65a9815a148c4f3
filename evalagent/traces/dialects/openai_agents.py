"""OpenAI Agents under OpenTelemetry's own first instrumentor (`openai-agents-v2`).

Seen: opentelemetry-instrumentation-openai-agents-v2 0.1.0 with openai-agents 0.24. It calls every agent `OpenAI Agent`
but where the agent's own span begins, tells a call as the Python text of the SDK's object, and leaves calls and results
out of histories. Its successor (`genai-openai-agents` 1.3b0) writes GenAI spans, without model calls and hand-offs.
"""

import ast

from evalagent.model import Message, Span, ToolRequest
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_SCOPE = "opentelemetry.instrumentation.openai_agents"
_ANYBODY = "OpenAI Agent"
_CALL = "ResponseFunctionToolCall("
_LONGEST = 20_000


def speaks(span: Span) -> bool:
    """Its scope; OpenLLMetry, which has the same, never names the system."""
    return span.scope == _SCOPE and names.SYSTEM in span.attributes and names.TL_PREFIX not in fields.families(span)


def observe(source: Source) -> Observation:
    """A span of the instrumentor."""
    attributes = source.attributes
    observation = genai.observe(source)
    operation = attributes.get(names.OPERATION)
    if operation == "agent_handoff":
        target = fields.text(attributes.get(names.TL_HANDOFF_TO))
        observation.kind, observation.weak = "handoff", False
        observation.name, observation.target = target or "handoff", target
        observation.agent = fields.text(attributes.get(names.TL_HANDOFF_FROM))
    elif operation == "guardrail_check":
        observation.kind, observation.weak = "guardrail", False
        observation.name = fields.text(attributes.get(names.GUARDRAIL_NAME)) or "guardrail"
    elif operation == "invoke_agent" and names.AGENT_NAME not in attributes:
        observation.kind = "workflow"
    if observation.agent == _ANYBODY:
        observation.agent = None
    if observation.kind == "llm" and observation.reply is not None:
        observation.reply = source.reader.intern(_called(observation.reply))
    elif observation.answer is not None and _CALL in observation.answer:
        observation.answer = _called(Message("assistant", observation.answer)).text or None
    return observation


def _called(reply: Message) -> Message:
    """The reply with its calls out of their Python text, one a line."""
    if _CALL not in reply.text:
        return reply
    texts: list[str] = []
    requests = list(reply.requests)
    for line in reply.text.splitlines():
        request = _request(line) if line.startswith(_CALL) else None
        if request is None:
            texts.append(line)
        else:
            requests.append(request)
    return Message(reply.role, "\n".join(texts), tuple(requests), reply.answers)


def _request(line: str) -> ToolRequest | None:
    """The call that the text of an object tells; None where it cannot be read (it was cut)."""
    if len(line) > _LONGEST:
        return None
    try:
        call = ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(call, ast.Call):
        return None
    said = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    name, given, identity = said.get("name"), said.get("arguments"), said.get("call_id")
    if not isinstance(name, str) or not isinstance(given, str):
        return None
    parsed = parse(given)
    return ToolRequest(identity if isinstance(identity, str) else None, name, parsed.value, parsed.truncated)
