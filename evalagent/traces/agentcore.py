"""What AWS's distribution of OpenTelemetry takes out of spans, put back (Amazon Bedrock AgentCore, CloudWatch).

It moves whatever users, models and tools said out of a span's attributes and events into one log record of that
span, with the body `{"input": {"messages": […]}, "output": {"messages": […]}}`. There a message of the role assistant
stands under `output`, also where it was history; of several events of one name the last is left; which attribute a
text came from is not said, and follows from the order (whole attributes first, then numbered ones by name and number)
and from what was left on the span. Seen: aws-opentelemetry-distro 0.21 with Strands, OpenInference, OpenLLMetry and
the GenAI conventions.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from evalagent.model import Event, Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.unwrapping import structured

_NUMBERED = re.compile(
    r"((llm\.(?:input|output)_messages|gen_ai\.(?:prompt|completion))\.([0-9]{1,6})\.(?:message\.)?)role"
).fullmatch
_ASKING = re.compile(
    r"((?:llm\.(?:input|output)_messages|gen_ai\.(?:prompt|completion))\.[0-9]{1,6}\.(?:message\.)?)"
    r"(?:tool_calls\.|function_call).*",
    re.DOTALL,
).fullmatch


class _Message(NamedTuple):
    role: str
    content: Json


class _Entry(NamedTuple):
    """A numbered message of a span whose text was taken out."""

    prefix: str
    role: str
    asks: bool
    """Whether it calls tools: such a message had no text, mostly."""


def restored(span: Span, events: tuple[Event, ...]) -> tuple[Span, tuple[Event, ...]]:
    """The span and its events with what a log record of theirs says put back; as they are where there is none such.

    What the span says itself is never overwritten.
    """
    told = [event for event in events if _speaks(event.attributes)]
    if not told:
        return span, events
    found = dict(span.attributes)
    more: list[Event] = []
    for event in told:
        given, answered = (
            _messages(event.attributes.get("input"), "user"),
            _messages(event.attributes.get("output"), "assistant"),
        )
        more.extend(_events(event.time_ns, given, answered))
        texts = [[one for one in side if type(one.content) is not dict] for side in (given, answered)]
        loose = _attributes(found, texts[0], texts[1])
        if loose:
            more.append(Event(names.EVENT_DETAILS, event.time_ns, loose))
    kept = [event for event in events if not _speaks(event.attributes)]
    return replace(span, attributes=found), (*kept, *more)


def _speaks(told: Mapping[str, Json]) -> bool:
    sides = [told[name] for name in ("input", "output") if name in told]
    return any(type(side) is dict and type(side.get("messages")) is list for side in sides)


def _messages(side: Json, role: str) -> list[_Message]:
    held = side.get("messages") if type(side) is dict else None
    return [
        _Message(one["role"] if type(one.get("role")) is str else role, one.get("content"))
        for one in (held if type(held) is list else ())
        if type(one) is dict
    ]


def _events(when: int, given: Sequence[_Message], answered: Sequence[_Message]) -> Iterable[Event]:
    """What was a span event: its attributes are the content. What the model said before stands among the answers."""
    history = [one for one in answered if type(one.content) is dict and "message" not in one.content]
    order = {"system": 0, "user": 1, "assistant": 2, "tool": 3}
    said = [one for one in (*given, *history) if type(one.content) is dict]
    for one in sorted(said, key=lambda one: order.get(one.role, 1)):
        yield Event(f"gen_ai.{one.role}.message", when, one.content)
    for one in answered:
        if type(one.content) is dict and "message" in one.content:
            yield Event(names.EVENT_CHOICE, when, one.content)


def _attributes(found: dict[str, Json], given: list[_Message], answered: list[_Message]) -> dict[str, Json]:
    """Put texts back where they were; what has no such place, as the messages of an event."""
    inputs, outputs = deque(given), deque(answered)
    _conversations(found, inputs, outputs)
    numbered = _entries(found)
    whole: tuple[str, str] | None = None
    if names.LS_KIND in found:
        whole = (names.PROMPT, names.COMPLETION)
    elif names.OI_KIND in found or any(key.startswith("llm.input_messages.") for key in found):
        whole = (names.OI_INPUT, names.OI_OUTPUT)
    elif any(key.startswith(names.TL_PREFIX) for key in found):
        whole = (names.TL_INPUT, names.TL_OUTPUT)
    if whole is not None:
        for key, side, role in ((whole[0], inputs, "user"), (whole[1], outputs, "assistant")):
            spare = len(side) > sum(_stands_in(entry, role) for entry in numbered)
            if side and side[0].role == role and (spare or _is_json(side[0].content)):
                found.setdefault(key, side.popleft().content)
    waiting = [*_placed(found, numbered, "llm.input", inputs), *_placed(found, numbered, "llm.output", outputs)]
    by_role: dict[str, list[_Message]] = {}
    for one in waiting:
        by_role.setdefault(one.role, []).append(one)
    waiting = []
    for role, told in by_role.items():
        waiting += _placed(found, [entry for entry in numbered if entry.role == role], "gen_ai.", told)
    if not waiting:
        return {}
    if whole is None and names.TOOL_NAME in found and len(waiting) == 2:
        found.setdefault(names.TOOL_ARGUMENTS, waiting[0].content)
        found.setdefault(names.TOOL_RESULT, waiting[1].content)
        return {}
    asked = [{"role": one.role, "content": one.content} for one in waiting if one.role != "assistant"]
    said = [{"role": one.role, "content": one.content} for one in waiting if one.role == "assistant"]
    return {key: side for key, side in ((names.INPUT_MESSAGES, asked), (names.OUTPUT_MESSAGES, said)) if side}


def _conversations(found: dict[str, Json], inputs: deque[_Message], outputs: deque[_Message]) -> None:
    """Whole conversations of the GenAI conventions, and instructions."""
    for side, key in ((inputs, names.INPUT_MESSAGES), (outputs, names.OUTPUT_MESSAGES)):
        for _ in range(len(side)):
            one = side.popleft()
            place = _conversation(one, key)
            if place is None:
                side.append(one)
            else:
                found.setdefault(place, one.content)


def _conversation(one: _Message, key: str) -> str | None:
    """Where a text stood that is a whole conversation or the instructions; None where it is another."""
    value = structured(one.content)
    if type(value) is not list or not value or not all(type(item) is dict for item in value):
        return None
    if any("role" in item for item in value):
        return key
    return names.SYSTEM_INSTRUCTIONS if one.role == "system" and all("type" in item for item in value) else None


def _entries(found: Mapping[str, Json]) -> list[_Entry]:
    """The numbered messages that the span still names, in the order in which their texts were taken out."""
    asking = {match.group(1) for match in map(_ASKING, found) if match}
    entries = []
    for key, role in found.items():
        match = _NUMBERED(key)
        if match and type(role) is str and f"{match.group(1)}content" not in found:
            prefix, kind, number = match.groups()
            entries.append((kind, int(number), _Entry(prefix, role, prefix in asking)))
    entries.sort(key=lambda entry: entry[:2])
    return [entry for _, _, entry in entries]


def _stands_in(entry: _Entry, role: str) -> bool:
    """Whether the text of a numbered message stands among the answers (role assistant) or among what was given. Where
    it is OpenInference's, that follows from the attribute and not from the message's role, which is lost."""
    if entry.prefix.startswith("llm."):
        return entry.prefix.startswith("llm.output") == (role == "assistant")
    return entry.role == role


def _placed(found: dict[str, Json], entries: list[_Entry], start: str, texts: Iterable[_Message]) -> list[_Message]:
    """Give numbered messages of one kind their texts; the texts for which there is no such message."""
    told = list(texts)
    places = [entry for entry in entries if entry.prefix.startswith(start)]
    chosen = _chosen(places, len(told))
    for place, one in zip(chosen, told, strict=False):
        found.setdefault(f"{place.prefix}content", one.content)
    return told[len(chosen) :]


def _chosen(places: list[_Entry], count: int) -> list[_Entry]:
    """Which of the messages had a text: if there are fewer texts than messages, those that call no tool."""
    spare = len(places) - count
    found = []
    for place in places:
        if spare > 0 and place.asks:
            spare -= 1
        else:
            found.append(place)
    return found


def _is_json(value: Json) -> bool:
    return type(value) is str and value[:1] in ("{", "[")
