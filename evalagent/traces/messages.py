"""Chat messages out of every shape that dialects write them in, each distinct message made once a trace.

Shapes known: GenAI parts, OpenAI chat and responses, Anthropic blocks, Bedrock blocks, Gemini contents, Vercel parts,
LangChain constructors and dumps, AutoGen function results, any-agent call lists.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from evalagent.model import Json, Message, ToolAnswer, ToolRequest, ToolSchema
from evalagent.traces.unwrapping import canonical, parse, structured

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
_REMEMBERED = 6


def role_of(value: Json, default: str = "user") -> str:
    """The one name of a role: system, user, assistant or tool."""
    if not isinstance(value, str) or not value:
        return default
    return _ROLES.get(value) or _ROLES.get(value.rpartition(".")[2].lower(), default)


class Reader:
    """Reads messages of one trace. Equal messages are one object; a history that continues an earlier one is read
    from where it goes on, so that n turns cost their new messages and not their n squared."""

    def __init__(self) -> None:
        self._messages: dict[Any, Message] = {}
        self._texts: list[tuple[str, tuple[Message, ...]]] = []
        self._pairs: dict[Any, Message] = {}
        self._tools: dict[str, tuple[ToolSchema, ...]] = {}

    def intern(self, message: Message) -> Message:
        """The one object that stands for this message."""
        key = (
            message.role,
            message.text,
            tuple((r.id, r.name, canonical(r.arguments), r.truncated) for r in message.requests),
            tuple((a.id, a.name, canonical(a.content)) for a in message.answers),
        )
        return self._messages.setdefault(key, message)

    def many(self, value: Json, role: str = "user") -> tuple[tuple[Message, ...], bool]:
        """Every message of a list, text of a list, or one message; and whether it had been cut."""
        if isinstance(value, str):
            return self._text(value, role)
        return self._list(value, role), False

    def _text(self, text: str, role: str) -> tuple[tuple[Message, ...], bool]:
        if text[:1] == "[":
            for known, messages in reversed(self._texts):
                size = len(known)
                if text.startswith(known):
                    rest = text[size:].lstrip()
                    if rest == "]":
                        return messages, False
                    if rest[:1] == "," and rest[-1:] == "]":
                        parsed = parse("[" + rest[1:])
                        if isinstance(parsed.value, list) and not parsed.truncated:
                            whole = messages + self._list(parsed.value, role)
                            self._remember(text, whole)
                            return whole, False
        parsed = parse(text)
        messages = self._list(parsed.value, role)
        if not parsed.truncated and isinstance(parsed.value, list):
            self._remember(text, messages)
        elif parsed.truncated:
            messages = self._mark(messages)
        return messages, parsed.truncated

    def _remember(self, text: str, messages: tuple[Message, ...]) -> None:
        if text.endswith("]") and len(messages) > 1:
            self._texts.append((text[:-1].rstrip(), messages))
            del self._texts[:-_REMEMBERED]

    def _mark(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The last message of a list that was cut: its last call is no fault of the agent's."""
        if not messages or not messages[-1].requests:
            return messages
        last = messages[-1]
        *rest, cut = last.requests
        cut = ToolRequest(cut.id, cut.name, cut.arguments, True)
        return (*messages[:-1], self.intern(Message(last.role, last.text, (*rest, cut), last.answers)))

    def _list(self, value: Json, role: str) -> tuple[Message, ...]:
        if value is None or value == "":
            return ()
        if isinstance(value, dict) and isinstance(value.get("messages"), list):
            value = value["messages"]
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) and not _is_pair(value[0]):
            value = value[0]
        if not isinstance(value, list) or _is_pair(value):
            value = [value]
        return tuple(m for m in (self.one(item, role) for item in value) if m is not None)

    def one(self, value: Json, role: str = "user") -> Message | None:
        """One message; None where there is nothing in it."""
        message = _message(value, role)
        return None if message is None else self.intern(message)

    def joined(self, messages: Iterable[Message]) -> Message | None:
        """The messages of one reply as one assistant message."""
        parts = [m for m in messages if m.text or m.requests or m.answers]
        if not parts:
            return None
        if len(parts) == 1 and parts[0].role == "assistant" and not parts[0].answers:
            return parts[0]
        requests = tuple(r for m in parts for r in m.requests)
        text = "\n".join(m.text for m in parts if m.text)
        return self.intern(Message("assistant", text, requests))

    def indexed(self, attributes: Mapping[str, Json], prefix: str, role: str) -> tuple[Message, ...]:
        """Messages spread over keys, `PREFIX0.role`, `PREFIX0.content` and so on, in the order of their numbers."""
        groups: dict[int, list[tuple[str, Json]]] = {}
        size = len(prefix)
        for key, item in attributes.items():
            if key.startswith(prefix):
                number, _, rest = key[size:].partition(".")
                if number.isdecimal():
                    groups.setdefault(int(number), []).append((rest, item))
        found: list[Message] = []
        for _, pairs in sorted(groups.items()):
            key = tuple(pairs)
            try:
                known = self._pairs.get(key)
            except TypeError:
                known, key = None, ()
            if known is None:
                shape = nested(pairs)
                known = self.one(shape.get("message", shape) if isinstance(shape, dict) else shape, role)
                if isinstance(shape, dict) and isinstance(shape.get("function"), list):
                    extra = self._list([parse(f).value for f in shape["function"]], "tool")
                    answers = tuple(a for m in extra for a in m.answers)
                    known = self.intern(Message("tool", "", (), answers)) if answers else known
                if known is None:
                    continue
                if key:
                    self._pairs[key] = known
            found.append(known)
        return tuple(found)

    def tools(self, value: Json) -> tuple[ToolSchema, ...]:
        """Tools as they were declared to a model: OpenAI, Anthropic, Gemini, Vercel and MCP shapes."""
        key = value if isinstance(value, str) else canonical(value)
        if key not in self._tools:
            self._tools[key] = tuple(_schemas(value))
        return self._tools[key]


def _is_pair(value: list[Json]) -> bool:
    return len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES and isinstance(value[1], str)


def nested(pairs: Iterable[tuple[str, Json]]) -> Json:
    """`a.0.b` paths as dicts and lists."""
    root: dict[str, Any] = {}
    for path, item in pairs:
        at = root
        *way, last = path.split(".")
        for name in way:
            at = at.setdefault(name, {})
            if not isinstance(at, dict):
                break
        else:
            at.setdefault(last, item)
    stack: list[tuple[dict[str, Any], str | None, dict[str, Any]]] = [(root, key, root) for key in list(root)]
    order: list[tuple[dict[str, Any], str]] = []
    while stack:
        holder, name, _ = stack.pop()
        if name is not None and isinstance(holder.get(name), dict):
            order.append((holder, name))
            stack.extend((holder[name], inner, holder) for inner in list(holder[name]))
    for holder, name in reversed(order):
        inner = holder[name]
        if inner and all(key.isdecimal() for key in inner):
            holder[name] = [inner[key] for key in sorted(inner, key=int)]
    return root


def _message(value: Json, role: str) -> Message | None:
    if isinstance(value, str):
        return Message(role, value) if value else None
    if isinstance(value, list):
        if _is_pair(value):
            return Message(role_of(value[0]), value[1])
        parts = _Parts()
        parts.take(value)
        return parts.message(role)
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("kwargs"), dict) and ("lc" in value or "id" in value):
        names = value.get("id")
        name = names[-1] if isinstance(names, list) and names else None
        value = {"type": name, **value["kwargs"]}
    elif isinstance(value.get("data"), dict) and isinstance(value.get("type"), str):
        value = {"type": value["type"], **value["data"]}
    elif isinstance(value.get("message"), dict) and "role" not in value:
        value = value["message"]
        if isinstance(value.get("kwargs"), dict):
            return _message(value, role)
    kind = value.get("type")
    own = value.get("role")
    if own is None and isinstance(kind, str) and kind in _ROLES:
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
    for call in _calls(value):
        parts.request(call)
    if isinstance(value.get("function_call"), dict) and value["function_call"].get("name"):
        parts.request(value["function_call"])
    return parts.message("tool" if parts.answers and not parts.texts and not parts.requests else default)


def _calls(value: Mapping[str, Json]) -> list[Json]:
    calls = value.get("tool_calls") or value.get("toolCalls")
    if isinstance(calls, str):
        calls = parse(calls).value
    if not calls and isinstance(value.get("additional_kwargs"), dict):
        calls = value["additional_kwargs"].get("tool_calls")
    return calls if isinstance(calls, list) else []


def _string(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _unblocked(content: Json) -> Json:
    """`contents.M.message_content.{type,text}` (OpenInference) as blocks."""
    if isinstance(content, list) and content and all(isinstance(c, dict) and "message_content" in c for c in content):
        return [c["message_content"] for c in content]
    return content


def _flat(content: Json) -> Json:
    """Text blocks as one text; anything else parsed where it is a JSON object or array."""
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
        text = "\n".join(t for t in self.texts if t)
        if not (text or self.requests or self.answers):
            return None
        return Message(role, text, tuple(self.requests), tuple(self.answers))

    def request(self, call: Json) -> None:
        if not isinstance(call, dict):
            return
        call = call.get("tool_call") if isinstance(call.get("tool_call"), dict) else call
        inner = call.get("function") if isinstance(call.get("function"), dict) else call
        name = inner.get("name") or call.get("toolName") or call.get("tool.name")
        raw = next((inner[k] for k in ("arguments", "args", "input", "tool.args") if inner.get(k) is not None), None)
        parsed = parse(raw)
        identity = call.get("call_id") or call.get("id") or call.get("toolCallId") or call.get("toolUseId")
        value = {} if parsed.value is None or parsed.value == "" else parsed.value
        if isinstance(name, str) and name:
            self.requests.append(ToolRequest(_string(identity), name, value, parsed.truncated))

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
        elif isinstance(item.get("function_response") or item.get("functionResponse"), dict):
            inner = item.get("function_response") or item["functionResponse"]
            self.answers.append(
                ToolAnswer(_string(inner.get("id")), _string(inner.get("name")), _flat(inner.get("response")))
            )
        elif kind in ("tool_call", "tool_use", "tool-call", "function_call") or "tool.name" in item:
            self.request(item)
        elif kind in ("tool_call_response", "tool_result", "tool-result", "function_call_output"):
            self._answer(item)
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

    def _answer(self, item: Mapping[str, Json]) -> None:
        identity = next(
            (item[k] for k in ("tool_use_id", "toolCallId", "call_id", "tool_call_id", "id") if item.get(k)), None
        )
        content = next((item[k] for k in ("response", "result", "content", "output") if item.get(k) is not None), None)
        name = item.get("name") or item.get("toolName")
        self.answers.append(ToolAnswer(_string(identity), _string(name), _flat(content)))


def _schemas(value: Json) -> Iterable[ToolSchema]:
    value = parse(value).value
    items = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    stack = list(reversed(items))
    while stack:
        item = structured(stack.pop())
        if not isinstance(item, dict):
            continue
        declared = item.get("function_declarations") or item.get("functionDeclarations")
        if isinstance(declared, list):
            stack.extend(reversed(declared))
            continue
        inner = item.get("function") if isinstance(item.get("function"), dict) else item
        if not isinstance(inner.get("name"), str):
            continue
        keys = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema")
        schema = next((parse(inner[k]).value for k in keys if inner.get(k) is not None), None)
        description = inner.get("description")
        yield ToolSchema(
            inner["name"],
            description if isinstance(description, str) else "",
            schema if isinstance(schema, dict) else None,
        )
