"""The library's desk as a plain transcript, in the form of each chat API: name → the bytes of a file."""

from collections.abc import Callable, Mapping

from evalagent.model import Json
from tests.traces import loans
from tests.traces.exports import lines, one, parsed
from tests.traces.loans import MODEL, OPENAI, TOKENS


def responses() -> list[Json]:
    """As a session of OpenAI's Responses API lists its items; a message and its calls are items of their own."""
    found: list[Json] = []
    for number, message in enumerate(OPENAI):
        if message["role"] == "tool":
            kind = "function_call_output"
            found.append({"type": kind, "call_id": message["tool_call_id"], "output": message["content"]})
            continue
        if message["role"] == "assistant":
            found.append({"type": "reasoning", "id": f"rs_{number}", "summary": []})
        if message.get("content"):
            text = "output_text" if message["role"] == "assistant" else "input_text"
            content = [{"type": text, "text": message["content"], "annotations": []}]
            found.append({"type": "message", "role": message["role"], "content": content})
        found.extend(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": asked["id"],
                **asked["function"],
                "status": "completed",
            }
            for asked in message.get("tool_calls", ())
        )
    return found


def anthropic() -> Json:
    system, *rest = OPENAI
    found = []
    for message in rest:
        if message["role"] == "tool":
            block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            found.append({"role": "user", "content": [block]})
            continue
        blocks = [{"type": "text", "text": message["content"]}] if message.get("content") else []
        blocks += [
            {
                "type": "tool_use",
                "id": c["id"],
                "name": c["function"]["name"],
                "input": parsed(c["function"]["arguments"]),
            }
            for c in message.get("tool_calls", ())
        ]
        found.append({"role": message["role"], "content": blocks})
    return {"model": MODEL, "system": system["content"], "messages": found}


def bedrock() -> Json:
    system, *rest = OPENAI
    told = [{"role": {"tool": "user"}.get(m["role"], m["role"]), "content": loans.bedrock(m)} for m in rest]
    return {"system": [{"text": system["content"]}], "messages": told}


def gemini() -> Json:
    """No call has an id."""
    names = {c["id"]: c["function"]["name"] for m in OPENAI for c in m.get("tool_calls", ())}
    contents = []
    for message in OPENAI[1:]:
        role = {"assistant": "model", "tool": "user"}.get(message["role"], message["role"])
        parts: list[Json] = []
        if message["role"] == "tool":
            given = parsed(message["content"])
            response = given if isinstance(given, dict) else {"result": given}
            parts = [{"functionResponse": {"name": names[message["tool_call_id"]], "response": response}}]
        elif message.get("content"):
            parts = [{"text": message["content"]}]
        for asked in message.get("tool_calls", ()):
            inner = asked["function"]
            parts.append({"functionCall": {"name": inner["name"], "args": parsed(inner["arguments"])}})
        contents.append({"role": role, "parts": parts})
    return {"systemInstruction": {"parts": [{"text": OPENAI[0]["content"]}]}, "contents": contents}


def langchain(form: str) -> list[Json]:
    kinds = {"user": "human", "assistant": "ai"}
    turn = 0
    found: list[Json] = []
    for message in OPENAI:
        kind = kinds.get(message["role"], message["role"])
        told: dict[str, Json] = {"content": message.get("content") or "", "type": kind, "name": None, "id": None}
        if kind == "ai":
            calls = message.get("tool_calls", ())
            told["tool_calls"] = [
                {
                    "name": c["function"]["name"],
                    "args": parsed(c["function"]["arguments"]),
                    "id": c["id"],
                    "type": "tool_call",
                }
                for c in calls
            ]
            told["additional_kwargs"] = {"tool_calls": list(calls)} if calls else {}
            told["usage_metadata"] = dict(zip(("input_tokens", "output_tokens"), TOKENS[turn], strict=True))
            told["response_metadata"] = {"model_name": MODEL}
            turn += 1
        if kind == "tool":
            told |= {"tool_call_id": message["tool_call_id"], "status": "success", "artifact": None}
        if form == "dict":
            found.append({"type": kind, "data": told})
        elif form == "dumpd":
            name = {"ai": "AI"}.get(kind, kind.title()) + "Message"
            found.append(
                {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": told}
            )
        else:
            found.append(told)
    return found


TRANSCRIPTS: Mapping[str, Callable[[], bytes]] = {
    "openai list": lambda: one(OPENAI),
    "openai lines": lambda: lines(OPENAI),
    "openai object": lambda: one({"messages": OPENAI, "model": MODEL}),
    "openai conversation a line": lambda: lines([{"messages": OPENAI}]),
    "openai list a line": lambda: lines([OPENAI]),
    "responses": lambda: one(responses()),
    "responses lines": lambda: lines(responses()),
    "responses request and answer": lambda: one({"input": responses()[:-1], "output": responses()[-1:]}),
    "anthropic": lambda: one(anthropic()),
    "bedrock": lambda: one(bedrock()),
    "gemini": lambda: one(gemini()),
    "langchain to_dict": lambda: one(langchain("dict")),
    "langchain dumpd": lambda: one({"messages": langchain("dumpd")}),
    "langchain model_dump": lambda: lines(langchain("model")),
}
