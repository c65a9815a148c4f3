"""Two runs of a suite, paired by case: did the agent get worse?"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

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

    @property
    def worse(self) -> bool:
        """Only when the whole interval lies beyond the drop that is allowed."""
        return self.interval is not None and self.interval.low > self.max_drop


def compare(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]], max_drop: float = 0.05, seed: int = 0
) -> Comparison:
    """Case id → (passed, judged) of two runs. Cases are resampled, and each case's rate is drawn from its posterior
    (Beta with Jeffreys' prior), since one or four trials are weak evidence of a rate."""
    common = sorted(c for c in before if before[c][1] and after.get(c, (0, 0))[1])
    left_out = tuple(sorted((set(before) | set(after)) - set(common)))
    changes = tuple(CaseChange(c, before[c], after[c]) for c in common)
    if not common:
        return Comparison(changes, left_out, None, None, max_drop)
    was, now = (np.array([runs[c] for c in common], dtype=float) for runs in (before, after))
    drop = float((was[:, 0] / was[:, 1] - now[:, 0] / now[:, 1]).mean())
    if len(common) < 2:
        return Comparison(changes, left_out, drop, None, max_drop)
    random = np.random.default_rng(seed)
    chosen = random.integers(len(common), size=(DRAWS, len(common)))
    rates = [random.beta(r[chosen, 0] + 0.5, r[chosen, 1] - r[chosen, 0] + 0.5) for r in (was, now)]
    low, high = np.quantile((rates[0] - rates[1]).mean(axis=1), (0.025, 0.975))
    return Comparison(
        changes,
        left_out,
        drop,
        Interval(float(low), float(high), "resampled over cases, rates from their posterior"),
        max_drop,
    )
