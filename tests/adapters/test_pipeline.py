"""Every stage over real trials of an agent that crashes, hangs, prints binary, says nothing, wrecks its world."""

import json
import shutil
from pathlib import Path

import pytest

from evalagent.adapters import pipeline, run_traces, runs, settings
from evalagent.adapters.collection import Collection
from evalagent.adapters.files import read_lines
from evalagent.adapters.runs import RunPlan

HERE = Path(__file__).parent / "misbehaving"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> RunPlan:
    folder = tmp_path_factory.mktemp("suite") / "misbehaving"
    shutil.copytree(HERE, folder)
    plan = runs.open_run(
        folder / "suite.yaml", home=folder / ".evalagent", trials=1, only=(), judge="rules", sandbox="process"
    )
    with Collection(plan, settings.read_settings({})) as collection:
        for planned in runs.planned_trials(plan):
            collection.collect(planned)
    pipeline.ingest(plan)
    pipeline.build_steps(plan)
    pipeline.grade(plan)
    pipeline.check(plan)
    pipeline.save_verdicts(plan, (), {})
    pipeline.attribute(plan)
    pipeline.scorecard(plan)
    pipeline.report(plan)
    return plan


@pytest.mark.parametrize(
    ("case", "verdict", "said"),
    [
        ("good", "pass", ""),
        ("crash", "fail", "exit"),
        ("hang", "fail", "4"),
        ("binary", "pass", ""),
        ("silent", "fail", "stdout"),
        ("wreck", "fail", "cannot be read"),
        ("peek", "pass", ""),
    ],
)
def test_each_agent_gets_what_it_earned(plan: RunPlan, case: str, verdict: str, said: str) -> None:
    trial = next(t for t in read_lines(plan.path / "trials.jsonl") if t["case_id"] == case)
    assert trial["verdict"] == verdict, trial
    if said:
        assert said in trial["reasons"][0]


def test_the_answer_of_a_stdout_agent_is_what_it_printed(plan: RunPlan) -> None:
    """Only stdout says "peeked", which the case wants stated: no span does."""
    assert "peeked" not in (plan.path / "steps.jsonl").read_text()
    findings = read_lines(plan.path / "findings.jsonl")
    assert [f for f in findings if f["code"] == "missing_value"] == []


def test_the_exit_code_is_the_agents_failure(plan: RunPlan) -> None:
    summary = json.loads((plan.path / "summary.json").read_text())
    assert summary["exit_code"] == 1
    assert summary["counts"]["trials_by_verdict"] == {"fail": 4, "pass": 4}


def test_the_agent_is_given_its_id_and_input_and_an_empty_room_with_its_world(plan: RunPlan) -> None:
    step = next(s for s in read_lines(plan.path / "steps.jsonl") if "peek" in json.dumps(s["input"]))
    assert '["id", "input"] ["world"]' in json.dumps(step["output"]).replace("\\", "")


def test_spans_of_a_killed_agent_arrive_up_to_its_last_batch(plan: RunPlan) -> None:
    trial = next(t for t in read_lines(plan.path / "trials.jsonl") if t["case_id"] == "hang")
    assert trial["steps"] == 1


def test_a_secret_is_nowhere_in_what_the_run_left(plan: RunPlan) -> None:
    for secret in (b"sk-ant-api03-aaaa", b"ACME-12345678"):
        found = [p for p in plan.path.parent.parent.rglob("*") if p.is_file() and secret in p.read_bytes()]
        assert found == []


def test_making_every_stage_again_gives_the_same_bytes(plan: RunPlan) -> None:
    files = [p for p in plan.path.glob("*") if p.is_file() and p.suffix in (".jsonl", ".html", ".md", ".xml", ".json")]
    before = {p.name: p.read_bytes() for p in files if p.name != "run.json"}
    run_traces._traces.cache_clear()
    for stage in (pipeline.ingest, pipeline.build_steps, pipeline.grade, pipeline.check):
        stage(plan)
    pipeline.save_verdicts(plan, (), {})
    pipeline.attribute(plan)
    pipeline.report(plan)
    assert {name: (plan.path / name).read_bytes() for name in before} == before
