"""Readings that several dialects share: numbers, errors, tokens, graph places, names of hand-offs."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from evalagent.model import Json, Span, Tokens
from evalagent.traces import attributes as names
from evalagent.traces.observing import CONTROL_FLOW, INTERRUPTS, Observation, Place, Source
from evalagent.traces.parts import is_pair, role_of
from evalagent.traces.unwrapping import arguments, parse, result

_HANDOFF = re.compile(r"(?i)^(transfer_(to|back)_|transfer_to_agent$|handoff|hand_off|transfer_back)")
_RAISED = re.compile(r"(?:Exception: )?(?P<kind>[A-Z]\w{4,40})\(")
"""An exception told as a repr, as the status or as the message of another one (LangSmith)."""
_STACKED = re.compile(r"(?s)(?P<said>.*)\n\n(?P<kind>[A-Z]\w*)(?:: (?P=said))?")
"""JavaScript's instrumentors tell an exception as its message and its stack, which begins with kind and message."""
_HANDOFF_SPAN = re.compile(r"(?i)^handoff to (?P<to>.+)$|^(?P<from>.+?)\s*(?:→|->)\s*(?P<to2>.+)\.handoff$")


_PREFIXES = (
    names.TL_PREFIX, names.OI_INPUT_MESSAGES, names.OI_OUTPUT_MESSAGES, "gen_ai.prompt.0.", "gen_ai.completion.0.",
    "gcp.vertex.agent.", "llm.", names.CREW_PREFIX,
)  # fmt: skip


def families(span: Span) -> frozenset[str]:
    """Which of the prefixes that tell dialects apart occur among a span's keys."""
    return _families(tuple(span.attributes))


@lru_cache(maxsize=4096)
def _families(keys: tuple[str, ...]) -> frozenset[str]:
    return frozenset(prefix for prefix in _PREFIXES if any(key.startswith(prefix) for key in keys))


def text(value: Json) -> str | None:
    """A text that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def integer(value: Json) -> int | None:
    """A count as an int, also where it was written as text or float; None where it is none, or fits no 64 bits."""
    if isinstance(value, bool) or value is None:
        return None
    found: int | None = None
    if isinstance(value, int):
        found = value
    elif isinstance(value, float):
        found = int(value) if value.is_integer() else None
    elif isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        found = int(value)
    return found if found is not None and 0 <= found < 1 << 63 else None


def number(value: Json) -> float | None:
    """A finite number as a float, also where it was written as text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        found = float(value)
    elif isinstance(value, str):
        try:
            found = float(value)
        except ValueError:
            return None
    else:
        return None
    return found if found == found and abs(found) != float("inf") else None


def first(attributes: Mapping[str, Json], keys: Iterable[str]) -> Json:
    """The value of the first key that is there and not None."""
    for key in keys:
        value = attributes.get(key)
        if value is not None:
            return value
    return None


def tokens(
    attributes: Mapping[str, Json],
    inputs: Iterable[str] = names.INPUT_TOKENS,
    outputs: Iterable[str] = names.OUTPUT_TOKENS,
    reads: Iterable[str] = names.CACHE_READ_TOKENS,
    writes: Iterable[str] = names.CACHE_WRITE_TOKENS,
) -> Tokens | None:
    """The tokens as reported; None where nothing is."""
    found = Tokens(*(integer(first(attributes, keys)) for keys in (inputs, outputs, reads, writes)))
    return None if found.input is None and found.output is None else found


def failure(span: Span) -> tuple[str | None, bool]:
    """The span's hard error as one line, and whether it was interrupted on purpose. Control flow is no error."""
    named = span.attributes.get(names.ERROR_TYPE)
    if not named and not span.events and not span.status_message and span.status != "error":
        return None, False
    kinds = [str(named or "")]
    said = ""
    for event in span.events:
        if event.name == "exception":
            kind = str(event.attributes.get("exception.type") or "")
            message, raised = unstacked(str(event.attributes.get("exception.message") or ""))
            kinds += [kind, raised]
            said = ": ".join(part for part in (kind.rpartition(".")[2], message) if part)
    status, raised = unstacked(span.status_message)
    told = _RAISED.match(status or said) if span.status == "error" else None
    kinds += [raised, told["kind"] if told else ""]
    short = {kind.rpartition(".")[2] for kind in kinds if kind}
    interrupted = bool(short & INTERRUPTS)
    if short & CONTROL_FLOW:
        return None, interrupted
    if span.status == "error":
        return (status or said or next(iter(sorted(short)), "") or "error"), interrupted
    if span.status == "unset" and said:
        return said, interrupted
    return None, interrupted


def unstacked(message: str) -> tuple[str, str]:
    """An error's message without JavaScript's stack, and the kind that the stack names ("" where there is none)."""
    head, stack, _ = message[:8000].partition("\n    at ")
    if not stack:
        return message, ""
    match = _STACKED.fullmatch(head[:4000])
    return (match["said"].strip() or match["kind"], match["kind"]) if match else (head.strip(), "")


def is_handoff(name: str) -> bool:
    """Whether a tool of this name hands the conversation to another agent."""
    return bool(_HANDOFF.match(name))


def handoff_target(name: str, given: Json) -> str | None:
    """The agent that a hand-off names, in its own name or in its arguments."""
    match = _HANDOFF_SPAN.match(name)
    if match:
        return match["to"] or match["to2"]
    if isinstance(given, dict):
        for key in ("agent_name", "to_agent", "agent", "target", "to", "name"):
            if isinstance(given.get(key), str):
                return str(given[key])
    for start in ("transfer_to_", "transfer_back_to_", "handoff_to_"):
        if name.startswith(start) and name != "transfer_to_agent" and name != "handoff_to_agent":
            return name.removeprefix(start)
    return None


def handoff_span(name: str) -> bool:
    """Whether a span of this name is a hand-off by its form, `handoff to X` or `A → X.handoff`."""
    return bool(_HANDOFF_SPAN.match(name))


def place(values: Mapping[str, Json], prefix: str = "") -> Place:
    """LangGraph's metadata out of the keys that an instrumentor copied it to."""
    node = text(values.get(prefix + "langgraph_node"))
    step = integer(values.get(prefix + "langgraph_step"))
    thread = text(values.get(prefix + "thread_id"))
    if node is None and step is None and thread is None:
        return Place()
    triggers = parse(values.get(prefix + "langgraph_triggers")).value
    namespace = values.get(prefix + "langgraph_checkpoint_ns") or values.get(prefix + "checkpoint_ns") or ""
    if isinstance(triggers, str):
        triggers = [triggers]
    return Place(
        step,
        node,
        tuple(str(t) for t in triggers) if isinstance(triggers, list) else (),
        str(namespace).rpartition("|")[0],
        thread,
    )


def take_arguments(observation: Observation, value: Json) -> None:
    """A tool's arguments, unwrapped; cut ones keep their text and mark the step."""
    if value is None:
        return
    parsed = arguments(value)
    observation.arguments = value if parsed.truncated else parsed.value
    observation.truncated = observation.truncated or parsed.truncated


def take_result(observation: Observation, value: Json, encoded: bool = False) -> None:
    """A tool's result, unwrapped; a call id found in its packing is the step's where it has none.

    `encoded`: the dialect writes every result as JSON, plain text too.
    """
    if value is None:
        return
    if encoded and isinstance(value, str) and value[:1] == '"':
        value = parse(value).value
    unwrapped = result(value)
    observation.result = unwrapped.value
    observation.call_id = observation.call_id or unwrapped.call_id
    observation.truncated = observation.truncated or unwrapped.truncated


def take_messages(observation: Observation, source: Source, given: Json, reply: Json, system: Json = None) -> None:
    """A model call's messages: what it was given (instructions first) and what it answered."""
    reader = source.reader
    instructions, _ = reader.many(system, "system") if system is not None else ((), False)
    if instructions and len(instructions) > 1:
        joined = "\n".join(m.text for m in instructions)
        instructions = tuple(m for m in (reader.one({"role": "system", "content": joined}),) if m is not None)
    messages, cut = reader.many(given, "user") if given is not None else ((), False)
    answered, reply_cut = reader.many(reply, "assistant") if reply is not None else ((), False)
    if instructions and not (messages and messages[0] == instructions[0]):
        messages = (*instructions, *messages)
    observation.messages = messages or observation.messages
    observation.reply = reader.joined(answered) or observation.reply
    observation.truncated = observation.truncated or cut or reply_cut


def langchain_id(output: Json) -> str | None:
    """The model's own id of its reply, in LangChain's dump of a generation; None where it is not told."""
    if not isinstance(output, dict):
        return None
    told = output.get("llm_output")
    if isinstance(told, dict) and text(told.get("id")):
        return text(told["id"])
    value: Json = output.get("generations")
    while isinstance(value, list) and value:
        value = value[0]
    for key in ("message", "kwargs", "data", "response_metadata"):
        inner = value.get(key) if isinstance(value, dict) else None
        value = inner if isinstance(inner, dict) else value if key in ("kwargs", "data") else None
    return text(value.get("id")) if isinstance(value, dict) else None


def begin(source: Source, kind: str, name: str) -> Observation:
    """An observation with what every dialect's spans have."""
    error, interrupted = failure(source.span)
    span = source.span
    session = text(span.attributes.get(names.SESSION)) or text(span.attributes.get(names.CONVERSATION))
    return Observation(span, "", kind, name, error=error, interrupted=interrupted, session=session)


def asked(value: Json) -> str | None:
    """A container's input as the text that a person wrote: of a conversation the first of the user's."""
    return _spoken(value, "user")


def answered(value: Json) -> str | None:
    """A container's output as the text that a person would read: of a conversation the last of the assistant's."""
    return _spoken(value, "assistant")


def _spoken(value: Json, who: str) -> str | None:
    value = parse(value).value if isinstance(value, str) and value[:1] in '{["' else value
    for _ in range(6):
        if isinstance(value, str):
            return value or None
        if isinstance(value, list) and value:
            if is_pair(value):
                value = value[1]
                continue
            messages = [item for item in value if _role(item) == who]
            if not messages and any(_role(item) for item in value):
                return None
            chosen = messages or value
            value = chosen[0] if who == "user" else chosen[-1]
            continue
        if isinstance(value, dict):
            role = _role(value)
            if role is not None and role != who:
                return None
            inner = next((value[k] for k in _KEYS[who] if value.get(k)), None)
            if inner is None:
                return None
            value = inner
            continue
        return None
    return None


def _role(item: Json) -> str | None:
    """Whose message an item of a conversation is; None where it is no message."""
    if isinstance(item, list):
        return role_of(item[0], "") or None if is_pair(item) else None
    if not isinstance(item, dict):
        return None
    names_ = item.get("id")
    if "kwargs" in item and isinstance(names_, list) and names_:
        return role_of(names_[-1], "") or None
    return role_of(item.get("role") or item.get("type"), "") or None


_SHARED = ("messages", "kwargs", "data", "parts", "content", "text", "message", "value", "blocks")
_KEYS = {
    "user": ("inputs", "input", "question", "query", "q", "task", "prompt", "args", *_SHARED),
    "assistant": ("output", "outputs", "result", "response", "answer", "final_output", "raw", *_SHARED),
}
"""Where the words stand in what a container was given, and in what it gave back."""
