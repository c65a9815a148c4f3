"""`prefect deploy` says "created" even where the run will crash; these are the ways it does."""

import importlib.util
import sys
from pathlib import Path

import pytest
import yaml

import flows
import tasks

ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENTS = yaml.safe_load((ROOT / "deployments/prefect.yaml").read_text())["deployments"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda d: d["name"])
def test_every_deployment_loads_its_flow(deployment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.flows import load_flow_from_entrypoint

    monkeypatch.chdir(ROOT)
    flow = load_flow_from_entrypoint(deployment["entrypoint"], use_placeholder_flow=False)
    assert flow.name == {"full": "evalagent", "nightly": "evalagent-nightly"}[deployment["name"]]


@pytest.mark.parametrize("path", sorted((ROOT / "flows").glob("*.py")), ids=lambda p: p.stem)
def test_no_flow_file_hides_a_module(path: Path) -> None:
    if path.stem == "__init__":
        return
    assert path.stem not in sys.stdlib_module_names
    found = importlib.util.find_spec(path.stem)  # Prefect puts flows/ itself on the path
    assert found is None or found.origin == str(path)


def test_flows_and_tasks_are_those_of_the_checkout() -> None:
    assert Path(flows.__file__ or "").parent == ROOT / "flows"
    assert Path(tasks.__file__ or "").parent == ROOT / "tasks"
