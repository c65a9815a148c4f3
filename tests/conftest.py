"""What every test has: a clean environment; and, for those that ask, one Prefect server for the session."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.update(
    {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "0.5",
        "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
    }
)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, setting or endpoint of the machine reaches a test."""
    for name in list(os.environ):
        if name.startswith(("EVALAGENT_", "ANTHROPIC_", "AWS_", "OTEL_")):
            monkeypatch.delenv(name)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a marker asks for must be there: in CI its lack is a failure, elsewhere a skip with the way to get it."""
    for marker, (there, way) in NEEDS.items():
        if item.get_closest_marker(marker) and not there():
            missing = f"`{marker}` tests cannot run: {way}"
            if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
                pytest.fail(missing, pytrace=False)
            pytest.skip(missing)


NEEDS = {
    "browser": (lambda: Path("/usr/bin/chromium").exists(), "no Chromium; apt-get install chromium"),
    "localmodel": (lambda: importlib.util.find_spec("xllamacpp") is not None, "no local model; make localmodel"),
    "prefect": (lambda: importlib.util.find_spec("prefect") is not None, "no Prefect; make setup"),
}


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """One throw-away server: starting it takes 17 to 40 s."""
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield


@pytest.fixture
def no_retry_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a retry waits is never the thing under test."""
    from prefect import Task

    import tasks.collect
    import tasks.judge

    for module in (tasks.collect, tasks.judge):
        for task in vars(module).values():
            if isinstance(task, Task):
                monkeypatch.setattr(task, "retry_delay_seconds", 0)
