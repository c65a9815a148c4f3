"""Plain chat transcripts (OpenAI or Anthropic messages) as the spans that an instrumented agent would have sent.

A transcript becomes one `invoke_agent` span, a `chat` span for each assistant message and an `execute_tool` span for
each tool result that stands in it, with the attributes of OpenTelemetry's GenAI conventions 1.37 and later. A
transcript has no clock: message k takes the k-th millisecond, and results that answer one assistant message begin
together. Ids are hashes of the content, so the same transcript gives the same ids in every file; the second time that
it stands in one file it is another trace.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from evalagent.model import Json, Span, Status
from evalagent.traces.anyvalues import plain
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.identifiers import integer
from evalagent.traces.otlp_json import first

SCOPE = "evalagent.transcript"
MILLISECOND = 1_000_000
WHOLE_UP_TO = 1000
"""Messages of a transcript whose chat spans hold all that came before them: that grows with the square."""
NEWEST = 100
"""Of a longer transcript a chat span holds the first message and so many of the newest."""
MOST_INSTRUCTIONS = 100
"""Parts of system messages that a chat span holds."""
_ROLES = {"developer": "system", "human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}
_ITEMS = ("function_call", "function_call_output", "reasoning")


class Turn(NamedTuple):
    """One message in the form of the conventions, with what the transcript says beside it."""

    message: dict[str, Json]
    raw: Mapping[str, Json]


def is_message(value: Json) -> bool:
    """Whether this is one message of a transcript."""
    if type(value) is not dict:
        return False
    if type(value.get("role")) is str:
        return any(key in value for key in ("content", "tool_calls", "function_call", "parts", "refusal"))
    return value.get("type") in _ITEMS and any(key in value for key in ("call_id", "name", "summary"))


def is_transcript(value: Json) -> bool:
    """Whether this is a whole transcript: a list of messages, or an object that holds one. One message is enough to
    tell: a bad one among them costs itself alone."""
    messages = value.get("messages") if type(value) is dict else value
    return type(messages) is list and any(map(is_message, messages))


def read_transcript(value: Json, harvest: Harvest, seen: dict[str, int], names: list[str]) -> None:
    """One transcript. `seen` counts how often each stood in the file so far; its name is added to `names`."""
    held: Mapping[str, Json] = value if type(value) is dict else {}
    turns = _turns(held, held.get("messages") if held else value, harvest)
    if not turns:
        return
    digest = hashlib.sha256(
        orjson.dumps([plain(held.get("id")), [turn.message for turn in turns]], option=orjson.OPT_SORT_KEYS)
    )
    name = digest.hexdigest()
    seen[name] = seen.get(name, 0) + 1
    names.append(name)
    harvest.spans.extend(_spans(held, turns, f"{name}:{seen[name]}"))


def _turns(held: Mapping[str, Json], messages: Json, harvest: Harvest) -> list[Turn]:
    turns: list[Turn] = []
    system = held.get("system")
    if system:
        turns.append(Turn({"role": "system", "parts": _parts(system)}, {}))
    for number, raw in enumerate(messages):
        if not is_message(raw):
            harvest.reject(f"messages[{number}] is no message")
            continue
        try:
            turns.extend(_message(raw))
        except BAD_CONTENT as error:
            harvest.reject(f"messages[{number}] could not be read: {error}")
    return turns


def _message(raw: Mapping[str, Json]) -> list[Turn]:
    """A message; an Anthropic user message with tool results comes apart into those and what the user said."""
    kind = raw.get("type")
    if raw.get("role") is None and kind == "function_call":
        call = {
            "type": "tool_call",
            "id": raw.get("call_id"),
            "name": raw.get("name"),
            "arguments": plain(raw.get("arguments")),
        }
        return [Turn({"role": "assistant", "parts": [call]}, raw)]
    if raw.get("role") is None and kind == "function_call_output":
        return [Turn({"role": "tool", "parts": [_answer(raw.get("call_id"), raw.get("output"))]}, raw)]
    if raw.get("role") is None:
        return [
            Turn({"role": "assistant", "parts": [{"type": "reasoning", "content": plain(raw.get("summary"))}]}, raw)
        ]
    role = str(raw["role"]).lower()
    role = _ROLES.get(role, role)
    content = first(raw, "content", "parts")
    if role == "tool":
        return [Turn({"role": "tool", "parts": [_answer(raw.get("tool_call_id"), content, raw.get("name"))]}, raw)]
    parts = _parts(content)
    if role == "assistant":
        parts.extend(_calls(raw))
        if raw.get("refusal"):
            parts.append({"type": "text", "content": plain(raw["refusal"])})
    answers = [part for part in parts if part["type"] == "tool_call_response"]
    others = [part for part in parts if part["type"] != "tool_call_response"]
    turns = [Turn({"role": "tool", "parts": [answer]}, raw) for answer in answers]
    return [*turns, Turn({"role": role, "parts": others}, raw)] if others or not turns else turns


def _parts(content: Json) -> list[dict[str, Json]]:
    if content is None or content == "":
        return []
    if type(content) is not list:
        return [{"type": "text", "content": content if type(content) is str else plain(content)}]
    return [_part(block) for block in content]


def _part(block: Json) -> dict[str, Json]:
    if type(block) is not dict:
        return {"type": "text", "content": plain(block)}
    kind = block.get("type")
    if kind in ("tool_use", "tool_call"):
        arguments = first(block, "input", "arguments")
        return {
            "type": "tool_call",
            "id": plain(block.get("id")),
            "name": plain(block.get("name")),
            "arguments": plain(arguments),
        }
    if kind in ("tool_result", "tool_call_response"):
        answer = _answer(first(block, "tool_use_id", "id"), first(block, "content", "response", "result"))
        return answer | {"is_error": True} if block.get("is_error") is True else answer
    if kind in ("thinking", "reasoning"):
        return {"type": "reasoning", "content": plain(first(block, "thinking", "content", "text"))}
    text = first(block, "text", "content", "input_text", "output_text")
    if type(text) is str:
        return {"type": "text", "content": text}
    return {"type": kind if type(kind) is str else "unknown", "content": plain(block)}


def _answer(identity: Json, content: Json, name: Json = None) -> dict[str, Json]:
    """A tool's result; a list of text blocks is their text."""
    if type(content) is list and content and all(type(b) is dict and type(b.get("text")) is str for b in content):
        content = "\n".join(block["text"] for block in content)
    answer = {"type": "tool_call_response", "id": plain(identity), "response": plain(content)}
    return answer | {"name": name} if type(name) is str and name else answer


def _calls(raw: Mapping[str, Json]) -> list[dict[str, Json]]:
    calls = raw.get("tool_calls")
    asked = [call for call in calls if type(call) is dict] if type(calls) is list else []
    if type(raw.get("function_call")) is dict:
        asked.append({"function": raw["function_call"]})
    found = []
    for call in asked:
        function = call.get("function")
        inside = function if type(function) is dict else call
        arguments = first(inside, "arguments", "args", "input")
        found.append(
            {
                "type": "tool_call",
                "id": plain(call.get("id")),
                "name": plain(inside.get("name")),
                "arguments": plain(arguments),
            }
        )
    return found


def _spans(held: Mapping[str, Json], turns: Sequence[Turn], name: str) -> list[Span]:
    trace = hashlib.sha256(name.encode()).hexdigest()[:32]

    def identity(position: int, what: str) -> str:
        return hashlib.sha256(f"{name}:{position}:{what}".encode()).hexdigest()[:16]

    root = identity(-1, "root")
    spans = [_root(held, turns, trace, root)]
    asked: dict[Json, dict[str, Json]] = {}
    system: list[Json] = []
    history: list[Json] = []
    said_once = _said_once(held)
    after = 0
    for position, turn in enumerate(turns):
        start, end = position * MILLISECOND, (position + 1) * MILLISECOND
        role, parts = turn.message["role"], turn.message["parts"]
        if role == "assistant":
            asked |= {part["id"]: part for part in parts if part["type"] == "tool_call" and type(part["id"]) is str}
            shown = history if len(turns) <= WHOLE_UP_TO else history[:1] + history[max(1, len(history) - NEWEST) :]
            found = _chat(turn, said_once, system, list(shown))
            after = end
            title = _named("chat", found, "gen_ai.request.model")
            spans.append(
                Span(trace, identity(position, "chat"), root, title, start, end, attributes=found, scope=SCOPE)
            )
        elif role == "tool" and parts:
            found = _tool(parts[0], asked)
            bad = parts[0].get("is_error") is True
            state: Status = "error" if bad else "unset"
            said = str(parts[0].get("response") or "")[:500] if bad else ""
            title = _named("execute_tool", found, "gen_ai.tool.name")
            own = identity(position, "tool")
            spans.append(Span(trace, own, root, title, after or start, end, state, said, found, scope=SCOPE))
        if role == "system":
            system = [*system, *parts] if len(system) < MOST_INSTRUCTIONS else system
        else:
            history.append(turn.message)
    return spans


def _root(held: Mapping[str, Json], turns: Sequence[Turn], trace: str, root: str) -> Span:
    asked = []
    for turn in turns:
        if turn.message["role"] == "assistant":
            break
        if turn.message["role"] == "user":
            asked.append(turn.message)
    last = turns[-1].message if turns and turns[-1].message["role"] == "assistant" else None
    final = last is not None and all(part["type"] != "tool_call" for part in last["parts"])
    found: dict[str, Json] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": asked}
    if final:
        found["gen_ai.output.messages"] = [last]
    for key, names in (
        ("gen_ai.agent.name", ("agent", "agent_name")),
        ("gen_ai.conversation.id", ("conversation_id", "session_id", "id")),
    ):
        value = first(held, *names)
        if isinstance(value, str | int) and not isinstance(value, bool):
            found[key] = str(value)
    end = max(len(turns), 1) * MILLISECOND
    return Span(
        trace, root, None, _named("invoke_agent", found, "gen_ai.agent.name"), 0, end, attributes=found, scope=SCOPE
    )


def _said_once(held: Mapping[str, Json]) -> dict[str, Json]:
    """What a transcript says of all its model calls: the model and the tools that it had."""
    found: dict[str, Json] = {}
    if type(held.get("model")) is str:
        found["gen_ai.request.model"] = held["model"]
    if type(held.get("tools")) is list:
        found["gen_ai.tool.definitions"] = plain(held["tools"])
    return found


def _chat(turn: Turn, said_once: Mapping[str, Json], system: list[Json], history: list[Json]) -> dict[str, Json]:
    found: dict[str, Json] = {
        "gen_ai.operation.name": "chat",
        **said_once,
        "gen_ai.input.messages": history,
        "gen_ai.output.messages": [turn.message],
    }
    if system:
        found["gen_ai.system_instructions"] = system
    if type(turn.raw.get("model")) is str:
        found["gen_ai.request.model"] = turn.raw["model"]
    reason = first(turn.raw, "stop_reason", "finish_reason")
    if type(reason) is str:
        found["gen_ai.response.finish_reasons"] = [reason]
    usage = turn.raw.get("usage")
    for key, names in (
        ("gen_ai.usage.input_tokens", ("input_tokens", "prompt_tokens")),
        ("gen_ai.usage.output_tokens", ("output_tokens", "completion_tokens")),
    ):
        number = integer(first(usage, *names)) if type(usage) is dict else None
        if number is not None:
            found[key] = plain(number)
    return found


def _tool(part: Mapping[str, Json], asked: Mapping[Json, Mapping[str, Json]]) -> dict[str, Json]:
    identity = part.get("id")
    call = asked.get(identity, {}) if type(identity) is str else {}
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.get("name") or part.get("name"),
        "gen_ai.tool.call.id": identity,
        "gen_ai.tool.call.arguments": call.get("arguments"),
        "gen_ai.tool.call.result": part.get("response"),
        "error.type": "tool_error" if part.get("is_error") is True else None,
    }
    return {key: value for key, value in said.items() if value is not None}


def _named(operation: str, found: Mapping[str, Json], key: str) -> str:
    name = found.get(key)
    return f"{operation} {name}" if type(name) is str and name else operation
