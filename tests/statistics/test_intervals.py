import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from evalagent.statistics import intervals
from evalagent.statistics.intervals import pass_hat_k_interval, quantiles, rate_interval
from evalagent.statistics.passes import pass_hat_k

TEN_TASKS = [(c, 4) for c in (4, 3, 4, 3, 2, 4, 3, 4, 1, 4)]


def test_all_passing_leaves_room_below_as_wide_as_the_few_cases_say() -> None:
    for cases in (2, 5, 10, 40):
        everything = [(4, 4)] * cases
        for found in (rate_interval(everything), pass_hat_k_interval(everything, 4)):
            assert found.high == 1.0
            assert found.low == pytest.approx(0.025 ** (1 / cases))


def test_all_failing_leaves_room_above() -> None:
    found = rate_interval([(0, 4)] * 10)
    assert found.low == 0.0
    assert found.high == pytest.approx(1 - 0.025**0.1)


def test_one_run_a_case_gives_clopper_pearson() -> None:
    found = rate_interval([(1, 1)] * 14 + [(0, 1)] * 6)
    assert (found.low, found.high) == pytest.approx((beta.ppf(0.025, 14, 7), beta.ppf(0.975, 15, 6)))


def test_drawing_gives_what_the_closed_form_gives() -> None:
    low, high = _drawn([1.0] * 14 + [0.0] * 6)
    assert low == pytest.approx(beta.ppf(0.025, 14, 7), abs=0.01)
    assert high == pytest.approx(beta.ppf(0.975, 15, 6), abs=0.01)


def test_one_case_says_nothing_of_others() -> None:
    assert rate_interval([(3, 4)]) is None
    assert rate_interval([]) is None
    assert rate_interval([(3, 4), (0, 0)]) is None
    assert pass_hat_k_interval([(4, 4)], 4) is None
    assert pass_hat_k_interval([(4, 4), (3, 3)], 4) is None


def test_both_intervals_agree_for_one_run() -> None:
    assert rate_interval(TEN_TASKS, 7) == pass_hat_k_interval(TEN_TASKS, 1, 7)


def test_repeats_of_cases_that_never_vary_narrow_nothing() -> None:
    once, often = [(1, 1)] * 6 + [(0, 1)] * 4, [(40, 40)] * 6 + [(0, 40)] * 4
    assert rate_interval(once) == rate_interval(often)


def test_same_seed_same_interval_whatever_the_order_of_cases() -> None:
    assert pass_hat_k_interval(TEN_TASKS, 3, 5) == pass_hat_k_interval(TEN_TASKS[::-1], 3, 5)


def test_many_cases_are_drawn_in_bounded_memory_and_stay_sharp() -> None:
    found = rate_interval([(3, 4), (4, 4), (2, 4)] * 4_000)
    assert found.low < 0.75 < found.high
    assert found.high - found.low < 0.02


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.just(4)), min_size=2, max_size=12), st.integers(1, 4))
def test_the_interval_holds_the_estimate_and_stays_between_0_and_1(counts, k) -> None:
    found, rate = pass_hat_k_interval(counts, k, 1), pass_hat_k(counts, k)
    assert 0.0 <= found.low <= rate <= found.high <= 1.0
    assert found.high - found.low > 0.01


@pytest.mark.parametrize("spread", ["all alike", "varied", "all or nothing"])
@pytest.mark.parametrize("cases", [10, 20])
def test_the_interval_covers_the_truth_as_often_as_it_says(spread: str, cases: int, monkeypatch) -> None:
    """At least 93 of 100 intervals hold the true per-run rate and the true rate of four of four, for every true rate
    from one half to one. Seeded; 300 runs each, so that chance alone moves a share by 1.3 points."""
    monkeypatch.setattr(intervals, "DRAWS", 1_000)
    generator = np.random.default_rng(20)
    for rate in (0.5, 0.7, 0.8, 0.9, 0.97, 1.0):
        a, b = {"all alike": (1e9 * rate, 1e9 * (1 - rate)), "varied": (4 * rate, 4 * (1 - rate))}.get(
            spread, (0.4 * rate, 0.4 * (1 - rate))
        )
        truth = {k: np.prod([(a + i) / (a + b + i) for i in range(k)]) if rate < 1 else 1.0 for k in (1, 4)}
        held = {1: 0, 4: 0}
        for seed in range(300):
            rates = generator.beta(a, b, cases) if rate < 1 else np.ones(cases)
            counts = [(int(c), 4) for c in generator.binomial(4, rates)]
            for k, found in ((1, rate_interval(counts, seed)), (4, pass_hat_k_interval(counts, 4, seed))):
                held[k] += found.low - 1e-9 <= truth[k] <= found.high + 1e-9
        assert min(held.values()) >= 0.93 * 300, (rate, held)


def test_quantiles_are_those_between_neighbours_and_unknown_without_values() -> None:
    assert quantiles([]) == (None, None)
    assert quantiles([3.0]) == (3.0, 3.0)
    assert quantiles([4, 1, 3, 2], (0.0, 0.5, 1.0)) == (1, 2.5, 4)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0, 1))
def test_quantiles_agree_with_numpy(values, share) -> None:
    assert quantiles(values, (share,))[0] == pytest.approx(float(np.quantile(values, share)), rel=1e-9, abs=1e-6)


def _drawn(values: list[float]) -> tuple[float, float]:
    seen, unseen = intervals._weighted([(value, 1) for value in values], 3)
    return float(np.quantile(seen, 0.025)), float(np.quantile(seen + unseen, 0.975))
