"""The nightly flow: the first run is the baseline, an unchanged agent passes, a collapse fails the flow run."""

import shutil
from pathlib import Path

import pytest

from evalagent.adapters import runs
from evalagent.adapters.files import read_lines, write_lines

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_server", "no_retry_waits")]
HERE = Path(__file__).resolve().parents[1] / "adapters/misbehaving"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "misbehaving"
    shutil.copytree(HERE, folder)
    lines = [line for line in (folder / "cases.jsonl").read_text().splitlines() if '"hang"' not in line]
    (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "suite.yaml"


def test_a_collapse_fails_the_night_and_is_no_baseline(suite: Path) -> None:
    from flows.nightly import nightly
    from tasks.compare import Regression

    first = Path(nightly(str(suite), trials=1, judge="rules")["folder"])
    assert runs.read_run(first)["passed_gate"] is True
    second = Path(nightly(str(suite), trials=1, judge="rules")["folder"])
    assert runs.read_run(second)["passed_gate"] is True
    # Last night's run was perfect in all cases, many times over: tonight's four failures are a collapse.
    rows = [{**row, "verdict": "pass", "trial": n} for row in read_lines(second / "trials.jsonl") for n in range(20)]
    write_lines(second / "trials.jsonl", rows)
    (suite.parent / "agent/agent.py").write_text("import sys\nsys.exit(1)\n")
    with pytest.raises(Regression, match="worse"):
        nightly(str(suite), trials=4, judge="rules")
    third = max((suite.parent / ".evalagent/runs").iterdir(), key=lambda p: runs.read_run(p)["started"])
    assert runs.read_run(third)["passed_gate"] is False
