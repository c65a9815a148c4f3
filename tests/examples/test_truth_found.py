"""How far the rules alone find the truth that is planted in the support desk."""

import pytest

from benchmarks.planted_truth import Score, collected, score


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Score:
    return score(*collected(tmp_path_factory.mktemp("planted"), seed=7, trials=4))


def test_every_failed_run_is_found_and_no_sound_one_is_failed(found: Score) -> None:
    assert (found.failed, found.sound) == (14, 26)
    assert (found.found, found.cleared) == (14, 26), found.misses


def test_the_root_cause_is_named_first_and_is_the_first_failing_step(found: Score) -> None:
    assert found.right >= 13, found.misses
    assert found.first >= 13, found.misses


def test_what_is_claimed_without_doubt_is_right(found: Score) -> None:
    assert found.certain >= 12
    assert found.certain_right == found.certain, found.misses
