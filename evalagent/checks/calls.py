"""The calls of a trace in order: which failed, which repeats which, and which failure a later step made good."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import orjson

from evalagent.checks.asked import Asked
from evalagent.checks.failures import Failure, failure_of
from evalagent.checks.wording import admits, name_words
from evalagent.model import Json, Message, Step, Trace

_NEXT = 20
"""So many later successes of one tool are looked at for the one that made a failure good."""
_OTHERS = 200
"""So many other tools are looked at for one that did the same."""
_COMPARED = 50
_MAX_LEAVES = 2_000


@dataclass(frozen=True, slots=True)
class Call:
    """A tool or hand-off step as a call."""

    step: Step
    position: int
    """Its place in the trace."""
    key: str
    """Equal for equal tool and equal arguments."""
    failure: Failure | None
    arguments: Json
    """As the model asked with them, where the call's own span holds less."""


@dataclass(frozen=True, slots=True)
class Repair:
    """How a failed call was made good."""

    by: str
    how: str


@dataclass(frozen=True, slots=True)
class Calls:
    """Everything the checks ask of the calls, found in one pass."""

    all: tuple[Call, ...]
    repairs: Mapping[str, Repair]
    """step_id of a failed call -> what made it good."""
    positions: Mapping[str, int]
    by_id: Mapping[str, Step]
    asked: Asked
    """With which arguments each call was asked for."""
    user_turns: tuple[int, ...]
    """Positions of the steps at which something new was heard from the user, ascending."""
    answering: Step | None
    """The llm step that gave the final answer."""

    def unrepaired(self) -> Iterator[Call]:
        return (call for call in self.all if call.failure is not None and call.step.step_id not in self.repairs)


def read_calls(trace: Trace) -> Calls:
    """The calls of a trace, in time linear in its content."""
    positions = {step.step_id: at for at, step in enumerate(trace.steps)}
    by_id = {step.step_id: step for step in trace.steps}
    asked = Asked(by_id)
    calls = tuple(
        Call(step, at, canonical(step.name, step.arguments), failure_of(step), asked.arguments(step))
        for at, step in enumerate(trace.steps)
        if step.kind in ("tool", "handoff") and step.executed
    )
    turns = _user_turns(trace)
    answering = _answering(trace)
    return Calls(calls, _repairs(trace, calls, turns), positions, by_id, asked, turns, answering)


def canonical(name: str, arguments: Json) -> str:
    """A text that is equal for equal calls; key order and spacing do not count."""
    value = {} if arguments is None else arguments
    try:
        return name + "\n" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError):
        try:
            return name + "\n" + json.dumps(value, sort_keys=True, default=str)
        except (TypeError, ValueError, RecursionError):
            return f"{name}\n<{id(arguments)}>"


def leaves(value: Json) -> list[tuple[str, Json]]:
    """Every scalar in a value with the key it stands under ("" in none), in order, bounded; no recursion."""
    found: list[tuple[str, Json]] = []
    todo: list[tuple[str, Json]] = [("", value)]
    while todo and len(found) < _MAX_LEAVES:
        key, item = todo.pop()
        if isinstance(item, Mapping):
            todo.extend((str(name), inner) for name, inner in reversed(list(item.items())))
        elif isinstance(item, list | tuple):
            todo.extend((key, inner) for inner in reversed(item))
        elif item is not None:
            found.append((key, item))
    return found


def fresh_messages(trace: Trace) -> Iterator[tuple[int, tuple[Message, ...]]]:
    """Position of each llm step and the messages that no earlier step was given.

    A history that only grew is told by comparing prefixes, so that a long run is not read again at every step.
    """
    seen: set[int] = set()
    last: dict[str | None, tuple[Message, ...]] = {}
    for at, step in enumerate(trace.steps):
        if step.kind != "llm":
            continue
        before = last.get(step.agent, ())
        grown = bool(before) and step.messages[: len(before)] == before
        new = tuple(m for m in (step.messages[len(before) :] if grown else step.messages) if id(m) not in seen)
        seen.update(map(id, new))
        last[step.agent] = step.messages
        yield at, new


def _user_turns(trace: Trace) -> tuple[int, ...]:
    heard: set[str] = set()
    turns: list[int] = []
    for at, new in fresh_messages(trace):
        texts = {m.text for m in new if m.role == "user" and m.text.strip()} - heard
        if texts:
            heard |= texts
            turns.append(at)
    turns.extend(at for at, step in enumerate(trace.steps) if step.kind == "human")
    return tuple(sorted(set(turns)))


def _answering(trace: Trace) -> Step | None:
    """The last llm step that spoke without asking for a call; where the answer is known, the last that said it."""
    spoke = [s for s in trace.steps if s.kind == "llm" and s.reply is not None and not s.reply.requests]
    if trace.answer:
        said = next((s for s in reversed(spoke) if s.reply and s.reply.text.strip() == trace.answer.strip()), None)
        if said is not None:
            return said
    return max(spoke, key=lambda s: (s.start_ns, s.step_id), default=None)


# --- what made a failure good ---------------------------------------------------------------------


@dataclass(slots=True)
class _Later:
    """What succeeded later than the place that a walk from the end has reached."""

    equal: dict[str, Call] = field(default_factory=dict)
    of_tool: dict[str, list[Call]] = field(default_factory=dict)
    tools: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, call: Call) -> None:
        self.equal[call.key] = call
        self.of_tool.setdefault(call.step.name, []).append(call)
        self.tools.setdefault(call.step.name, frozenset(name_words(call.step.name)))


def _repairs(trace: Trace, calls: tuple[Call, ...], turns: tuple[int, ...]) -> dict[str, Repair]:
    if not any(call.failure for call in calls):
        return {}
    told = _told_at(trace, turns)
    repairs: dict[str, Repair] = {}
    later = _Later()
    for call in reversed(calls):
        if call.failure is None:
            later.add(call)
            continue
        repair = _repair(call, call.failure, later) or told.get(call.position)
        if repair is not None:
            repairs[call.step.step_id] = repair
    return repairs


def _repair(call: Call, failure: Failure, later: _Later) -> Repair | None:
    same = later.equal.get(call.key)
    if same is not None:
        return Repair(same.step.step_id, "the same call succeeded later")
    for candidate in reversed(later.of_tool.get(call.step.name, [])[-_NEXT:]):
        if _corrects(call, failure, candidate):
            return Repair(candidate.step.step_id, "a corrected call of the same tool succeeded")
    if failure.cause == "refused":
        return None
    words = frozenset(name_words(call.step.name))
    for name, others in islice(later.tools.items(), _OTHERS):
        if name != call.step.name and (
            2 * len(words & others) > len(words | others) or _same_lookup(call, failure, name)
        ):
            return Repair(later.of_tool[name][-1].step.step_id, "a sister tool succeeded")
    mine = [value for _, value in leaves(call.step.arguments)[:_COMPARED]]
    if mine and words:
        verb = name_words(call.step.name)[0]
        for name in islice(later.tools, _OTHERS):
            if name == call.step.name or name_words(name)[:1] != [verb]:
                continue
            candidate = later.of_tool[name][-1]
            theirs = {value for _, value in leaves(candidate.step.arguments)}
            if all(value in theirs for value in mine):
                return Repair(candidate.step.step_id, "another tool of the kind succeeded with the same arguments")
    return None


def _same_lookup(call: Call, failure: Failure, name: str) -> bool:
    """Found by another way: `find_it_by_this`, `find_it_by_that`."""
    mine, theirs = name_words(call.step.name), name_words(name)
    return failure.cause == "not_found" and len(mine) > 2 and mine[:2] == theirs[:2]


def _corrects(call: Call, failure: Failure, later: Call) -> bool:
    """Whether a later success of the same tool did what this one tried: same target, or a bad argument put right."""
    mine, theirs = leaves(call.step.arguments)[:_COMPARED], set(leaves(later.step.arguments))
    if failure.cause in ("not_found", "invalid"):
        return True
    targets = [(key, value) for key, value in mine if _identifying(key, value)]
    named = [t for t in targets if set(name_words(t[0])) & set(name_words(call.step.name)) - {"id"}]
    wanted = (named or targets)[:1]
    if wanted:
        return wanted[0] in theirs
    given = dict(theirs)
    shared = sum(1 for key, value in mine if (key, value) in theirs or _respelt(value, given.get(key)))
    return 2 * shared >= len(mine)


def _respelt(value: Json, other: Json) -> bool:
    """Nearly the same text: a slip of spelling put right. Digits must not differ, since those name things."""
    if not isinstance(value, str) or not isinstance(other, str) or any(c.isdigit() for c in value + other):
        return False
    return difflib.SequenceMatcher(None, value[:100].casefold(), other[:100].casefold()).ratio() >= 0.7


def _identifying(key: str, value: Json) -> bool:
    words = name_words(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    return bool({"id", "ids", "key", "number", "no", "code", "ref", "uuid", "name"} & set(words)) or (
        isinstance(value, str) and any(c.isdigit() for c in value) and " " not in value
    )


def _told_at(trace: Trace, turns: tuple[int, ...]) -> dict[int, Repair]:
    """Position of a call -> the next step that told the user of a failure, if the user answered to that.

    Told and answered, a refusal was dealt with between the two; told at the very end, it is the end of the run.
    """
    told: dict[int, Repair] = {}
    teller: Step | None = None
    later_turns = list(turns)
    heard_after: int | None = None
    for at in range(len(trace.steps) - 1, -1, -1):
        step = trace.steps[at]
        if later_turns and later_turns[-1] == at:
            heard_after = later_turns.pop()
        if step.kind == "llm" and step.reply is not None and not step.reply.requests:
            answered = heard_after is not None and heard_after > at
            teller = step if answered and admits(step.reply.text) else None
        elif step.kind in ("tool", "handoff") and teller is not None:
            told[at] = Repair(teller.step_id, "the user was told, and went on")
    return told
