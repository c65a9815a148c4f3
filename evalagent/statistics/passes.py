"""Per-case successes turned into the rates of k runs."""

from collections.abc import Sequence
from math import comb

Counts = Sequence[tuple[int, int]]
"""(c, n) for each case: c successes of n judged trials."""


def pass_hat_k(counts: Counts, k: int) -> float | None:
    """The chance that k runs of a case all succeed, averaged over cases: mean of C(c, k) / C(n, k).

    Unbiased for the mean of p^k (Yao et al. 2024, tau-bench). None without cases, or where a case has fewer than k
    trials: it is not known then. ValueError for k < 1 or counts that cannot be.
    """
    values = per_case(counts, k)
    return None if values is None else sum(values) / len(values)


def pass_at_k(counts: Counts, k: int) -> float | None:
    """The chance that at least one of k runs succeeds, averaged over cases: mean of 1 - C(n - c, k) / C(n, k).

    Unbiased (Chen et al. 2021). None and ValueError as for `pass_hat_k`.
    """
    failures = per_case([(n - c, n) for c, n in counts], k)
    return None if failures is None else 1 - sum(failures) / len(failures)


def per_case(counts: Counts, k: int) -> list[float] | None:
    """C(c, k) / C(n, k) for each case; None without cases or with a case of fewer than k trials."""
    if k < 1:
        raise ValueError(f"k is {k}; it must be at least 1")
    for c, n in counts:
        if not 0 <= c <= n:
            raise ValueError(f"{c} successes of {n} trials cannot be")
    if not counts or any(n < k for _, n in counts):
        return None
    return [comb(c, k) / comb(n, k) for c, n in counts]
