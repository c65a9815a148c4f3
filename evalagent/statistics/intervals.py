"""Intervals for rates over cases, and quantiles. Cases are the sample; trials of one case are not independent.

One method for the per-run rate and for pass^k, so that the two agree at k = 1. The cases are weighted at random
(Dirichlet, the Bayesian bootstrap) together with one case that nobody ran, taken as 0 for the lower end and as 1 for
the upper: Gaffke's bound for the mean of values in [0, 1] (Gaffke 2005; Learned-Miller and Thomas 2019). It assumes
nothing of how the rates of the cases are spread, and keeps its width when all cases pass, where a plain bootstrap has
none. Where every case is 0 or 1 it is exactly Clopper-Pearson, which is then computed without drawing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING

from evalagent.statistics.passes import Counts, per_case

if TYPE_CHECKING:  # half a second that a run of one case has no use for
    import numpy as np
    from numpy.typing import NDArray

DRAWS = 10_000
_CHUNK = 2_000_000  # weights held at once, 16 MB
_WEIGHTS = 40_000_000  # weights drawn in all: many cases need fewer draws, since their means vary less


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends of an interval, in [0, 1], and how it was found."""

    low: float
    high: float
    method: str


def rate_interval(counts: Counts, seed: int = 0, confidence: float = 0.95) -> Interval | None:
    """The interval of the per-run rate, sum of c over sum of n, clustered by case; None for fewer than two cases.

    Repeats of one case narrow it only as far as the cases are alike. Same seed, same interval.
    """
    counts = [(c, n) for c, n in counts if n > 0]
    return _mean_interval([c / n for c, n in counts], [n for _, n in counts], seed, confidence)


def pass_hat_k_interval(counts: Counts, k: int, seed: int = 0, confidence: float = 0.95) -> Interval | None:
    """The interval of pass^k, resampled over cases; None where pass^k is, and for fewer than two cases."""
    values = per_case(counts, k)
    return None if values is None else _mean_interval(values, [1] * len(values), seed, confidence)


def quantiles(values: Sequence[float], at: Sequence[float] = (0.5, 0.95)) -> tuple[float | None, ...]:
    """The quantiles of some values, linear between neighbours; all None where there are no values."""
    if not values:
        return tuple(None for _ in at)
    ordered = sorted(values)
    found = []
    for share in at:
        place = share * (len(ordered) - 1)
        low = floor(place)
        high = min(low + 1, len(ordered) - 1)
        found.append(ordered[low] + (ordered[high] - ordered[low]) * (place - low))
    return tuple(found)


def _mean_interval(values: Sequence[float], sizes: Sequence[int], seed: int, confidence: float) -> Interval | None:
    """The interval of the mean of values in [0, 1], each one case's, weighted by how often that case ran."""
    if len(values) < 2:
        return None
    tail = (1 - confidence) / 2
    if all(value in (0.0, 1.0) for value in values) and len(set(sizes)) == 1:
        from scipy.special import betaincinv

        successes, cases = sum(values), len(values)
        low = float(betaincinv(successes, cases - successes + 1, tail)) if successes else 0.0
        high = float(betaincinv(successes + 1, cases - successes, 1 - tail)) if successes < cases else 1.0
        return Interval(low, high, "Clopper-Pearson over cases")
    import numpy as np

    seen, unseen = _weighted(sorted(zip(values, sizes, strict=True)), seed)
    low, high = float(np.quantile(seen, tail)), float(np.quantile(seen + unseen, 1 - tail))
    return Interval(max(low, 0.0), min(high, 1.0), "resampled over cases, with one unseen case")


def _weighted(cases: Sequence[tuple[float, int]], seed: int) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """For each draw the weighted mean of the values with the unseen case as 0, and the share of the unseen case."""
    import numpy as np

    generator = np.random.default_rng(seed)
    values = np.array([value for value, _ in cases])
    sizes = np.array([size for _, size in cases], dtype=float)
    sizes = np.append(sizes, sizes.mean())  # the unseen case would have run as often as the others
    draws = min(DRAWS, max(1_000, _WEIGHTS // len(sizes)))
    chunk = max(1, _CHUNK // len(sizes))
    seen, unseen = [], []
    for start in range(0, draws, chunk):
        weights = generator.standard_exponential((min(chunk, draws - start), len(sizes))) * sizes
        total = weights.sum(axis=1)
        seen.append(weights[:, :-1] @ values / total)
        unseen.append(weights[:, -1] / total)
    return np.concatenate(seen), np.concatenate(unseen)
