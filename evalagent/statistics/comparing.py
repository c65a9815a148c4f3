"""Two runs of a suite, paired by case: did the agent get worse?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import hypergeom

from evalagent.statistics.intervals import Interval

DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class CaseChange:
    case_id: str
    before: tuple[int, int]
    """Passed of judged runs."""
    after: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one run to another, over the cases that both judged."""

    cases: tuple[CaseChange, ...]
    left_out: tuple[str, ...]
    """Cases that only one of the two judged: they say nothing about a change."""
    drop: float | None
    """Mean over cases of the rate before minus the rate after; None without a common case."""
    interval: Interval | None
    """95 % for the drop, in [-1, 1]; None for fewer than two common cases."""
    max_drop: float
    collapsed: tuple[str, ...] = ()
    """Cases that fell beyond chance by themselves: Fisher's exact test, one-sided, Holm's correction over the cases."""

    @property
    def worse(self) -> bool:
        """The whole interval lies beyond the drop that is allowed, or a case collapsed."""
        return bool(self.collapsed) or (self.interval is not None and self.interval.low > self.max_drop)

    @property
    def ruling(self) -> Literal["worse", "undecided", "not worse"]:
        """undecided: it fell by more than is allowed, but that may be chance; or nothing can be compared."""
        if self.worse:
            return "worse"
        return "undecided" if self.drop is None or self.drop > self.max_drop else "not worse"


def compare(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]], max_drop: float = 0.05, seed: int = 0
) -> Comparison:
    """Case id → (passed, judged) of two runs. Cases are resampled, and each case's rate is drawn from its posterior
    (Beta with Jeffreys' prior), since one or four trials are weak evidence of a rate."""
    common = sorted(c for c in before if before[c][1] and after.get(c, (0, 0))[1])
    left_out = tuple(sorted((set(before) | set(after)) - set(common)))
    changes = tuple(CaseChange(c, before[c], after[c]) for c in common)
    collapsed = _collapsed(changes)
    if not common:
        return Comparison(changes, left_out, None, None, max_drop)
    was, now = (np.array([runs[c] for c in common], dtype=float) for runs in (before, after))
    drop = float((was[:, 0] / was[:, 1] - now[:, 0] / now[:, 1]).mean())
    if len(common) < 2:
        return Comparison(changes, left_out, drop, None, max_drop, collapsed)
    random = np.random.default_rng(seed)
    chosen = random.integers(len(common), size=(DRAWS, len(common)))
    rates = [random.beta(r[chosen, 0] + 0.5, r[chosen, 1] - r[chosen, 0] + 0.5) for r in (was, now)]
    low, high = np.quantile((rates[0] - rates[1]).mean(axis=1), (0.025, 0.975))
    method = "resampled over cases, rates from their posterior"
    return Comparison(changes, left_out, drop, Interval(float(low), float(high), method), max_drop, collapsed)


def _collapsed(changes: tuple[CaseChange, ...], alpha: float = 0.05) -> tuple[str, ...]:
    """The cases whose own fall is beyond chance, of all cases together at most `alpha` by chance (Holm 1979)."""
    ordered = sorted((_chance_of_fall(change), change.case_id) for change in changes)
    found = []
    for n, (chance, case_id) in enumerate(ordered):
        if chance > alpha / (len(ordered) - n):
            break
        found.append(case_id)
    return tuple(sorted(found))


def _chance_of_fall(change: CaseChange) -> float:
    """How likely so few of the passes fall to the later run, if both runs pass alike (Fisher's exact test)."""
    (passed, n), (later, m) = change.before, change.after
    return float(hypergeom.cdf(later, n + m, passed + later, m))
