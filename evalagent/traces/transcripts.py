"""Plain chat transcripts as the spans that an instrumented agent would have sent.

A transcript becomes one `invoke_agent` span, a `chat` span for each assistant message and an `execute_tool` span for
each tool result that stands in it, with the attributes of OpenTelemetry's GenAI conventions 1.37 and later. A
transcript has no clock: message k takes the k-th millisecond, and results that answer one assistant message begin
together. These times are an order and nothing else, which the spans' scope (`SCOPE`) tells: steps and traces made of
them have a start and no end, so no duration is shown. Ids are hashes of the content, so the same transcript gives the
same ids in every file; the second time that it stands in one file it is another trace.
"""

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence

import orjson

from evalagent.model import Json, Span, Status
from evalagent.traces.anyvalues import plain
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.identifiers import integer
from evalagent.traces.otlp_json import first
from evalagent.traces.transcript_messages import Turn, is_message, parts_of, turns_of

SCOPE = "evalagent.transcript"
MILLISECOND = 1_000_000
WHOLE_UP_TO = 1000
"""Messages of a transcript whose chat spans hold all that came before them: that grows with the square."""
NEWEST = 100
"""Of a longer transcript a chat span holds the first message and so many of the newest."""
MOST_INSTRUCTIONS = 100
"""Parts of system messages that a chat span holds."""


def is_transcript(value: Json) -> bool:
    """Whether this is a whole transcript: a list of messages, or an object that holds one. One message is enough to
    tell: a bad one among them costs itself alone."""
    messages = _held(value) if type(value) is dict else value
    return type(messages) is list and any(map(is_message, messages))


def _held(value: Mapping[str, Json]) -> list[Json]:
    """The messages that an object holds: under `messages` or `contents`, else what was put in and what came out."""
    for name in ("messages", "contents"):
        if type(value.get(name)) is list:
            return list(value[name])
    given, output = value.get("input"), value.get("output")
    if type(given) is not list or not any(map(is_message, given)):
        return []
    if type(output) is str:
        output = [{"role": "assistant", "content": output}]
    return [*given, *(output if type(output) is list else [] if output is None else [output])]


def read_transcript(value: Json, harvest: Harvest, seen: dict[str, int], names: list[str]) -> None:
    """One transcript. `seen` counts how often each stood in the file so far; its name is added to `names`."""
    held: Mapping[str, Json] = value if type(value) is dict else {}
    turns = _turns(held, _held(held) if held else value, harvest)
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
    system = first(held, "system", "instructions", "system_instruction", "systemInstruction")
    if type(system) is dict:
        system = system.get("parts")
    if system:
        turns.append(Turn({"role": "system", "parts": parts_of(system)}, {}))
    for number, raw in enumerate(messages):
        if not is_message(raw):
            harvest.reject(f"messages[{number}] is no message")
            continue
        try:
            for turn in turns_of(raw):
                if turn.item and turns and turns[-1].item:
                    turns[-1].message["parts"].extend(turn.message["parts"])
                else:
                    turns.append(turn)
        except BAD_CONTENT as error:
            harvest.reject(f"messages[{number}] could not be read: {error}")
    return turns


def _spans(held: Mapping[str, Json], turns: Sequence[Turn], name: str) -> list[Span]:
    trace = hashlib.sha256(name.encode()).hexdigest()[:32]

    def identity(position: int, what: str) -> str:
        return hashlib.sha256(f"{name}:{position}:{what}".encode()).hexdigest()[:16]

    root = identity(-1, "root")
    spans = [_root(held, turns, trace, root)]
    asked: dict[str, dict[str, Json]] = {}
    unnamed: dict[str, deque[dict[str, Json]]] = {}
    """Calls without an id that wait for an answer, by the tool's name."""
    system: list[Json] = []
    history: list[Json] = []
    said_once = _said_once(held)
    after = 0
    for position, turn in enumerate(turns):
        start, end = position * MILLISECOND, (position + 1) * MILLISECOND
        role, parts = turn.message["role"], turn.message["parts"]
        if role == "assistant":
            for part in parts:
                if part["type"] == "tool_call" and type(part["id"]) is str:
                    asked[part["id"]] = part
                elif part["type"] == "tool_call" and type(part["name"]) is str:
                    unnamed.setdefault(part["name"], deque()).append(part)
            shown = history if len(turns) <= WHOLE_UP_TO else history[:1] + history[max(1, len(history) - NEWEST) :]
            found = _chat(turn, said_once, system, list(shown))
            after = end
            title = _named("chat", found, "gen_ai.request.model")
            spans.append(
                Span(trace, identity(position, "chat"), root, title, start, end, attributes=found, scope=SCOPE)
            )
        elif role == "tool" and parts:
            found = _tool(parts[0], asked, unnamed)
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
    last = _last(turns)
    found: dict[str, Json] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": asked}
    if last is not None:
        found["gen_ai.output.messages"] = [last.message]
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


def _last(turns: Sequence[Turn]) -> Turn | None:
    """The model's last message, if nothing that it asked for is open: calls of a provider's own tools are answered in
    the same message."""
    answered: set[str] = set()
    for turn in reversed(turns):
        if turn.message["role"] == "assistant":
            calls = [part["id"] for part in turn.message["parts"] if part["type"] == "tool_call"]
            return turn if all(type(one) is str and one in answered for one in calls) else None
        if turn.message["role"] != "tool" or turn.raw.get("role") not in ("assistant", "ai", "model"):
            return None
        answered.update(part["id"] for part in turn.message["parts"] if type(part["id"]) is str)
    return None


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
    beside = turn.raw.get("response_metadata")
    model = turn.raw.get("model") or (first(beside, "model_name", "model") if type(beside) is dict else None)
    if type(model) is str:
        found["gen_ai.request.model"] = model
    reason = first(turn.raw, "stop_reason", "finish_reason")
    if type(reason) is str:
        found["gen_ai.response.finish_reasons"] = [reason]
    usage = first(turn.raw, "usage", "usage_metadata")
    for key, names in (
        ("gen_ai.usage.input_tokens", ("input_tokens", "prompt_tokens")),
        ("gen_ai.usage.output_tokens", ("output_tokens", "completion_tokens")),
        ("gen_ai.usage.cache_read.input_tokens", ("cache_read_input_tokens",)),
        ("gen_ai.usage.cache_creation.input_tokens", ("cache_creation_input_tokens",)),
    ):
        number = integer(first(usage, *names)) if type(usage) is dict else None
        if number is not None:
            found[key] = plain(number)
    return found


def _tool(
    part: Mapping[str, Json], asked: Mapping[str, Mapping[str, Json]], unnamed: Mapping[str, deque[dict[str, Json]]]
) -> dict[str, Json]:
    identity, name = part.get("id"), part.get("name")
    call = asked.get(identity, {}) if type(identity) is str else {}
    if not call and type(name) is str and unnamed.get(name):
        call = unnamed[name].popleft()
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.get("name") or name,
        "gen_ai.tool.call.id": identity,
        "gen_ai.tool.call.arguments": call.get("arguments"),
        "gen_ai.tool.call.result": part.get("response"),
        "error.type": "tool_error" if part.get("is_error") is True else None,
    }
    return {key: value for key, value in said.items() if value is not None}


def _named(operation: str, found: Mapping[str, Json], key: str) -> str:
    name = found.get(key)
    return f"{operation} {name}" if type(name) is str and name else operation
