"""Ids and values that come from nothing the agent was given."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import islice

from evalagent.checks.calls import Calls, leaves
from evalagent.checks.settings import Settings
from evalagent.checks.sightings import Sightings
from evalagent.checks.values import Day, amounts, days, number_of
from evalagent.checks.wording import name_words
from evalagent.model import Finding, Json, Step, Trace

_ID_WORDS = frozenset({"id", "ids", "uuid", "guid", "number", "no", "ref", "reference", "key", "code"})
_MADE_UP = frozenset(
    {
        "idempotency", "request", "correlation", "trace", "span", "session", "thread", "nonce", "client",
        "conversation", "message", "call", "run", "page", "cursor", "token", "hash", "etag", "version", "random",
        "seed", "temp", "tmp", "new", "title", "file", "path", "language", "lang", "locale", "country", "zip",
        "postal", "phone", "model", "exit", "status", "error", "format", "color", "colour", "verification",
        "confirmation", "source",
    }
)  # fmt: skip
"""Words of keys whose value an agent chooses, generates or knows of itself."""
_CODE = re.compile(r"#?(?=[^\s]*\d)[A-Za-z0-9][A-Za-z0-9_\-#./]{2,79}")
_STRICT_CODE = re.compile(
    r"\b(?:[A-Z]{1,6}[-_]?\d{3,}[A-Z0-9-]*|[A-Z]+[-_]\d+[A-Z0-9-]*|[A-Za-z]+_[A-Za-z0-9_]*\d{2,}|[0-9a-f]{8}-[0-9a-f-]{27})"
)
_LETTERS = re.compile(r"[A-Z]{5,12}")
_FACTORS = tuple(Decimal(f) for f in (100, 1000, 60, 3600, 24, 7, 12, 365, 1024, 1_000_000))
_RECENT = 60
_DEEP = 1_000
"""So many numbers of a trace are held against sums and differences; beyond that nothing is said of a number."""
_ANSWER = 100_000
_YEAR = re.compile(r"(?:19|20)\d\d")


def unseen_ids(trace: Trace, calls: Calls, seen: Sightings) -> Iterator[Finding]:
    """`id_never_seen`: an argument that is an id, and stood in nothing that was given before it was asked for."""
    for step in trace.steps:
        at = calls.positions.get(step.request_step or "")
        if step.kind != "tool" or at is None or step.truncated or seen.blind <= at:
            continue
        told: set[str] = set()
        for key, value in leaves(calls.asked.arguments(step)):
            if not _is_id(key, value) or str(value) in told or seen.knows(str(value), at):
                continue
            told.add(str(value))
            shown = f"{key or 'a value'} {str(value)[:80]!r}"
            message = f"`{step.name:.80}` is called with {shown}, which stood in nothing the agent was given"
            evidence: dict[str, Json] = {"tool": step.name, "call": step.step_id, "argument": key, "value": value}
            beside = _told_beside(trace, step, str(value), calls, seen) if step.error is None else None
            if beside:
                message += f"; the result of step {beside}, asked for at the same time, has it"
                yield _on_asker(step, "id_never_seen", "info", message, {**evidence, "told_beside": beside}, calls)
            else:
                yield _on_asker(step, "id_never_seen", "error", message, evidence, calls)


def _told_beside(trace: Trace, step: Step, value: str, calls: Calls, seen: Sightings) -> str | None:
    """The call of the same message whose result first told the value: nobody guesses an id, so that such a trace tells
    several messages as one."""
    at = seen.first(value)
    other = trace.steps[at] if at is not None else None
    if other is None or other is step or other.request_step != step.request_step or other.error is not None:
        return None
    return other.step_id


def _on_asker(step: Step, code: str, severity: str, message: str, evidence: dict[str, Json], calls: Calls) -> Finding:
    """On the model's step that asked; info if the call failed and was made good."""
    repair = calls.repairs.get(step.step_id)
    if repair is not None and severity == "error":
        severity, evidence = "info", {**evidence, "recovered_by": repair.by, "how": repair.how}
    return Finding(step.trace_id, step.request_step or step.step_id, code, severity, message, evidence)  # type: ignore[arg-type]


def _is_id(key: str, value: Json) -> bool:
    """An id by its key (`order_id`) and some digits, or by its shape alone (`ORD-4711`)."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    words = name_words(key)
    if _MADE_UP & set(words):
        return False
    named = bool(words) and (words[-1] in _ID_WORDS or (words[0] in _ID_WORDS and len(words) <= 2))
    if len(str(value)) > 100:
        return False
    text = str(value).strip()
    if isinstance(value, int):
        return named and words[-1] in ("id", "ids") and len(text.lstrip("-")) >= 3
    if named:
        return (_CODE.fullmatch(text) is not None and not _plain_number(text)) or (
            words[-1] in ("id", "ids") and (_LETTERS.fullmatch(text) is not None or (text.isdigit() and len(text) >= 3))
        )
    return _STRICT_CODE.fullmatch(text) is not None and not days(text)


def _plain_number(text: str) -> bool:
    return bool(days(text)) or (text.isdigit() and len(text) < 3)


def ungrounded_values(trace: Trace, calls: Calls, seen: Sightings, settings: Settings) -> Iterator[Finding]:
    """`ungrounded_value`: a number, amount, day or id in an argument or in the answer that comes from nowhere.

    Sums, differences, small multiples, usual conversions of units and rounding of what was seen are allowed; so are
    round numbers and days near one that was seen.
    """
    deep = [_DEEP]
    for step in trace.steps:
        at = calls.positions.get(step.request_step or "")
        if step.kind == "tool" and at is not None and not step.truncated and seen.blind > at:
            odd = [
                (key, str(value))
                for key, value in leaves(calls.asked.arguments(step))
                if _odd_argument(key, value, at, seen, settings, deep)
            ]
            if odd:
                shown = ", ".join(f"{key} {value[:40]!r}" for key, value in odd[:3])
                message = f"`{step.name:.80}` is called with {shown}, which comes from nothing the agent was given"
                evidence: dict[str, Json] = {"call": step.step_id, "values": [value for _, value in odd[:20]]}
                yield _on_asker(step, "ungrounded_value", "warning", message, evidence, calls)
    answer = calls.answering
    if answer is not None and answer.reply is not None and seen.blind > calls.positions[answer.step_id]:
        values = _odd_in_text(answer.reply.text, calls.positions[answer.step_id], seen, settings, deep)
        if values:
            shown = ", ".join(repr(v[:40]) for v in values[:3])
            message = f"the answer states {shown}, which comes from nothing the agent was given"
            yield Finding(
                trace.trace_id, answer.step_id, "ungrounded_value", "warning", message, {"values": list(values[:20])}
            )


def _odd_argument(key: str, value: Json, at: int, seen: Sightings, settings: Settings, deep: list[int]) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or _is_id(key, value):
        return False
    if set(name_words(key)) & _MADE_UP:
        return False
    if isinstance(value, str):
        found = days(value) if len(value) <= 30 else set()
        if found:
            return all(_odd_day(day, at, seen, deep) for day in found)
    number = number_of(value)
    return number is not None and _odd_number(abs(number), at, seen, settings, deep)


def _odd_in_text(text: str, at: int, seen: Sightings, settings: Settings, deep: list[int]) -> list[str]:
    odd = [
        amount.text
        for amount in amounts(text)
        if text[amount.start + len(amount.text) : amount.start + len(amount.text) + 2].strip()[:1] != "%"
        and all(_odd_number(abs(value), at, seen, settings, deep) for value in amount.values)
    ]
    odd += [
        "-".join(str(part) for part in day if part is not None)
        for day in sorted(days(text), key=str)
        if day[0] is not None and _odd_day(day, at, seen, deep)
    ]
    odd += [code for code in dict.fromkeys(_STRICT_CODE.findall(text[:_ANSWER])) if not seen.knows(code, at)]
    return odd


def _odd_number(value: Decimal, at: int, seen: Sightings, settings: Settings, deep: list[int]) -> bool:
    digits = value.normalize().as_tuple().digits
    if len(digits) < settings.digits or _YEAR.fullmatch(str(value)) or seen.has_number(value, at):
        return False
    if any(
        seen.has_number((value * f).normalize(), at) or seen.has_number((value / f).normalize(), at) for f in _FACTORS
    ):
        return False
    if seen._seen(str(value), at):
        return False
    if deep[0] <= 0:
        return False
    deep[0] -= 1
    return not _computed(value, seen.amounts_before(at, _RECENT))


def _computed(value: Decimal, known: list[Decimal]) -> bool:
    """Whether a number is a sum, difference, small multiple or share of one or two or three that were seen."""
    there = set(known)
    for one in known:
        if (one and value / one in _SMALL) or (value and one / value in _SMALL):
            return True
        if value - one in there or value + one in there:
            return True
    cents = {(a + b).normalize() for n, a in enumerate(known) for b in known[n:]}
    return any((value - one).normalize() in cents or (value + one).normalize() in cents for one in known)


_SMALL = frozenset(Decimal(n) for n in range(1, 13))


def _odd_day(day: Day, at: int, seen: Sightings, deep: list[int]) -> bool:
    """A day that was not seen and is not near one that was; with none seen, any day may be right."""
    mine = _ordinal(day)
    if mine is None or any(seen.days.get(d, at + 1) <= at for d in (day, (None, day[1], day[2]))) or deep[0] <= 0:
        return False
    deep[0] -= 1
    known = (_ordinal(other) for other, first in islice(seen.days.items(), 5_000) if first <= at)
    near = [other for other in known if other is not None]
    return bool(near) and all(abs(mine - other) > 45 for other in near)


def _ordinal(day: Day) -> int | None:
    try:
        return date(day[0], day[1], day[2]).toordinal() if day[0] is not None else None
    except ValueError:
        return None
