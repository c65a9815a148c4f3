"""Run folders: a killed run goes on, a finished one does not, and two at once are two."""

import json
import os
from pathlib import Path

import pytest

from evalagent.adapters import runs
from evalagent.errors import UsageError
from evalagent.model import TrialRun

SUITE = """\
name: desk
agent: {source: agent, command: [python, -m, desk]}
cases: cases.jsonl
trials: 2
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/desk.py").write_text("print('hello')")
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": "x"}\n{"id": "b", "input": "y"}\n')
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path / "suite.yaml"


def open_run(suite: Path, **said: object) -> runs.RunPlan:
    given = {"trials": None, "only": (), "judge": "rules", "sandbox": "process"} | said
    return runs.open_run(suite, home=suite.parent / ".evalagent", **given)  # type: ignore[arg-type]


def record(plan: runs.RunPlan, case: str, trial: int) -> None:
    runs.save_trial(plan, TrialRun(case, trial, "completed", 0, "attempt", "hi", "", 1.0), {}, {"t": {}}, "")


def test_a_killed_run_is_continued_with_the_trials_that_it_has(suite: Path) -> None:
    first = open_run(suite)
    record(first, "a", 0)
    runs.release_run(first)  # what the operating system does with the lock of a killed process
    second = open_run(suite)
    assert (second.run_id, second.resumed) == (first.run_id, True)
    done = {(p.case.id, p.trial): c is not None for p, c in runs.collected(second)}
    assert done == {("a", 0): True, ("b", 0): False, ("a", 1): False, ("b", 1): False}


def test_a_finished_run_is_not_continued(suite: Path) -> None:
    first = open_run(suite)
    runs.close_run(first, 0)
    assert open_run(suite).run_id != first.run_id


def test_two_at_once_are_two_runs(suite: Path) -> None:
    assert open_run(suite).run_id != open_run(suite).run_id


@pytest.mark.parametrize("change", ["agent/desk.py", "cases.jsonl", "suite.yaml"])
def test_a_changed_agent_case_or_suite_starts_anew(suite: Path, change: str) -> None:
    first = open_run(suite)
    runs.release_run(first)
    path = suite.parent / change
    path.write_text(path.read_text() + ('\n{"id": "c", "input": "z"}' if change == "cases.jsonl" else "\n# changed"))
    if change == "suite.yaml":
        path.write_text(path.read_text().replace("trials: 2", "trials: 3"))
    assert open_run(suite).run_id != first.run_id


@pytest.mark.parametrize("named", ["{}/agent", "../{name}/agent", "./agent/desk.py"])
def test_an_agent_and_a_seed_may_be_named_by_any_path(suite: Path, named: str) -> None:
    source = named.format(suite.parent, name=suite.parent.name)
    seeded = SUITE + f"world: [{{kind: files, path: w, seed: {suite.parent}/agent}}]\n"
    suite.write_text(seeded.replace("source: agent", f"source: {source}"))
    first = open_run(suite)
    runs.release_run(first)
    assert open_run(suite).run_id == first.run_id
    runs.release_run(first)
    (suite.parent / "agent/desk.py").write_text("print('changed')")
    assert open_run(suite).run_id != first.run_id


def test_a_changed_agent_is_seen_below_a_folder_that_is_called_like_an_environment(tmp_path: Path) -> None:
    folder = tmp_path / ".venv" / "desk"
    (folder / "agent").mkdir(parents=True)
    (folder / "agent/desk.py").write_text("1")
    (folder / "cases.jsonl").write_text('{"id": "a", "input": "x"}\n')
    (folder / "suite.yaml").write_text(SUITE)
    first = open_run(folder / "suite.yaml")
    runs.release_run(first)
    (folder / "agent/desk.py").write_text("2")
    assert open_run(folder / "suite.yaml").run_id != first.run_id


def test_a_source_with_odd_names_and_unreadable_files_is_no_fault_of_the_program(suite: Path) -> None:
    Path(os.fsdecode(os.fsencode(suite.parent / "agent") + b"/n\xffme")).write_text("odd")
    os.mkfifo(suite.parent / "agent/pipe")
    (suite.parent / "agent/gone").symlink_to("nowhere")
    open_run(suite)
    if os.getuid():
        (suite.parent / "agent/desk.py").chmod(0)
        with pytest.raises(UsageError, match=r"desk\.py: cannot be read"):
            open_run(suite)


def test_other_options_start_anew(suite: Path) -> None:
    first = open_run(suite)
    runs.release_run(first)
    assert open_run(suite, trials=5).run_id != first.run_id


def test_a_half_written_trial_has_not_been(suite: Path) -> None:
    plan = open_run(suite)
    folder = runs.trial_folder(plan, "a", 1)
    folder.mkdir(parents=True)
    (folder / "after.json").write_text("{}")
    (folder / "trial.json").write_text('{"case_id": "a", ')
    assert runs.load_trial(plan, "a", 1) is None


def test_an_unknown_case_is_named_with_those_that_exist(suite: Path) -> None:
    with pytest.raises(UsageError, match="no case z; the suite has a, b"):
        open_run(suite, only=("z",))


def test_a_missing_file_is_named_with_its_key(suite: Path) -> None:
    suite.write_text(SUITE + "requirements: wishes.md\n")
    with pytest.raises(UsageError, match=r"`requirements`: there is no .*wishes\.md"):
        open_run(suite)


def test_latest_and_unknown_runs(suite: Path) -> None:
    home = suite.parent / ".evalagent"
    with pytest.raises(UsageError, match="there are none"):
        runs.find_run("latest", home)
    plan = open_run(suite)
    assert runs.find_run("latest", home) == plan.path
    assert runs.find_run(plan.run_id, home) == plan.path
    assert json.loads((plan.path / "run.json").read_text())["finished"] is None


def test_a_line_that_a_kill_tore_is_cut_off_when_the_run_goes_on(suite: Path) -> None:
    plan = open_run(suite)
    file = runs.otlp_folder(plan) / "traces.jsonl"
    file.write_bytes(b'{"resourceSpans": []}\n{"resourceSpans": [{"sco')
    runs.release_run(plan)
    open_run(suite)
    assert file.read_bytes() == b'{"resourceSpans": []}\n'
