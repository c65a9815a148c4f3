"""The whole flow on the example agent: a real server, real trials, a real store."""

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from evalagent.adapters import runs
from evalagent.adapters.files import read_lines

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_server")]
ROOT = Path(__file__).resolve().parents[2]
CASES = ["order-status", "cancel-open", "refund-broken"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example in a folder of its own, so that its runs do not mix with a user's."""
    folder = tmp_path_factory.mktemp("desk") / "support_desk"
    shutil.copytree(ROOT / "examples/support_desk", folder, ignore=shutil.ignore_patterns(".evalagent", "__pycache__"))
    return folder


@pytest.fixture(scope="module")
def summary(desk: Path, prefect_server: None) -> dict[str, Any]:
    from flows.full import evalagent

    return evalagent(str(desk / "suite.yaml"), trials=2, judge="rules", only=CASES)


def test_every_trial_is_there_once_with_its_spans_and_its_verdict(summary: dict[str, Any], desk: Path) -> None:
    folder = Path(summary["folder"])
    assert folder.parent == desk / ".evalagent/runs"
    trials = read_lines(folder / "trials.jsonl")
    assert {(t["case_id"], t["trial"]) for t in trials} == {(case, n) for case in CASES for n in range(2)}
    assert all(t["trace_ids"] and t["steps"] for t in trials)
    assert summary["counts"]["trials"] == 6


def test_the_planted_truth_is_found(summary: dict[str, Any], desk: Path) -> None:
    truth = {(t["case_id"], t["trial"]): t["must_fail"] for t in read_lines(desk / "truth.jsonl")}
    for trial in read_lines(Path(summary["folder"]) / "trials.jsonl"):
        assert (trial["verdict"] == "fail") == truth[trial["case_id"], trial["trial"]], trial["reasons"]


def test_the_receipt_adds_up_and_agrees_with_the_files(summary: dict[str, Any]) -> None:
    folder = Path(summary["folder"])
    told = json.loads((folder / "receipt.json").read_text())
    counted = 0
    for file in (folder / "otlp").rglob("*.jsonl"):
        for line in file.read_text().splitlines():
            counted += sum(len(s["spans"]) for r in json.loads(line).get("resourceSpans", []) for s in r["scopeSpans"])
    assert told["spans_in"] == counted
    parts = told["step_spans"] + told["containers"] + sum(told["ignored"].values()) + told["duplicates"]
    assert parts == counted


def test_the_store_holds_what_the_folder_holds(summary: dict[str, Any], desk: Path) -> None:
    folder = Path(summary["folder"])
    with duckdb.connect(str(desk / ".evalagent/warehouse.duckdb"), read_only=True) as store:
        for table in ("trials", "steps", "findings", "verdicts", "attributions", "outcomes"):
            count = store.execute(f"SELECT count(*) FROM {table} WHERE run_id = ?", [folder.name]).fetchone()
            assert count == (len(read_lines(folder / f"{table}.jsonl")),), table
        spans = store.execute("SELECT count(*) FROM spans WHERE run_id = ?", [folder.name]).fetchone()
        assert spans == (json.loads((folder / "receipt.json").read_text())["spans_in"],)
        exit_code = store.execute("SELECT exit_code, finished IS NOT NULL FROM runs").fetchone()
        assert exit_code == (summary["exit_code"], True)


def test_exit_code_files_and_page_tell_one_story(summary: dict[str, Any]) -> None:
    folder = Path(summary["folder"])
    assert json.loads((folder / "summary.json").read_text())["exit_code"] == summary["exit_code"] == 1
    assert "<failure" in (folder / "junit.xml").read_text()
    assert "<!doctype html>" in (folder / "report.html").read_text().lower()


def test_a_run_that_was_stopped_half_way_goes_on_and_doubles_nothing(summary: dict[str, Any], desk: Path) -> None:
    from flows.full import evalagent

    given: dict[str, Any] = {"trials": 3, "judge": "rules", "only": ("order-status",)}
    plan = runs.open_run(desk / "suite.yaml", home=desk / ".evalagent", sandbox="process", **given)
    from evalagent.adapters import settings
    from evalagent.adapters.collection import Collection

    with Collection(plan, settings.load()) as collection:
        first = runs.planned_trials(plan)[0]
        collection.collect(first)
    before = (runs.trial_folder(plan, "order-status", 0) / "trial.json").read_bytes()
    runs.release_run(plan)
    again = evalagent(str(desk / "suite.yaml"), trials=3, judge="rules", only=["order-status"])
    assert again["folder"] == plan.folder
    assert (runs.trial_folder(plan, "order-status", 0) / "trial.json").read_bytes() == before
    trials = read_lines(Path(again["folder"]) / "trials.jsonl")
    assert [t["trial"] for t in trials] == [0, 1, 2]
    assert len({i for t in trials for i in t["trace_ids"]}) == 3


def test_artifacts_are_made(summary: dict[str, Any]) -> None:
    from prefect.artifacts import Artifact

    table = Artifact.get("support-desk-cases")
    report = Artifact.get("support-desk-report")
    assert table is not None
    assert {row["case"] for row in json.loads(str(table.data))} >= {"order-status"}
    assert report is not None
    assert str(report.data).startswith("# ")
