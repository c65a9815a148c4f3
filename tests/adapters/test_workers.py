"""Work in other processes comes back in order, and what goes wrong there is told here."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evalagent.adapters.workers import Workers
from evalagent.errors import Terminal, UsageError


def doubled(number: int) -> int:
    return 2 * number


def refused(number: int) -> int:
    raise UsageError("not this one", file="f", line=number)


def killed(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def unsendable(number: int) -> object:
    return lambda: number


@pytest.mark.parametrize("processes", [0, 2])
def test_results_come_in_the_order_of_the_pieces(processes: int) -> None:
    with Workers[int, int](doubled, processes) as workers:
        assert list(workers.map(iter(range(20)))) == [2 * number for number in range(20)]


@pytest.mark.parametrize("processes", [0, 1])
def test_a_piece_can_be_called_back_and_another_go_first(processes: int) -> None:
    with Workers[int, int](doubled, processes) as workers:
        for number in (1, 2, 3):
            workers.put(number)
        assert workers.recall() == 1
        assert workers.done(9) == 18
        assert [workers.take(), workers.take()] == [(2, 4), (3, 6)]


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    with Workers[int, int](refused, 1) as workers, pytest.raises(UsageError, match="f:7: not this one"):
        workers.done(7)


def test_a_killed_process_is_told_with_the_way_out() -> None:
    with Workers[int, int](killed, 1) as workers:
        for _ in range(2):
            with pytest.raises(Terminal, match="fewer workers"):
                workers.done(1)


def test_a_result_that_cannot_be_sent_says_so() -> None:
    with Workers[int, object](unsendable, 1) as workers, pytest.raises(TypeError, match="cannot be sent"):
        workers.done(1)


def test_a_script_without_a_guard_does_not_start_itself_again(tmp_path: Path) -> None:
    (tmp_path / "unguarded.py").write_text(
        "import math, os\n"
        "from evalagent.adapters.workers import Workers\n"
        "print('begun')\n"
        "with Workers(math.sqrt, 2) as workers:\n"
        "    print(list(workers.map(iter([4.0, 9.0]))))\n"
    )
    done = subprocess.run([sys.executable, "unguarded.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "begun\n[2.0, 3.0]\n"
    assert done.stderr == ""
