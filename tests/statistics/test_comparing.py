"""Two runs, paired by case."""

from evalagent.statistics.comparing import compare


def test_identical_runs_are_not_worse() -> None:
    runs = {f"c{n}": (3, 4) for n in range(10)}
    result = compare(runs, runs)
    assert result.drop == 0.0
    assert result.interval is not None
    assert result.interval.low < 0 < result.interval.high
    assert not result.worse


def test_a_collapse_is_worse() -> None:
    result = compare({f"c{n}": (4, 4) for n in range(10)}, {f"c{n}": (0, 4) for n in range(10)})
    assert result.drop == 1.0
    assert result.worse


def test_one_case_lost_of_ten_is_no_proof() -> None:
    before = {f"c{n}": (4, 4) for n in range(10)}
    assert not compare(before, before | {"c3": (2, 4)}).worse


def test_cases_that_only_one_run_judged_are_left_out_and_named() -> None:
    result = compare({"a": (1, 1), "b": (1, 1), "c": (0, 0)}, {"a": (1, 1), "c": (1, 1), "d": (1, 1)})
    assert [c.case_id for c in result.cases] == ["a"]
    assert result.left_out == ("b", "c", "d")
    assert result.interval is None


def test_nothing_in_common_says_nothing() -> None:
    result = compare({"a": (1, 1)}, {"b": (0, 1)})
    assert result.drop is None
    assert not result.worse


def test_the_same_seed_gives_the_same_interval() -> None:
    runs = {f"c{n}": (n % 5, 4) for n in range(8)}, {f"c{n}": ((n + 1) % 5, 4) for n in range(8)}
    assert compare(*runs, seed=3) == compare(*runs, seed=3)


def test_identical_agents_seldom_alarm() -> None:
    import numpy as np

    random = np.random.default_rng(11)
    alarms = 0
    for _ in range(100):
        rates = random.beta(4, 2, size=10)
        before, after = ({f"c{n}": (int(random.binomial(4, rate)), 4) for n, rate in enumerate(rates)} for _ in "ab")
        alarms += compare(before, after).worse
    assert alarms <= 5


def test_one_case_that_broke_for_good_is_an_alarm_of_its_own() -> None:
    before = {f"c{n}": (8, 8) for n in range(4)}
    result = compare(before, before | {"c2": (0, 8)})
    assert result.collapsed == ("c2",)
    assert result.ruling == "worse"


def test_a_fall_that_may_be_chance_is_undecided_and_no_fall_is_not() -> None:
    before = {f"c{n}": (2, 2) for n in range(4)}
    assert compare(before, before | {"c2": (0, 2)}).ruling == "undecided"
    assert compare(before, before).ruling == "not worse"
    assert compare(before, {}).ruling == "undecided"
