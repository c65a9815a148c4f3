"""One message of a plain transcript, in any of the forms in which chat APIs write it, as turns of one form.

OpenAI chat messages, items of the Responses API, Anthropic, Bedrock and Gemini content blocks, parts of the Vercel AI
SDK and of OpenTelemetry's conventions, and LangChain messages as `messages_to_dict`, `model_dump` and `dumpd` write
them.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from evalagent.model import Json
from evalagent.traces.anyvalues import plain
from evalagent.traces.otlp_json import first

Part = dict[str, Json]
_ROLES = {
    "developer": "system", "human": "user", "ai": "assistant", "model": "assistant", "function": "tool",
    "aimessage": "assistant", "humanmessage": "user", "systemmessage": "system", "toolmessage": "tool",
    "functionmessage": "tool", "chatmessage": "user",
}  # fmt: skip
_LANGCHAIN = {"human", "ai", "system", "tool", "function", "developer"}
_ITEM = re.compile(
    r"(?:function|custom_tool|mcp|web_search|file_search|code_interpreter|computer|local_shell|shell|apply_patch"
    r"|image_generation|tool_search)_call(_output)?|reasoning|mcp_list_tools|mcp_approval_re(?:quest|sponse)|compaction"
).fullmatch
_ITEM_SIGNS = (
    "call_id", "name", "summary", "action", "queries", "code", "output", "encrypted_content", "server_label",
    "approve",
)  # fmt: skip
_SERVED = ("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call")
"""Items that another item answers; every other call was run by the provider, and its item holds the answer."""


class Turn(NamedTuple):
    """One message in the form of the conventions, with what the transcript says beside it.

    `item`: a part of a model's answer that goes on in the next item.
    """

    message: dict[str, Json]
    raw: Mapping[str, Json]
    item: bool = False


def is_message(value: Json) -> bool:
    """Whether this is one message of a transcript."""
    if type(value) is not dict:
        return False
    if type(value.get("role")) is str:
        return any(key in value for key in ("content", "tool_calls", "function_call", "parts", "refusal"))
    kind = value.get("type")
    if type(kind) is not str:
        return False
    if _ITEM(kind):
        return any(key in value for key in _ITEM_SIGNS)
    held = _langchain(value)
    return held is not None and "content" in held


def turns_of(raw: Mapping[str, Json]) -> list[Turn]:
    """The turns of a message: an answer of a tool is a turn of its own, wherever it stands."""
    if type(raw.get("role")) is not str:
        held = _langchain(raw)
        return _message(held) if held is not None else _item(raw)
    return _message(raw)


def _langchain(raw: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """A message of LangChain with its role; None where it is none."""
    kind, inner = raw.get("type"), raw
    if kind == "constructor" and type(raw.get("kwargs")) is dict:
        name = raw.get("id")
        inner = raw["kwargs"]
        kind = name[-1] if type(name) is list and name else inner.get("type")
    elif type(raw.get("data")) is dict:
        inner = raw["data"]
    if type(kind) is not str:
        return None
    word = kind.lower().removesuffix("chunk")
    if word not in _LANGCHAIN and word not in _ROLES:
        return None
    return {**inner, "role": _ROLES.get(word, word)}


def _item(raw: Mapping[str, Json]) -> list[Turn]:
    """An item of the Responses API."""
    kind = str(raw.get("type"))
    if kind == "reasoning":
        said = first(raw, "summary", "content")
        return [Turn(_said("assistant", [{"type": "reasoning", "content": plain(said)}]), raw, True)]
    if not kind.endswith(("_call", "_output")):
        role = "user" if kind == "mcp_approval_response" else "assistant"
        return [Turn(_said(role, [{"type": kind, "content": plain(raw)}]), raw, role == "assistant")]
    identity = first(raw, "call_id", "id")
    if kind.endswith("_output"):
        return [Turn(_said("tool", [answer(identity, raw.get("output"))]), raw)]
    name = raw.get("name") if type(raw.get("name")) is str else kind.removesuffix("_call")
    given = first(raw, "arguments", "input", "action", "queries", "code", "operation")
    call = Turn(_said("assistant", [_call(identity, name, given)]), raw, True)
    if kind in _SERVED:
        return [call]
    result = first(raw, "output", "results", "outputs", "result", "error")
    ran = answer(identity, raw.get("status") if result is None else result, failed=raw.get("error") is not None)
    return [call, Turn(_said("tool", [ran]), raw)]


def _message(raw: Mapping[str, Json]) -> list[Turn]:
    role = str(raw["role"]).lower()
    role = _ROLES.get(role, role)
    content = first(raw, "content", "parts")
    parts = parts_of(content)
    answers = [part for part in parts if part["type"] == "tool_call_response"]
    if role == "tool" and not answers:
        identity, failed = raw.get("tool_call_id"), raw.get("status") == "error" or raw.get("is_error") is True
        return [Turn(_said("tool", [answer(identity, content, raw.get("name"), failed)]), raw)]
    others = [part for part in parts if part["type"] != "tool_call_response"]
    tools = [Turn(_said("tool", [one]), raw) for one in answers]
    if role != "assistant":
        return [*tools, Turn(_said(role, others), raw)] if others or not tools else tools
    known = {part["id"] for part in others if part["type"] == "tool_call" and type(part["id"]) is str}
    others.extend(call for call in _calls(raw) if type(call["id"]) is not str or call["id"] not in known)
    if raw.get("refusal"):
        others.append({"type": "text", "content": plain(raw["refusal"])})
    said = Turn(_said(role, others), raw, raw.get("type") == "message")
    return [said, *tools]  # what a provider's own tools answered stands within the model's message


def _said(role: str, parts: list[Part]) -> dict[str, Json]:
    return {"role": role, "parts": parts}


def parts_of(content: Json) -> list[Part]:
    """What a message says, part by part."""
    if content is None or content == "":
        return []
    if type(content) is not list:
        return [{"type": "text", "content": content if type(content) is str else plain(content)}]
    return [_part(block) for block in content]


def _part(block: Json) -> Part:
    if type(block) is not dict:
        return {"type": "text", "content": plain(block)}
    kind = block.get("type")
    asked = next(
        (block[key] for key in ("toolUse", "functionCall", "function_call") if type(block.get(key)) is dict), None
    )
    if asked is not None:
        return _call(first(asked, "toolUseId", "id"), asked.get("name"), first(asked, "input", "args", "arguments"))
    ran = next(
        (block[key] for key in ("toolResult", "functionResponse", "function_response") if type(block.get(key)) is dict),
        None,
    )
    if ran is not None:
        failed = ran.get("status") == "error"
        return answer(first(ran, "toolUseId", "id"), first(ran, "content", "response"), ran.get("name"), failed)
    if kind in ("tool_use", "tool_call", "tool-call", "server_tool_use", "mcp_tool_use"):
        name, given = first(block, "name", "toolName"), first(block, "input", "arguments", "args")
        return _call(first(block, "id", "toolCallId"), name, given)
    if kind in ("tool_call_response", "tool-result") or (type(kind) is str and kind.endswith("tool_result")):
        identity = first(block, "tool_use_id", "id", "toolCallId")
        content = first(block, "content", "response", "result", "output")
        return answer(identity, content, first(block, "name", "toolName"), block.get("is_error") is True)
    if kind in ("thinking", "reasoning"):
        return {"type": "reasoning", "content": plain(first(block, "thinking", "content", "text", "reasoning"))}
    text = first(block, "text", "content", "input_text", "output_text", "refusal")
    if type(text) is str:
        return {"type": "text", "content": text}
    return {"type": kind if type(kind) is str else "unknown", "content": plain(block)}


def _call(identity: Json, name: Json, arguments: Json) -> Part:
    return {"type": "tool_call", "id": plain(identity), "name": plain(name), "arguments": plain(arguments)}


def answer(identity: Json, content: Json, name: Json = None, failed: bool = False) -> Part:
    """A tool's result; a list of text blocks is their text."""
    if type(content) is list and content and all(type(b) is dict and type(b.get("text")) is str for b in content):
        content = "\n".join(block["text"] for block in content)
    found = {"type": "tool_call_response", "id": plain(identity), "response": plain(content)}
    if type(name) is str and name:
        found["name"] = name
    return found | {"is_error": True} if failed else found


def _calls(raw: Mapping[str, Json]) -> list[Part]:
    """The calls that stand beside a message's content."""
    more = raw.get("additional_kwargs")
    listed = raw.get("tool_calls") or (more.get("tool_calls") if type(more) is dict else None)
    asked = [call for call in listed if type(call) is dict] if type(listed) is list else []
    broken = raw.get("invalid_tool_calls")
    asked += [call for call in broken if type(call) is dict] if type(broken) is list else []
    if type(raw.get("function_call")) is dict:
        asked.append({"function": raw["function_call"]})
    found = []
    for call in asked:
        function = call.get("function")
        inside = function if type(function) is dict else call
        found.append(_call(call.get("id"), inside.get("name"), first(inside, "arguments", "args", "input")))
    return found
