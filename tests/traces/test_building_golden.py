"""Whole traces as they were when somebody last looked closely: `golden/NAME.json` is what is built of a run."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from evalagent.model import Json
from evalagent.traces.building import build
from tests.traces.loans import DIALECTS, Told, genai

GOLDEN = Path(__file__).parent / "golden"
RUNS = {
    "loan-genai": DIALECTS["genai"],
    "loan-without-tool-spans": lambda: genai(tools=False),
    "loan-openinference": DIALECTS["openinference"],
    "loan-strands": DIALECTS["strands"],
    "loan-adk": DIALECTS["adk 1"],
}


def built(told: Told) -> Json:
    (trace,) = build(*told).traces
    return json.loads(json.dumps(asdict(trace)))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_built_as_its_golden_file_says(name: str) -> None:
    assert built(RUNS[name]()) == json.loads((GOLDEN / f"{name}.json").read_text())
