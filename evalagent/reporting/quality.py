"""How far the traces behind a result can be trusted: the quality of one, of several, and in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalagent.evaluating import damaged
from evalagent.model import Trace


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of several traces, 0 to 1; None where there is none."""

    mean: float | None
    lowest: float | None
    below_one: int
    damaged: int
    traces: int
    bystanders: int = 0
    """Traces of the services around, which are in none of the other numbers."""


def quality(traces: Sequence[Trace]) -> Quality:
    """The same in any order of the traces."""
    found = [trace.quality for trace in traces if not trace.bystander]
    return Quality(
        round(math.fsum(found) / len(found), 6) if found else None,
        min(found, default=None),
        sum(one < 1 for one in found),
        sum(damaged(trace) for trace in traces),
        len(found),
        len(traces) - len(found),
    )


def decimals(value: float | None) -> str:
    """Two decimals, rounded down: only a trace without any fault has 1.00."""
    return "–" if value is None else f"{math.floor(value * 100 + 1e-9) / 100:.2f}"


def in_words(of: Quality) -> str:
    """`1.00 in all 3` or `mean 0.97, lowest 0.87; 2 of 3 below 1`."""
    around = f"; {of.bystanders:,} more hold no step of an agent" if of.bystanders else ""
    if of.mean is None:
        return "no trace" + around
    if not of.below_one:
        return (f"{decimals(1.0)} in all {of.traces:,}" if of.traces > 1 else decimals(1.0)) + around
    if of.traces == 1:
        return decimals(of.mean) + (", damaged" if of.damaged else "") + around
    harmed = f", {of.damaged:,} damaged" if of.damaged else ""
    below = f"; {of.below_one:,} of {of.traces:,} below 1"
    return f"mean {decimals(of.mean)}, lowest {decimals(of.lowest)}{below}{harmed}{around}"
