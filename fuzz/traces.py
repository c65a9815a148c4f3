"""Traces made of the attribute names that dialects read, with values of every shape: what hypothesis draws from."""

import json

from hypothesis import strategies as st

from evalagent.model import Event, Json, Link, Span
from fuzz.mutating import ATTRIBUTES
from fuzz.seeds import request

_IDS = st.integers(1, 7)
_TRACES = st.sampled_from(["5e" * 16, "5f" * 16])
_TIMES = st.integers(0, 40).map(lambda number: number * 1_000_000) | st.sampled_from([0, 1, (1 << 63) - 1])
_WORDS = st.sampled_from(
    [
        "chat", "execute_tool", "invoke_agent", "handoff", "LLM", "TOOL", "AGENT", "CHAIN", "tool", "llm", "generation",
        "user", "assistant", "system", "find_loan", "transfer_to_desk", "call_1", "call_2", "gpt-4o", "", "5", "true",
        "workflow", "agent", "task", "ai.toolCall", "ai.generateText.doGenerate", "tools/call", "initialize", "1e9",
    ]
)  # fmt: skip
_NAMES = st.sampled_from(
    [
        "chat gpt-4o", "execute_tool find_loan", "invoke_agent desk", "handoff to desk", "desk → clerk.handoff",
        "Tool: x",
        "call_llm", "agent_run [x]", "LangGraph", "RunnableSequence", "ChatOpenAI.chat", "ai.toolCall", "message.send",
        "MCP send tools/call x", "claude_code.tool", "turn", "Step 1", "x", "",
    ]
)  # fmt: skip
_SCOPES = st.sampled_from(
    [
        "", "strands.telemetry.tracer", "gcp.vertex.agent", "agent_framework", "pydantic-ai", "autogen-core", "gen_ai",
        "com.anthropic.sdk.python", "com.anthropic.claude_code.tracing", "opentelemetry.instrumentation.openai.v1",
        "openinference.instrumentation.langchain",
    ]
)  # fmt: skip
_LEAVES = st.one_of(
    _WORDS, st.none(), st.booleans(), st.integers(-3, 2**40), st.floats(allow_nan=False), st.text(max_size=6)
)
_KEYS = st.sampled_from(
    [
        "role", "content", "parts", "type", "text", "id", "name", "arguments", "tool_calls", "function", "result",
        "response", "input", "output", "messages", "kwargs", "args", "toolUse", "toolResult", "toolUseId", "status",
        "tool_call_id", "input_tokens", "output_tokens", "usage", "error", "data", "lc", "choices", "message", "model",
        "contents", "function_call", "function_response", "langgraph_node", "langgraph_step", "thread_id", "isError",
    ]
)  # fmt: skip
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=10
)
_CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.just("tool_call"),
            "id": st.sampled_from(["call_1", "call_2", None]),
            "name": _WORDS,
            "arguments": _VALUES,
        }
    ),
    max_size=2,
)
_ANSWERS = st.lists(
    st.fixed_dictionaries(
        {"type": st.just("tool_call_response"), "id": st.sampled_from(["call_1", "call_2", None]), "response": _VALUES}
    ),
    max_size=2,
)
_MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.just("assistant"), "parts": _CALLS}),
        st.fixed_dictionaries({"role": st.just("tool"), "parts": _ANSWERS}),
        st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "assistant"]), "content": _WORDS | _VALUES}),
        _VALUES,
    ),
    max_size=4,
)
_TOLD = st.one_of(_WORDS, _VALUES, _MESSAGES)
"""What an attribute says: plain, structured, or as JSON text."""
_SAID = st.one_of(_TOLD, _TOLD.map(json.dumps), _TOLD.map(lambda value: json.dumps(value)[:-2]))
_ATTRIBUTES = st.dictionaries(
    st.sampled_from(ATTRIBUTES)
    | st.builds(
        "{}{}{}".format,
        st.sampled_from(["llm.input_messages.", "llm.output_messages.", "gen_ai.prompt.", "gen_ai.completion."]),
        st.integers(0, 2),
        st.sampled_from([".message.content", ".message.role", ".role", ".content", ".tool_calls.0.name", ""]),
    ),
    _SAID,
    max_size=8,
)
_EVENTS = st.builds(
    Event,
    st.sampled_from(["exception", "gen_ai.choice", "gen_ai.user.message", "gen_ai.tool.message", "x"]),
    _TIMES,
    st.dictionaries(
        st.sampled_from(["exception.type", "exception.message", "content", "message", "role", "id"]), _SAID, max_size=3
    ),
)


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    """A few spans of up to two traces; parents, links and times may make no sense."""
    found = []
    for _ in range(draw(st.integers(1, 7))):
        parent = draw(st.none() | _IDS)
        links = draw(st.lists(st.builds(lambda trace, span: Link(trace, f"{span:016x}"), _TRACES, _IDS), max_size=2))
        found.append(
            Span(
                draw(_TRACES),
                f"{draw(_IDS):016x}",
                None if parent is None else f"{parent:016x}",
                draw(_NAMES),
                draw(_TIMES),
                draw(_TIMES) or None,
                draw(st.sampled_from(["unset", "ok", "error"])),
                draw(st.sampled_from(["", "it broke"])),
                draw(_ATTRIBUTES),
                tuple(draw(st.lists(_EVENTS, max_size=2))),
                tuple(links),
                draw(_SCOPES),
                resource=draw(st.dictionaries(st.sampled_from(["service.name", "x"]), _WORDS, max_size=1)),
            )
        )
    return found


def written(found: list[Span]) -> bytes:
    """The spans as a file."""
    value: Json = request(found, [])
    return json.dumps(value).encode("utf-8", "replace")
