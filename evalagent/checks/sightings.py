"""Everything the agent was given, indexed once: which token, number or day stood where first.

Given is what came from outside the models of the trace: system and user texts, results, documents, declared tools,
and what code put into calls on its own. What a model made up is not given by its saying so twice.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

from evalagent.checks.calls import fresh_messages
from evalagent.checks.values import Day, amounts_and_days
from evalagent.model import Expectation, Json, Message, Trace

_WORD = re.compile(r"\w(?:[\w\-./#:@+]*\w)?")
_RUN = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d{3,}")
_ESCAPES = re.compile(r"\\[nrtu/\"]")
_STRIP = re.compile(r"[\W_]+")


@dataclass(slots=True)
class Sightings:
    """First positions. Position -1 is before the first step."""

    tokens: dict[str, int] = field(default_factory=dict)
    numbers: dict[Decimal, int] = field(default_factory=dict)
    days: dict[Day, int] = field(default_factory=dict)
    amounts: list[tuple[int, Decimal]] = field(default_factory=list)
    """Distinct amounts in the order of their first sighting."""
    read: set[str] = field(default_factory=set)
    """Texts taken in already: a result stands in the call and again in every history after it."""
    blind: int = 1 << 60
    """From this position on something that was given is not in the trace, so that absence proves nothing."""

    def knows(self, name: str, at: int) -> bool:
        """Whether an id stood in what was given up to a position: whole, or in pieces that hold all its digits."""
        whole = squeezed(name)
        if not whole or self._seen(whole, at):
            return True
        runs = _RUN.findall(name.casefold())
        telling = [run for run in runs if any(c.isdigit() for c in run)] or runs
        return all(self._seen(run, at) for run in telling)

    def first(self, name: str) -> int | None:
        """Where an id first stood in what was given, whole; None if nowhere, or before the first step."""
        at = self.tokens.get(squeezed(name), -1)
        return at if at >= 0 else None

    def _seen(self, token: str, at: int) -> bool:
        return self.tokens.get(token, at + 1) <= at

    def has_number(self, value: Decimal, at: int) -> bool:
        return self.numbers.get(value, at + 1) <= at

    def amounts_before(self, at: int, many: int) -> list[Decimal]:
        """The latest distinct amounts seen up to a position."""
        end = bisect_right(self.amounts, (at, Decimal("Infinity")))
        return [value for _, value in self.amounts[max(0, end - many) : end]]

    def add(self, value: Json, at: int) -> None:
        """Takes in a value with all that is nested in it, keys too."""
        todo = [value]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                self._add_text(item, at)
            elif isinstance(item, Mapping):
                for key, inner in item.items():
                    self._add_text(str(key), at, plain=True)
                    todo.append(inner)
            elif isinstance(item, list | tuple):
                todo.extend(item)
            elif isinstance(item, int | float) and not isinstance(item, bool):
                self._add_text(str(item), at)

    def _add_text(self, text: str, at: int, plain: bool = False) -> None:
        if text in self.read:
            return
        if not plain:
            self.read.add(text)
        if "\\" in text:
            text = _ESCAPES.sub(" ", text)
        tokens = self.tokens
        for word in _WORD.findall(text):
            low = word.casefold()
            if low.isalnum():
                tokens.setdefault(low, at)
            else:
                tokens.setdefault(_STRIP.sub("", low), at)
                for run in _RUN.findall(low):
                    tokens.setdefault(run, at)
            if not low.isalpha() and not low.isdigit():
                for digits in _DIGITS.findall(low):
                    tokens.setdefault(digits, at)
        if plain or _DIGIT.search(text) is None:
            return
        found, named = amounts_and_days(text)
        for amount in found:
            for value in amount.values:
                self._add_number(abs(value), at)
        for day in sorted(named, key=str):
            self.days.setdefault(day, at)

    def _add_number(self, value: Decimal, at: int) -> None:
        if value in self.numbers:
            return
        self.numbers[value] = at
        self.amounts.append((at, value))
        if value != value.to_integral_value() and abs(value) < 10**12:
            for places in ("1", "0.1", "0.01"):
                self.numbers.setdefault(value.quantize(Decimal(places), ROUND_HALF_UP).normalize(), at)


def squeezed(text: str) -> str:
    """An id without case, `#`, spaces and punctuation."""
    return _STRIP.sub("", text.casefold())


def read_sightings(trace: Trace, expectation: Expectation) -> Sightings:
    """One pass over what was given, in the order of the steps."""
    seen = Sightings()
    for text in (trace.task, expectation.input_text):
        if text:
            seen.add(text, -1)
    replies = {s.reply.text for s in trace.steps if s.kind == "llm" and s.reply is not None}
    fresh = dict(fresh_messages(trace))
    lists: set[int] = set()
    for at, step in enumerate(trace.steps):
        if step.kind == "llm":
            for message in fresh.get(at, ()):
                _add_message(seen, message, at, replies)
            if step.tools and id(step.tools) not in lists:
                lists.add(id(step.tools))
                for tool in step.tools:
                    seen.add([tool.name, tool.description, tool.parameters], at)
            if not step.content or step.truncated:
                seen.blind = min(seen.blind, at)
            continue
        seen.add(step.result, at)
        if step.kind in ("retrieval", "memory", "human", "other", "node", "agent", "guardrail"):
            seen.add(step.output, at)
        if step.request_step is None:
            seen.add(step.arguments, at)
            seen.add(step.input, at)
        if step.error is not None:
            seen.add(step.error, at)
        # a result that a later message holds whole is not lost, whatever its own span left out
        if (
            step.executed
            and not step.answered_in
            and (step.truncated or not step.content or (step.result is None and step.error is None))
        ):
            seen.blind = min(seen.blind, at)
    return seen


def _add_message(seen: Sightings, message: Message, at: int, replies: set[str]) -> None:
    # an assistant message that no step of the trace wrote came from outside: an earlier session, an example
    if message.role != "assistant" or (message.text not in replies and message.text):
        seen.add(message.text, at)
        for request in message.requests if message.text not in replies else ():
            seen.add(request.arguments, at)
    for answer in message.answers:
        seen.add(answer.content, at)
