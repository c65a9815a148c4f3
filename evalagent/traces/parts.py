"""One message out of any of the shapes that dialects write it in.

Shapes known: GenAI parts, OpenAI chat and responses, Anthropic blocks, Bedrock blocks, Gemini contents, Vercel parts,
LangChain constructors and dumps, AutoGen function results, any-agent call lists.
"""

from collections.abc import Mapping

from evalagent.model import Json, Message, ToolAnswer, ToolRequest
from evalagent.traces.unwrapping import canonical, literal, parse, structured

_CALLING = "Calling tools:"
_CALL_BLOCKS = ('"type": "function_call"', '"type": "tool_use"')
_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "tool-call": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "tool-response": "tool",
    "ipython": "tool",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
}
_GENAI = {"role", "parts", "finish_reason"}
_GENAI_PARTS = {
    "tool_call": {"type", "id", "name", "arguments"},
    "tool_call_response": {"type", "id", "response", "result"},
}


def role_of(value: Json, default: str = "user") -> str:
    """The one name of a role: system, user, assistant or tool."""
    if not isinstance(value, str) or not value:
        return default
    return _ROLES.get(value) or _ROLES.get(value.rpartition(".")[2].lower(), default)


def is_pair(value: list[Json]) -> bool:
    """Whether a list is a role and a text, as LangChain takes them."""
    return len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES and isinstance(value[1], str)


def read_message(value: Json, role: str) -> Message | None:
    """The message, or None where there is nothing in it; `role` is for shapes that do not say theirs."""
    if isinstance(value, str):
        return Message(role, value) if value else None
    if isinstance(value, list):
        if is_pair(value):
            return Message(role_of(value[0]), value[1])
        parts = _Parts()
        parts.take(value)
        return parts.message(role)
    if not isinstance(value, dict):
        return None
    own, items = value.get("role"), value.get("parts")
    if type(items) is list and type(own) is str and value.keys() <= _GENAI:
        plain = _genai(own, items, role)
        if plain is not None:
            return plain
    if isinstance(value.get("kwargs"), dict) and ("lc" in value or "id" in value):
        names = value.get("id")
        value = {"type": names[-1] if isinstance(names, list) and names else None, **value["kwargs"]}
    elif isinstance(value.get("data"), dict) and isinstance(value.get("type"), str):
        value = {"type": value["type"], **value["data"]}
    elif isinstance(value.get("message"), dict) and "role" not in value:
        value = value["message"]
        if isinstance(value.get("kwargs"), dict):
            return read_message(value, role)
    kind = value.get("type")
    own = value.get("role")
    if own is None and isinstance(kind, str) and kind in _ROLES and "function" not in value:
        own = kind
    parts = _Parts()
    default = role_of(own, role)
    if own is None and not ({"content", "parts", "tool_calls"} & set(value)):
        parts.take([value])
        if parts.requests:
            default = "assistant"
        elif parts.answers:
            default = "tool"
        return parts.message(default)
    if default == "tool" or value.get("tool_call_id") or "call_id" in value:
        answer = value.get("tool_call_id") or value.get("call_id") or (value.get("id") if own == "tool" else None)
        content = value.get("content", value.get("contents"))
        if not (isinstance(content, list) and parts.has_answers(content)) and "parts" not in value:
            parts.answers.append(ToolAnswer(_string(answer), _string(value.get("name")), _flat(_unblocked(content))))
            return parts.message("tool")
    for key in ("parts", "content", "contents"):
        if value.get(key) is not None:
            parts.take(value[key])
            break
    if default == "assistant" and len(parts.texts) == 1 and parts.texts[0].startswith(_CALLING):
        parts.calling(parts.texts[0])
    calls = _calls(value)
    if calls and parts.requests:
        # LangChain tells the calls of Anthropic's and OpenAI's content blocks again, there whole even where streamed.
        again = {_string(_identity(call)) for call in calls if isinstance(call, dict)}
        parts.requests = [r for r in parts.requests if r.id is None or r.id not in again]
    for call in calls:
        parts.request(call)
    if isinstance(value.get("function_call"), dict) and value["function_call"].get("name"):
        parts.request(value["function_call"])
    return parts.message("tool" if parts.answers and not any(parts.texts) and not parts.requests else default)


def _genai(own: str, items: list[Json], role: str) -> Message | None:
    """A message of GenAI parts and nothing else, by far the most common; None where any other shape is in it, for
    which the long way round is needed."""
    texts: list[str] = []
    parts: _Parts | None = None
    for item in items:
        if type(item) is not dict:
            return None
        kind = item.get("type")
        if kind == "text":
            content = item.get("content")
            if type(content) is not str or len(item) != 2:
                return None
            if content:
                texts.append(content)
        elif type(kind) is str and kind in _GENAI_PARTS and item.keys() <= _GENAI_PARTS[kind]:
            if parts is None:
                parts = _Parts()
            if kind == "tool_call_response":
                content = item.get("response")
                content = item.get("result") if content is None else content
                parts.answers.append(ToolAnswer(_string(item.get("id")), None, _flat(content)))
            elif type(item.get("arguments")) is dict and type(item.get("name")) is str and item["name"]:
                parts.requests.append(ToolRequest(_string(item.get("id")), item["name"], item["arguments"]))
            else:
                parts.request(item)
        else:
            return None
    told = role_of(own, role)
    if parts is None:
        if not texts or (told == "assistant" and texts[0].startswith(_CALLING)):
            return None
        return Message(told, texts[0] if len(texts) == 1 else "\n".join(texts))
    if texts and texts[0].startswith(_CALLING):
        return None
    parts.texts = texts
    return parts.message("tool" if parts.answers and not texts and not parts.requests else told)


def _calls(value: Mapping[str, Json]) -> list[Json]:
    calls = value.get("tool_calls") or value.get("toolCalls")
    if isinstance(calls, str):
        calls = parse(calls).value
    if not calls and isinstance(value.get("additional_kwargs"), dict):
        calls = value["additional_kwargs"].get("tool_calls")
    return calls if isinstance(calls, list) else []


def _identity(call: Mapping[str, Json]) -> Json:
    return call.get("call_id") or call.get("id") or call.get("toolCallId") or call.get("toolUseId")


def _string(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _unblocked(content: Json) -> Json:
    """`contents.M.message_content.{type,text}` (OpenInference) as blocks."""
    if isinstance(content, list) and content and all(isinstance(c, dict) and "message_content" in c for c in content):
        return [c["message_content"] for c in content]
    return content


def _flat(content: Json) -> Json:
    """Text blocks as one text; anything else parsed where it is a JSON object or array."""
    if type(content) is str:
        return structured(content)
    if (
        isinstance(content, list)
        and content
        and all(isinstance(c, dict) and isinstance(c.get("text"), str) for c in content)
    ):
        content = "\n".join(c["text"] for c in content)
    if isinstance(content, dict) and set(content) == {"type", "value"}:
        content = content["value"]
    return structured(content)


class _Parts:
    """What the parts of one message come to."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.requests: list[ToolRequest] = []
        self.answers: list[ToolAnswer] = []

    def has_answers(self, content: list[Json]) -> bool:
        return any(
            isinstance(item, dict)
            and (item.get("type") in ("tool_result", "tool-result", "tool_call_response") or "toolResult" in item)
            for item in content
        )

    def message(self, role: str) -> Message | None:
        if self.requests and self.texts:
            self.texts = [t for t in self.texts if not self._told_as_text(t)]
        text = "\n".join([t for t in self.texts if t]) if self.texts else ""
        if not (text or self.requests or self.answers):
            return None
        return Message(role, text, tuple(self.requests), tuple(self.answers))

    def _told_as_text(self, text: str) -> bool:
        """OpenLLMetry writes a call's content block into a text part too, as JSON."""
        if text[:2] != '{"' or not any(mark in text for mark in _CALL_BLOCKS):
            return False
        return any(request.id is not None and request.id in text for request in self.requests)

    def request(self, call: Json) -> None:
        if not isinstance(call, dict):
            return
        call = call.get("tool_call") if isinstance(call.get("tool_call"), dict) else call
        inner = call.get("function") if isinstance(call.get("function"), dict) else call
        name = inner.get("name") or call.get("toolName") or call.get("tool.name")
        raw = next((inner[k] for k in ("arguments", "args", "input", "tool.args") if inner.get(k) is not None), None)
        parsed = parse(raw)
        identity = _identity(call)
        value = {} if parsed.value is None or parsed.value == "" else parsed.value
        if raw is None and call.get("type") == "tool_call" and "arguments" not in inner:
            value = None  # GenAI parts without contents: that there was a call is told, with what is not
        if isinstance(name, str) and name:
            self.requests.append(ToolRequest(_string(identity), name, value, parsed.truncated))

    def calling(self, text: str) -> None:
        """smolagents writes calls into the history as text: a heading and a Python list."""
        calls = literal(text.removeprefix(_CALLING).strip())
        if isinstance(calls, list) and calls and all(isinstance(call, dict) for call in calls):
            for call in calls:
                self.request(call)
            if self.requests:
                self.texts.clear()

    def take(self, content: Json) -> None:
        if isinstance(content, str):
            if content[:2] in ("[{", '{"') and (
                '"toolUse"' in content or '"toolResult"' in content or '[{"text"' in content
            ):
                parsed = parse(content)
                if isinstance(parsed.value, list):
                    self.take(parsed.value)
                    return
            self.texts.append(content)
            return
        if isinstance(content, dict):
            content = [content]
        if not isinstance(content, list):
            if content is not None:
                self.texts.append(canonical(content))
            return
        for item in content:
            self._part(item)

    def _part(self, item: Json) -> None:
        if isinstance(item, str):
            self.texts.append(item)
            return
        if not isinstance(item, dict):
            return
        if isinstance(item.get("message_content"), dict):
            item = item["message_content"]
        kind = item.get("type")
        if isinstance(item.get("toolUse"), dict):
            self.request(item["toolUse"])
        elif isinstance(item.get("toolResult"), dict):
            inner = item["toolResult"]
            self.answers.append(ToolAnswer(_string(inner.get("toolUseId")), None, _flat(inner.get("content"))))
        elif isinstance(item.get("function_call") or item.get("functionCall"), dict):
            self.request(item.get("function_call") or item.get("functionCall"))
        elif isinstance(inner := item.get("function_response") or item.get("functionResponse"), dict):
            self.answers.append(
                ToolAnswer(_string(inner.get("id")), _string(inner.get("name")), _flat(inner.get("response")))
            )
        elif (
            kind in ("tool_call", "tool_use", "tool-call", "function_call")
            or "tool.name" in item
            or (kind == "function" and isinstance(item.get("function"), dict))
        ):
            self.request(item)
        elif kind in ("tool_call_response", "tool_result", "tool-result", "function_call_output"):
            self.answer(item)
        elif kind in ("reasoning", "thinking", "redacted_thinking", "reasoning_content") or "reasoningContent" in item:
            return
        elif isinstance(item.get("text"), str):
            self.texts.append(item["text"])
        elif isinstance(item.get("content"), str) and kind in (None, "text", "output_text", "input_text"):
            self.texts.append(item["content"])
        elif kind == "message" and item.get("content") is not None:
            inner_parts = item["content"]
            for inner in inner_parts if isinstance(inner_parts, list) else [inner_parts]:
                if isinstance(inner, str):
                    self.texts.append(inner)
                elif isinstance(inner, dict) and isinstance(inner.get("text"), str):
                    self.texts.append(inner["text"])
        elif isinstance(item.get("name"), str) and ("arguments" in item or "args" in item):
            self.request(item)

    def answer(self, item: Mapping[str, Json]) -> None:
        identity = next(
            (item[k] for k in ("tool_use_id", "toolCallId", "call_id", "tool_call_id", "id") if item.get(k)), None
        )
        content = next((item[k] for k in ("response", "result", "content", "output") if item.get(k) is not None), None)
        name = item.get("name") or item.get("toolName")
        self.answers.append(ToolAnswer(_string(identity), _string(name), _flat(content)))
