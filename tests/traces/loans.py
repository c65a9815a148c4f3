"""One small run, told in every dialect: a library's desk renews a loan with two tools, one after the other."""

import json
from collections.abc import Callable, Mapping, Sequence

from evalagent.model import Event, Json, Link, LogRecord, Span

TRACE = "5e" * 16
MS = 1_000_000
TASK = "Please renew my loan of Dune."
ANSWER = "Dune is yours until 22 March."
FIND, RENEW = {"title": "Dune"}, {"loan": "L-7", "weeks": 3}
FOUND, RENEWED = {"loan": "L-7", "due": "1 March"}, "L-7 renewed until 22 March"
TOKENS = [(20, 5), (31, 6), (44, 9)]
MODEL = "gpt-4o-mini"

Told = tuple[list[Span], list[LogRecord]]


def span(
    number: int,
    parent: int | None,
    name: str,
    start: float,
    end: float | None,
    attributes: Mapping[str, Json] | None = None,
    *,
    trace: str = TRACE,
    scope: str = "",
    events: Sequence[Event] = (),
    links: Sequence[Link] = (),
    **more: Json,
) -> Span:
    """A span by number and milliseconds."""
    return Span(
        trace, f"{number:016x}", None if parent is None else f"{parent:016x}", name, round(start * MS),
        None if end is None else round(end * MS), attributes=dict(attributes or {}), scope=scope, events=tuple(events),
        links=tuple(links), **more,
    )  # fmt: skip


def text(value: Json) -> str:
    return json.dumps(value)


def call(number: int, name: str, arguments: Json) -> Json:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": text(arguments)}}


OPENAI: list[Json] = [
    {"role": "system", "content": "You are the desk of a library."},
    {"role": "user", "content": TASK},
    {"role": "assistant", "content": None, "tool_calls": [call(1, "find_loan", FIND)]},
    {"role": "tool", "tool_call_id": "call_1", "content": text(FOUND)},
    {"role": "assistant", "content": None, "tool_calls": [call(2, "renew_loan", RENEW)]},
    {"role": "tool", "tool_call_id": "call_2", "content": RENEWED},
    {"role": "assistant", "content": ANSWER},
]
GENAI: list[Json] = [
    {"role": "user", "parts": [{"type": "text", "content": TASK}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": "find_loan", "arguments": FIND}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": FOUND}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "call_2", "name": "renew_loan", "arguments": text(RENEW)}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_2", "result": RENEWED}]},
    {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"},
]
TURNS = [(2, 10, 20), (4, 30, 40), (6, 50, 60)]
RUNS = [(3, 21, 29, "find_loan", FIND, FOUND), (5, 41, 49, "renew_loan", RENEW, RENEWED)]


def told(
    root: Span,
    model: Callable[[int], tuple[str, dict[str, Json], Sequence[Event]]],
    tool: Callable[[str, Json, Json, int], tuple[str, dict[str, Json], Sequence[Event]]],
    scope: str = "",
) -> list[Span]:
    """The run's five steps under a root; `model` and `tool` give name, attributes and events of each."""
    spans = [root]
    for turn, (number, start, end) in enumerate(TURNS):
        name, attributes, events = model(turn)
        spans.append(span(number, 1, name, start, end, attributes, scope=scope, events=events))
    for order, (number, start, end, name, arguments, result) in enumerate(RUNS):
        span_name, attributes, events = tool(name, arguments, result, order + 1)
        spans.append(span(number, 1, span_name, start, end, attributes, scope=scope, events=events))
    return spans


def usage(turn: int, *keys: str) -> dict[str, Json]:
    return dict(zip(keys, TOKENS[turn], strict=True))


def genai(*, provider: str = "openai", tools: bool = True, scope: str = "") -> Told:
    def model(turn: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        return f"chat {MODEL}", {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL, "gen_ai.provider.name": provider,
            "gen_ai.system_instructions": text([{"type": "text", "content": "You are the desk of a library."}]),
            "gen_ai.input.messages": text(GENAI[: 2 * turn + 1]),
            "gen_ai.output.messages": text(GENAI[2 * turn + 1 : 2 * turn + 2]),
            **usage(turn, "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
        }, ()  # fmt: skip

    def tool(name: str, arguments: Json, result: Json, number: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        return f"execute_tool {name}", {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": f"call_{number}",
            "gen_ai.tool.call.arguments": text(arguments),
            "gen_ai.tool.call.result": result if isinstance(result, str) else text(result),
        }, ()  # fmt: skip

    root = span(1, None, "invoke_agent desk", 0, 70, {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk",
        "gen_ai.input.messages": text(GENAI[:1]), "gen_ai.output.messages": text(GENAI[-1:]),
        "gen_ai.usage.input_tokens": 95, "gen_ai.usage.output_tokens": 20,
    }, scope=scope)  # fmt: skip
    spans = told(root, model, tool, scope)
    return ([s for s in spans if tools or "tool" not in s.name]), []


def genai_logs() -> Told:
    logs: list[LogRecord] = []
    for turn, (number, start, end) in enumerate(TURNS):
        for at, message in enumerate(OPENAI[: 2 * turn + 2]):
            body = {
                key: value
                for key, value in message.items()
                if key not in ("role", "tool_call_id") and value is not None
            }
            if "tool_call_id" in message:
                body["id"] = message["tool_call_id"]
            logs.append(LogRecord(TRACE, f"{number:016x}", start * MS + at, f"gen_ai.{message['role']}.message", body))
        choice = {"index": 0, "finish_reason": "stop", "message": OPENAI[2 * turn + 2]}
        logs.append(LogRecord(TRACE, f"{number:016x}", end * MS, "gen_ai.choice", choice))
    spans, _ = genai()
    silent = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions")
    bare = [
        span(int(s.span_id, 16), int(s.parent_id, 16) if s.parent_id else None, s.name, s.start_ns / MS, s.end_ns / MS,
             {k: v for k, v in s.attributes.items() if k not in silent})
        for s in spans if s.end_ns is not None
    ]  # fmt: skip
    return bare, logs


def openinference() -> Told:
    def flat(prefix: str, messages: Sequence[Json]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for at, message in enumerate(messages):
            base = f"{prefix}.{at}.message."
            found[base + "role"] = message["role"]
            if message.get("content"):
                found[base + "content"] = message["content"]
            if message.get("tool_call_id"):
                found[base + "tool_call_id"] = message["tool_call_id"]
            for n, asked in enumerate(message.get("tool_calls", ())):
                found[f"{base}tool_calls.{n}.tool_call.id"] = asked["id"]
                found[f"{base}tool_calls.{n}.tool_call.function.name"] = asked["function"]["name"]
                found[f"{base}tool_calls.{n}.tool_call.function.arguments"] = asked["function"]["arguments"]
        return found

    def model(turn: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        return "ChatCompletion", {
            "openinference.span.kind": "LLM", "llm.model_name": MODEL,
            **flat("llm.input_messages", OPENAI[: 2 * turn + 2]),
            **flat("llm.output_messages", OPENAI[2 * turn + 2 : 2 * turn + 3]),
            **usage(turn, "llm.token_count.prompt", "llm.token_count.completion"),
        }, ()  # fmt: skip

    def tool(name: str, arguments: Json, result: Json, number: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        content = result if isinstance(result, str) else text(result)
        data = {"content": content, "name": name, "tool_call_id": f"call_{number}", "status": "success"}
        message = {"type": "tool", "data": data}
        return name, {
            "openinference.span.kind": "TOOL", "tool.name": name, "input.value": text(arguments),
            "output.value": text(message), "output.mime_type": "application/json",
        }, ()  # fmt: skip

    root = {"openinference.span.kind": "AGENT", "input.value": TASK, "output.value": ANSWER}
    return told(span(1, None, "desk", 0, 70, root), model, tool), []


def openllmetry_old() -> Told:
    def flat(prefix: str, messages: Sequence[Json]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for at, message in enumerate(messages):
            found[f"{prefix}.{at}.role"] = message["role"]
            for key in ("content", "tool_call_id"):
                if message.get(key):
                    found[f"{prefix}.{at}.{key}"] = message[key]
            for n, asked in enumerate(message.get("tool_calls", ())):
                found[f"{prefix}.{at}.tool_calls.{n}.id"] = asked["id"]
                found[f"{prefix}.{at}.tool_calls.{n}.name"] = asked["function"]["name"]
                found[f"{prefix}.{at}.tool_calls.{n}.arguments"] = asked["function"]["arguments"]
        return found

    def model(turn: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        return "openai.chat", {
            "llm.request.type": "chat", "gen_ai.request.model": MODEL, "traceloop.workflow.name": "desk",
            **flat("gen_ai.prompt", OPENAI[: 2 * turn + 2]),
            **flat("gen_ai.completion", OPENAI[2 * turn + 2 : 2 * turn + 3]),
            **usage(turn, "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
        }, ()  # fmt: skip

    def tool(name: str, arguments: Json, result: Json, number: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        return f"{name}.tool", {
            "traceloop.span.kind": "tool", "traceloop.entity.name": name,
            "traceloop.entity.input": text({"args": [], "kwargs": arguments}), "traceloop.entity.output": text(result),
        }, ()  # fmt: skip

    root = {"traceloop.span.kind": "agent", "traceloop.entity.name": "desk",
            "traceloop.entity.input": text({"args": [], "kwargs": {"question": TASK}}),
            "traceloop.entity.output": text(ANSWER)}  # fmt: skip
    return told(span(1, None, "desk.agent", 0, 70, root), model, tool), []


def openllmetry_langchain() -> Told:
    spans, _ = genai()
    again = []
    for one in spans:
        attributes = dict(one.attributes)
        attributes["traceloop.workflow.name"] = "desk"
        if "tool" in one.name:
            result = attributes["gen_ai.tool.call.result"]
            number = attributes.pop("gen_ai.tool.call.id")
            inner = {"content": result, "type": "tool", "tool_call_id": number, "status": "success"}
            names = ["langchain", "schema", "messages", "ToolMessage"]
            packed = {"lc": 1, "type": "constructor", "id": names, "kwargs": inner}
            arguments = json.loads(attributes["gen_ai.tool.call.arguments"])
            attributes["gen_ai.tool.call.result"] = text({"output": packed, "kwargs": {"color": "green"}})
            attributes["gen_ai.tool.call.arguments"] = text(
                {"input_str": repr(arguments), "tags": [], "metadata": {}, "inputs": arguments}
            )
        again.append(
            span(int(one.span_id, 16), int(one.parent_id, 16) if one.parent_id else None, one.name,
                 one.start_ns / MS, (one.end_ns or 0) / MS, attributes)
        )  # fmt: skip
    return again, []


def bedrock(message: Json) -> list[Json]:
    blocks: list[Json] = []
    if message["role"] == "tool":
        content = message["content"]
        return [
            {"toolResult": {"toolUseId": message["tool_call_id"], "status": "success", "content": [{"text": content}]}}
        ]
    if message.get("content"):
        blocks.append({"text": message["content"]})
    for asked in message.get("tool_calls", ()):
        inner = asked["function"]
        blocks.append(
            {"toolUse": {"toolUseId": asked["id"], "name": inner["name"], "input": json.loads(inner["arguments"])}}
        )
    return blocks


def strands() -> Told:
    def model(turn: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        events = [
            Event(f"gen_ai.{message['role']}.message", at, {"content": text(bedrock(message))})
            for at, message in enumerate(OPENAI[: 2 * turn + 2])
        ]
        reply = text(bedrock(OPENAI[2 * turn + 2]))
        events.append(Event("gen_ai.choice", 99, {"message": reply, "finish_reason": "end_turn"}))
        keys = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
        return "chat", {
            "gen_ai.operation.name": "chat", "gen_ai.system": "strands-agents", "gen_ai.request.model": MODEL,
            **usage(turn, *keys), **usage(turn, "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
        }, events  # fmt: skip

    def tool(name: str, arguments: Json, result: Json, number: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        shown = result if isinstance(result, str) else text(result)
        return f"execute_tool {name}", {
            "gen_ai.operation.name": "execute_tool", "gen_ai.system": "strands-agents", "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": f"call_{number}", "gen_ai.tool.status": "success",
        }, (
            Event("gen_ai.tool.message", 1, {"role": "tool", "content": text(arguments), "id": f"call_{number}"}),
            Event("gen_ai.choice", 2, {"message": text([{"text": shown}]), "id": f"call_{number}"}),
        )  # fmt: skip

    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "gen_ai.system": "strands-agents"}
    events = (
        Event("gen_ai.user.message", 0, {"content": text([{"text": TASK}])}),
        Event("gen_ai.choice", 9, {"message": ANSWER, "finish_reason": "end_turn"}),
    )
    scope = "strands.telemetry.tracer"
    return told(span(1, None, "invoke_agent desk", 0, 70, root, scope=scope, events=events), model, tool, scope), []


def adk_one() -> Told:
    def content(message: Json) -> Json:
        if message["role"] == "tool":
            name = "find_loan" if message["tool_call_id"] == "call_1" else "renew_loan"
            value = FOUND if name == "find_loan" else {"result": RENEWED}
            return {"role": "user", "parts": [{"function_response": {"name": name, "response": value}}]}
        parts: list[Json] = [{"text": message["content"]}] if message.get("content") else []
        for asked in message.get("tool_calls", ()):
            inner = asked["function"]
            parts.append({"function_call": {"name": inner["name"], "args": json.loads(inner["arguments"])}})
        return {"role": "model" if message["role"] == "assistant" else "user", "parts": parts}

    def model(turn: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        request = {"model": MODEL, "contents": [content(m) for m in OPENAI[1 : 2 * turn + 2]],
                   "config": {"system_instruction": OPENAI[0]["content"]}}  # fmt: skip
        return "call_llm", {
            "gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": MODEL,
            "gcp.vertex.agent.llm_request": text(request),
            "gcp.vertex.agent.llm_response": text({"content": content(OPENAI[2 * turn + 2])}),
            **usage(turn, "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
        }, ()  # fmt: skip

    def tool(name: str, arguments: Json, result: Json, number: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        value = result if isinstance(result, dict) else {"result": result}
        return f"execute_tool {name}", {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": f"adk-{number}",
            "gcp.vertex.agent.tool_call_args": text(arguments), "gcp.vertex.agent.tool_response": text(value),
        }, ()  # fmt: skip

    scope = "gcp.vertex.agent"
    return told(span(1, None, "agent_run [desk]", 0, 70, scope=scope), model, tool, scope), []


def vercel() -> Told:
    def shaped(message: Json) -> Json:
        if message["role"] == "tool":
            name = "find_loan" if message["tool_call_id"] == "call_1" else "renew_loan"
            output = {"type": "json", "value": FOUND} if name == "find_loan" else {"type": "text", "value": RENEWED}
            part = {"type": "tool-result", "toolCallId": message["tool_call_id"], "toolName": name, "output": output}
            return {"role": "tool", "content": [part]}
        parts: list[Json] = [{"type": "text", "text": message["content"]}] if message.get("content") else []
        return {"role": message["role"], "content": parts + [asked(c) for c in message.get("tool_calls", ())]}

    def asked(one: Json) -> Json:
        inner = one["function"]
        return {
            "type": "tool-call",
            "toolCallId": one["id"],
            "toolName": inner["name"],
            "input": json.loads(inner["arguments"]),
        }

    def model(turn: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        reply = OPENAI[2 * turn + 2]
        return "ai.generateText.doGenerate", {
            "ai.operationId": "ai.generateText.doGenerate", "ai.model.id": MODEL, "ai.telemetry.functionId": "desk",
            "ai.prompt.messages": text([shaped(m) for m in OPENAI[: 2 * turn + 2]]),
            "ai.response.text": reply.get("content") or "",
            **({"ai.response.toolCalls": text([asked(c) for c in reply["tool_calls"]])} if turn < 2 else {}),
            **usage(turn, "ai.usage.inputTokens", "ai.usage.outputTokens"),
        }, ()  # fmt: skip

    def tool(name: str, arguments: Json, result: Json, number: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        return "ai.toolCall", {
            "ai.operationId": "ai.toolCall", "ai.toolCall.name": name, "ai.toolCall.id": f"call_{number}",
            "ai.toolCall.args": text(arguments), "ai.toolCall.result": text(result),
        }, ()  # fmt: skip

    root = {"ai.operationId": "ai.generateText", "ai.telemetry.functionId": "desk", "ai.response.text": ANSWER,
            "ai.prompt": text({"prompt": TASK}), "ai.usage.inputTokens": 95, "ai.usage.outputTokens": 20}  # fmt: skip
    return told(span(1, None, "ai.generateText", 0, 70, root, scope="ai"), model, tool, "ai"), []


def blobs(
    kind: str, given: str, output: str, kinds: tuple[str, str, str], more: Callable[[int], dict[str, Json]]
) -> Told:
    """Dialects with one blob for what went in and one for what came out."""

    def model(turn: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        return MODEL, {
            kind: kinds[0], given: text({"messages": OPENAI[: 2 * turn + 2]}),
            output: text({"choices": [{"message": OPENAI[2 * turn + 2]}]}), **more(turn),
        }, ()  # fmt: skip

    def tool(name: str, arguments: Json, result: Json, number: int) -> tuple[str, dict[str, Json], Sequence[Event]]:
        return name, {kind: kinds[1], given: text(arguments), output: text(result)}, ()

    root = {kind: kinds[2], given: text({"question": TASK}), output: text(ANSWER)}
    return told(span(1, None, "desk", 0, 70, root), model, tool), []


def langfuse() -> Told:
    start = "langfuse.observation."
    return blobs(start + "type", start + "input", start + "output", ("generation", "tool", "agent"), lambda turn: {
        start + "model.name": MODEL, start + "usage_details": text(usage(turn, "input", "output")),
    })  # fmt: skip


def mlflow() -> Told:
    kinds = ('"CHAT_MODEL"', '"TOOL"', '"AGENT"')
    return blobs("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs", kinds, lambda turn: {
        "mlflow.llm.model": text(MODEL), "mlflow.chat.tokenUsage": text(usage(turn, "input_tokens", "output_tokens")),
    })  # fmt: skip


def langsmith() -> Told:
    return blobs("langsmith.span.kind", "gen_ai.prompt", "gen_ai.completion", ("llm", "tool", "chain"), lambda turn: {
        "gen_ai.request.model": MODEL, **usage(turn, "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    })  # fmt: skip


def pydantic_two() -> Told:
    spans, _ = genai(scope="pydantic-ai")
    again = []
    for one in spans:
        attributes = dict(one.attributes)
        if "tool" in one.name:
            attributes["tool_arguments"] = attributes.pop("gen_ai.tool.call.arguments")
            attributes["tool_response"] = attributes.pop("gen_ai.tool.call.result")
        elif one.parent_id is None:
            attributes = {"agent_name": "desk", "final_result": ANSWER, "pydantic_ai.all_messages": text(GENAI),
                          "gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 95,
                          "gen_ai.usage.output_tokens": 20}  # fmt: skip
        again.append(
            span(int(one.span_id, 16), int(one.parent_id, 16) if one.parent_id else None,
                 "running tool" if "tool" in one.name else one.name, one.start_ns / MS, (one.end_ns or 0) / MS,
                 attributes, scope="pydantic-ai")
        )  # fmt: skip
    return again, []


DIALECTS: dict[str, Callable[[], Told]] = {
    "genai": genai,
    "genai in log records": genai_logs,
    "openinference": openinference,
    "openllmetry 0.44": openllmetry_old,
    "openllmetry langchain": openllmetry_langchain,
    "strands": strands,
    "adk 1": adk_one,
    "agent framework": lambda: genai(scope="agent_framework"),
    "pydantic ai 2": pydantic_two,
    "vercel 6": vercel,
    "langfuse": langfuse,
    "mlflow": mlflow,
    "langsmith": langsmith,
}
