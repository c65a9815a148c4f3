"""The model tier inside the flow: a task per question, a cache that saves calls, and a judge that fails harmlessly."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalagent.adapters import pipeline
from evalagent.adapters.files import read_lines
from tests.adapters.scripted_model import Answer, Body, call, error, message, serving

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_server", "no_retry_waits")]
ROOT = Path(__file__).resolve().parents[2]


def verdict(body: Body) -> Answer:
    """A pass that quotes what it was shown, as the protocol asks."""
    shown = body["messages"][0]["content"]
    found = re.search(r'<data-(\w+) place="(output[^"]*)">(.*?)</data-\1>', shown, re.DOTALL)
    assert found, shown
    word = re.findall(r"[A-Za-z]{4,}", found[3].partition(":")[2])[-1]
    said = {
        "reason": "It fits the task.",
        "quotes": [{"text": word, "where": found[2]}],
        "can_tell": "yes",
        "score": 1.0,
        "own_fault": "no",
        "category": "none",
    }
    return message(call(said), stop_reason="tool_use")


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    folder = tmp_path / "support_desk"
    shutil.copytree(ROOT / "examples/support_desk", folder, ignore=shutil.ignore_patterns(".evalagent", "__pycache__"))
    return folder / "suite.yaml"


def evaluate(desk: Path, url: str, monkeypatch: pytest.MonkeyPatch, **more: str) -> dict[str, Any]:
    from flows.full import evalagent

    for name, value in {"BASE_URL": url, "CHEAP": "scripted"}.items():
        monkeypatch.setenv(f"EVALAGENT_JUDGE_LOCAL_{name}", value)
    monkeypatch.setenv("EVALAGENT_JUDGE_RETRIES", "0")
    for name, value in more.items():
        monkeypatch.setenv(f"EVALAGENT_{name}", value)
    return evalagent(str(desk), trials=1, judge="local", only=["cancel-shipped"])


def test_every_step_that_no_rule_decides_is_asked_once_and_judged(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(verdict) as script:
        summary = evaluate(desk, script.url, monkeypatch)
    assert summary["coverage"]["share"] == 1.0
    assert summary["exit_code"] == 0
    judged = [v for v in read_lines(Path(summary["folder"]) / "verdicts.jsonl") if v["judge"].startswith("local")]
    assert judged
    assert all(v["rubric"] and v["evidence"] for v in judged if v["step_id"])
    assert len(script.requests) == summary["judge"]["calls"] == len([v for v in judged if v["step_id"]])


def test_a_run_judged_again_asks_nobody(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(verdict) as script:
        first = evaluate(desk, script.url, monkeypatch)
        asked = len(script.requests)
        pipeline._judges.clear()
        second = evaluate(desk, script.url, monkeypatch)
        assert len(script.requests) == asked
    assert first["folder"] != second["folder"]
    assert second["judge"]["calls"] == 0
    assert second["judge"]["cached"] == asked


def test_a_dead_judge_moves_no_score_and_is_3(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(error(529, "overloaded_error")) as script:
        summary = evaluate(desk, script.url, monkeypatch)
    verdicts = read_lines(Path(summary["folder"]) / "verdicts.jsonl")
    open_ = [v for v in verdicts if v["verdict"] == "not_judged" and v["step_id"]]
    assert open_
    assert all(v["score"] is None for v in open_)
    assert not [v for v in verdicts if v["verdict"] == "fail"]
    assert summary["exit_code"] == 3


def test_many_steps_go_in_chunks_with_the_same_verdicts(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(verdict) as script:
        summary = evaluate(desk, script.url, monkeypatch, MAX_NODE_TASKS="0", NODE_CHUNK="2")
    assert summary["coverage"]["share"] == 1.0


def test_a_spent_budget_is_4_and_what_was_not_asked_is_not_judged(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(verdict) as script:
        summary = evaluate(desk, script.url, monkeypatch, JUDGE_MAX_CALLS="1", JUDGE_CONCURRENCY="1")
        assert len(script.requests) == 1
    assert summary["exit_code"] == 4
    assert summary["counts"]["verdicts"]["not_judged"] >= 1
