"""Values as marks to look up: what was passed from one call to the next is told by equal marks.

A mark is a value whatever its spelling: numbers by size, texts without case. A whole mark is a value as it stands under
a key or in a list; the pieces of a text are the words that a value may have been written into.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from evalagent.checks.calls import Calls, leaves
from evalagent.model import Json, Trace

_LONG = 2_000
_PIECES = re.compile(r"[^\s,;|(){}\[\]<>\"'=]+")
_NOTHING: frozenset[str] = frozenset()


def whole(value: Json) -> frozenset[str]:
    """The marks of every scalar in a value; truth values and nothing have none."""
    found: set[str] = set()
    for _, item in leaves(value):
        _add(found, item)
    found.discard("")
    return frozenset(found)


def pieces(value: Json) -> frozenset[str]:
    """The marks of every scalar in a value and of the words in its texts."""
    found: set[str] = set()
    for _, item in leaves(value):
        _add(found, item)
        if isinstance(item, str):
            found.update(_piece(word) for word in _PIECES.findall(item[: 50 * _LONG].casefold()))
    found.discard("")
    return frozenset(found)


def telling(marks: Iterable[str]) -> frozenset[str]:
    """Those that are hardly equal by chance: at least three characters, and a digit, a sign or some length in them."""
    return frozenset(m for m in marks if len(m) >= 3 and (len(m) >= 5 or not m.isalpha()))


def _add(found: set[str], value: Json) -> None:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        found.add(_number(value))
    elif isinstance(value, str):
        text = value.strip().casefold()
        found.add(_number(float(text)) if _is_number(text) else text[:_LONG])


def _piece(text: str) -> str:
    bare = text.strip(".:!?*`$€£#")
    return _number(float(bare)) if _is_number(bare) else bare


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).removeprefix("-").isdecimal() and len(text) < 20


def _number(value: int | float) -> str:
    return f"{value:.10g}" if abs(value) < 1e15 else str(value)


@dataclass(slots=True)
class Origins:
    """Where each value that passed through a call was first: asked for by a model, or brought by a result."""

    task: frozenset[str]
    asked: dict[str, int] = field(default_factory=dict)
    """mark -> position of the first call whose arguments hold it as a value of its own."""
    seen: dict[str, int] = field(default_factory=dict)
    """mark -> position of the first call whose arguments or result hold it."""

    def inherited(self, marks: Iterable[str], before: int) -> bool:
        """Whether one of these values, not given by the task, was in a call before this position."""
        return any(m not in self.task and self.seen.get(m, before) < before for m in telling(marks))

    def picked(self, wrong: Iterable[str], right: Iterable[str], at: int) -> int | None:
        """Position of the first call that asked for a wrong value which the call at `at` acted on.

        None where a call up to there asked for the right one as well: then the choice between them came later.
        """
        if any(self.asked.get(m, at + 1) <= at for m in right):
            return None
        places = [self.asked[m] for m in telling(wrong) if self.asked.get(m, at) < at]
        return min(places, default=None)


def read_origins(trace: Trace, calls: Calls) -> Origins:
    """One pass over the calls."""
    origins = Origins(pieces(trace.task) if trace.task else _NOTHING)
    for call in calls.all:
        arguments = whole(call.arguments)
        for mark in arguments:
            origins.asked.setdefault(mark, call.position)
            origins.seen.setdefault(mark, call.position)
        for mark in whole(call.step.result):
            origins.seen.setdefault(mark, call.position)
    return origins
