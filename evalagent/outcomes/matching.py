"""The values that a case may write in an expected change: literals, and a few matchers."""

import re
from collections.abc import Mapping

from evalagent.model import Json
from evalagent.outcomes.snapshots import same
from evalagent.suites import Case

MATCHERS = ("any", "contains", "one_of", "regex", "within")


def fits(wanted: Json, value: Json) -> bool:
    """Whether a value is what a case wants: a literal by typed equality, an object as a matcher.

    `{"any": true}` fits everything; `{"regex": R}` a text in which R is found; `{"contains": T}` a text that holds T;
    `{"within": [lo, hi]}` a number (or, between two texts, a text) from lo to hi, both included; `{"one_of": [...]}` a
    value that equals one of the list. An object that is no matcher (see `faults`) fits only an equal object.
    """
    if not isinstance(wanted, Mapping) or _fault(wanted):
        return same(wanted, value)
    [(matcher, operand)] = wanted.items()
    if matcher == "any":
        return True
    if matcher == "one_of":
        return any(same(option, value) for option in operand)
    if matcher == "within":
        low, high = operand
        if isinstance(low, str):
            return isinstance(value, str) and low <= value <= high
        return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if not isinstance(value, str):
        return False
    return operand in value if matcher == "contains" else re.search(operand, value) is not None


def is_any(wanted: Json) -> bool:
    """Whether a case says of a value that it may be anything, so also what it was."""
    return isinstance(wanted, Mapping) and dict(wanted) == {"any": True}


def faults(case: Case) -> tuple[str, ...]:
    """What in the expected changes of a case cannot be read, each naming the place and the way out."""
    found = []
    for number, change in enumerate(case.expected.changes or (), 1):
        for column, wanted in (change.set or change.insert or {}).items():
            fault = _fault(wanted) if isinstance(wanted, Mapping) else ""
            if fault:
                found.append(f"case {case.id}, expected change {number}, column `{column}`: {fault}")
    return tuple(found)


def _fault(wanted: Mapping[str, Json]) -> str:
    if len(wanted) != 1 or next(iter(wanted)) not in MATCHERS:
        return f"an object must be one matcher; known are {', '.join(MATCHERS)}"
    [(matcher, operand)] = wanted.items()
    if matcher == "any":
        return "" if operand is True else "`any` takes true"
    if matcher == "one_of":
        return "" if isinstance(operand, list) and operand else "`one_of` takes a list of values"
    if matcher == "within":
        return "" if _range(operand) else "`within` takes [low, high], two numbers or two texts, low first"
    if not isinstance(operand, str) or not operand:
        return f"`{matcher}` takes a text"
    if matcher == "regex":
        try:
            re.compile(operand)
        except (re.error, RecursionError, OverflowError) as error:
            return f"`regex` is not a regular expression: {error}"
    return ""


def _range(operand: Json) -> bool:
    if not isinstance(operand, list) or len(operand) != 2:
        return False
    low, high = operand
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in operand)
    return (numbers or (isinstance(low, str) and isinstance(high, str))) and bool(low <= high)
