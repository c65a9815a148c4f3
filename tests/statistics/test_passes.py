from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalagent.statistics.passes import pass_at_k, pass_hat_k

TEN_TASKS = [(c, 4) for c in (4, 3, 4, 3, 2, 4, 3, 4, 1, 4)]
counts = st.lists(st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=8)


def test_ten_tasks_of_four_runs_pass_eighty_percent_of_runs_and_half_of_all_four() -> None:
    assert pass_hat_k(TEN_TASKS, 1) == pytest.approx(0.8)
    assert pass_hat_k(TEN_TASKS, 4) == pytest.approx(0.5)
    assert pass_at_k(TEN_TASKS, 4) == pytest.approx(1.0)


def test_more_runs_than_there_were_are_not_known() -> None:
    assert pass_hat_k(TEN_TASKS, 5) is None
    assert pass_hat_k([(4, 4), (3, 3)], 4) is None
    assert pass_hat_k([], 1) is None
    assert pass_at_k([(1, 1)], 2) is None


def test_counts_that_cannot_be_are_refused() -> None:
    for bad, k in (([(3, 2)], 1), ([(-1, 2)], 1), ([(1, 2)], 0)):
        with pytest.raises(ValueError):
            pass_hat_k(bad, k)


@given(counts, st.integers(1, 6))
def test_it_equals_trying_every_choice_of_k_runs(successes, k) -> None:
    found, least = pass_hat_k(successes, k), pass_at_k(successes, k)
    if any(n < k for _, n in successes):
        assert found is None and least is None
        return
    shares, any_shares = [], []
    for c, n in successes:
        draws = list(combinations([True] * c + [False] * (n - c), k))
        shares.append(sum(all(draw) for draw in draws) / len(draws))
        any_shares.append(sum(any(draw) for draw in draws) / len(draws))
    assert found == pytest.approx(sum(shares) / len(shares))
    assert least == pytest.approx(sum(any_shares) / len(any_shares))


@given(counts)
def test_more_runs_are_never_easier(successes) -> None:
    rates = [rate for k in range(1, 7) if (rate := pass_hat_k(successes, k)) is not None]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(rates))
