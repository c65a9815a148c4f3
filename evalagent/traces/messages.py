"""Chat messages out of every shape that dialects write them in, each distinct message made once a trace.

A history that continues an earlier one is read from where it goes on.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from evalagent.model import Json, Message, ToolAnswer, ToolRequest, ToolSchema
from evalagent.traces.parts import is_pair, read_message
from evalagent.traces.unwrapping import canonical, parse, structured

_REMEMBERED = 6
_CAPITALS = re.compile(r'"type":"(OBJECT|STRING|NUMBER|INTEGER|BOOLEAN|ARRAY|NULL)"')


class Reader:
    """Reads messages of one trace. Equal messages are one object; a history that continues an earlier one is read
    from where it goes on, so that n turns cost their new messages and not their n squared."""

    def __init__(self) -> None:
        self._messages: dict[Any, Message] = {}
        self._texts: list[tuple[str, tuple[Message, ...]]] = []
        self._instructions: dict[str, tuple[tuple[Message, ...], bool]] = {}
        self._pairs: dict[Any, Message] = {}
        self._tools: dict[str, tuple[ToolSchema, ...]] = {}

    def intern(self, message: Message) -> Message:
        """The one object that stands for this message."""
        if not message.requests and not message.answers:
            return self._messages.setdefault((message.role, message.text), message)
        key = (
            message.role,
            message.text,
            tuple([(r.id, r.name, canonical(r.arguments), r.truncated) for r in message.requests]),
            tuple([(a.id, a.name, _same(a.content)) for a in message.answers]),
        )
        return self._messages.setdefault(key, message)

    def many(self, value: Json, role: str = "user") -> tuple[tuple[Message, ...], bool]:
        """Every message of a list, text of a list, or one message; and whether it had been cut."""
        if isinstance(value, str):
            if role != "system":
                return self._text(value, role)
            known = self._instructions.get(value)
            if known is None:
                known = self._instructions[value] = self._text(value, role)
            return known
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

    def cut_short(self, message: Message) -> Message:
        """The message as one that was cut at its end."""
        return self._mark((message,))[0]

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
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) and not is_pair(value[0]):
            value = value[0]
        if not isinstance(value, list) or is_pair(value):
            value = [value]
        found = [read_message(item, role) for item in value]
        return tuple([self.intern(message) for message in found if message is not None])

    def one(self, value: Json, role: str = "user") -> Message | None:
        """One message; None where there is nothing in it."""
        found = read_message(value, role)
        return None if found is None else self.intern(found)

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
        made = (self._from_pairs(tuple(pairs), role) for _, pairs in sorted(groups.items()))
        found = [message for message in made if message is not None]
        for at in range(1, len(found)):
            found[at] = self._apart(found[at - 1], found[at], found[at + 1] if at + 1 < len(found) else None)
        return tuple(found)

    def _apart(self, asked: Message, told: Message, after: Message | None) -> Message:
        """The results of several calls, told as the lines of one message without any id (OpenInference, Bedrock's
        streams): one answer each, where there are as many lines as calls."""
        calls = len(asked.requests)
        if told.role != "tool" or calls < 2 or len(told.answers) != 1 or (after is not None and after.role == "tool"):
            return told
        (answer,) = told.answers
        lines = answer.content.split("\n") if isinstance(answer.content, str) else []
        if answer.id is not None or answer.name is not None or len(lines) != calls:
            return told
        return self.intern(Message("tool", "", (), tuple(ToolAnswer(None, None, line) for line in lines)))

    def _from_pairs(self, pairs: tuple[tuple[str, Json], ...], role: str) -> Message | None:
        try:
            known = self._pairs.get(pairs)
        except TypeError:
            return self._shaped(nested(pairs), role)
        if known is None:
            known = self._shaped(nested(pairs), role)
            if known is not None:
                self._pairs[pairs] = known
        return known

    def _shaped(self, shape: Json, role: str) -> Message | None:
        if isinstance(shape.get("function"), list):  # AutoGen: results beside the message
            results = self._list([parse(f).value for f in shape["function"]], "tool")
            answers = tuple(answer for message in results for answer in message.answers)
            if answers:
                return self.intern(Message("tool", "", (), answers))
        return self.one(shape.get("message", shape), role)

    def tools(self, value: Json) -> tuple[ToolSchema, ...]:
        """Tools as they were declared to a model: OpenAI, Anthropic, Gemini, Vercel and MCP shapes."""
        key = value if isinstance(value, str) else canonical(value)
        if key not in self._tools:
            self._tools[key] = tuple(_schemas(value))
        return self._tools[key]


def _same(value: Json) -> Any:
    """Equal for equal values and for no others."""
    return (value,) if type(value) is str else canonical(value)


def nested(pairs: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """`a.0.b` paths as dicts, and as lists where all keys of a level are numbers (not at the top)."""
    root: dict[str, Any] = {}
    for path, item in pairs:
        at = root
        *way, last = path.split(".")
        for name in way:
            below = at.setdefault(name, {})
            if not isinstance(below, dict):
                break
            at = below
        else:
            at.setdefault(last, item)
    holders: list[tuple[dict[str, Any], str]] = []
    todo = [(root, key) for key in root]
    while todo:
        holder, name = todo.pop()
        below = holder[name]
        if isinstance(below, dict):
            holders.append((holder, name))
            todo.extend((below, key) for key in below)
    for holder, name in reversed(holders):
        below = holder[name]
        if below and all(key.isdecimal() for key in below):
            holder[name] = [below[key] for key in sorted(below, key=int)]
    return root


def _schemas(value: Json) -> list[ToolSchema]:
    """The tools of a declaration; none where any of it was cut, since what is left would lie about the rest."""
    parsed = parse(value)
    value = parsed.value
    if parsed.truncated:
        return []
    items = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    found: list[ToolSchema] = []
    stack = list(reversed(items))
    while stack:
        item = structured(stack.pop())
        if isinstance(item, str) and item[:1] == "{":
            return []
        if not isinstance(item, dict):
            continue
        declared = item.get("function_declarations") or item.get("functionDeclarations")
        if isinstance(declared, list):
            stack.extend(reversed(declared))
            continue
        inner: dict[str, Json] = item["function"] if isinstance(item.get("function"), dict) else item
        if not isinstance(inner.get("name"), str):
            continue
        keys = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema")
        said = next((parse(inner[k]) for k in keys if inner.get(k) is not None), None)
        schema = said.value if said is not None and not said.truncated else None
        description = inner.get("description")
        found.append(
            ToolSchema(
                inner["name"],
                description if isinstance(description, str) else "",
                _lowered(schema) if isinstance(schema, dict) else None,
            )
        )
    return found


def _lowered(schema: dict[str, Json]) -> dict[str, Json]:
    """Gemini writes the types of JSON schema in capitals."""
    if not str(schema.get("type", "")).isupper():
        return schema
    text = canonical(schema)
    parsed = parse(_CAPITALS.sub(lambda match: match[0].lower(), text)).value
    return parsed if isinstance(parsed, dict) else schema
