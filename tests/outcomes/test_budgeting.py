from evalagent.outcomes.budgeting import over_budget, unknown_budget
from evalagent.suites import Budgets

LIMITS = Budgets(steps=15, tokens=20_000, cost_usd=0.08, wall_s=60)


def test_each_limit_that_is_exceeded_gives_a_reason_with_both_numbers() -> None:
    reasons = over_budget(LIMITS, steps=16, tokens=20_001, cost_usd=0.0815, wall_s=61.5)
    assert reasons == (
        "over budget: 16 steps, allowed are 15",
        "over budget: 20,001 tokens, allowed are 20,000",
        "over budget: 0.0815 USD, allowed are 0.08",
        "over budget: 61.5 s of wall time, allowed are 60",
    )


def test_the_limit_itself_is_within_budget() -> None:
    assert over_budget(LIMITS, steps=15, tokens=20_000, cost_usd=0.08, wall_s=60.0) == ()


def test_what_is_not_known_claims_nothing_and_is_told_apart() -> None:
    spent = {"steps": 3, "tokens": None, "cost_usd": None, "wall_s": 2.0}
    assert over_budget(LIMITS, **spent) == ()
    assert [reason.split()[3] for reason in unknown_budget(LIMITS, **spent)] == ["tokens", "cost_usd"]


def test_what_has_no_limit_is_neither_over_nor_unknown() -> None:
    free = Budgets()
    assert over_budget(free, steps=10**6, tokens=10**9, cost_usd=1e6, wall_s=1.0) == ()
    assert unknown_budget(free, steps=None, tokens=None, cost_usd=None, wall_s=1.0) == ()
    assert over_budget(None, steps=1, tokens=None, cost_usd=None, wall_s=None) == ()
