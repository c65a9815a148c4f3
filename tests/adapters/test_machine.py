"""`doctor`: quick, truthful, never in trouble itself, and silent about the values of secrets."""

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from evalagent.adapters import machine
from evalagent.adapters.machine import Capability, inspect
from tests.adapters.docker_needed import require_docker


def found(**environment: str) -> dict[str, Capability]:
    return {capability.name: capability for capability in inspect({"HOME": "/nonexistent", **environment})}


@pytest.fixture
def answering() -> Iterator[Any]:
    """Starts a server that answers each request with one status; returns its address."""
    servers = []

    def start(status: int) -> str:
        class Answers(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status if self.path == "/api/health" else 404)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/api"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_everything_is_named_with_a_way_to_get_it() -> None:
    capabilities = inspect({})
    assert len({c.name for c in capabilities}) == len(capabilities) == 11
    assert all(c.detail for c in capabilities)
    assert all(c.how_to_get for c in capabilities)


def test_secrets_are_seen_and_not_shown(tmp_path: Path) -> None:
    secret = "sk-ant-SHOWMENOT"
    seen = found(
        ANTHROPIC_API_KEY=secret,
        AWS_ACCESS_KEY_ID=secret,
        AWS_SECRET_ACCESS_KEY=secret,
        PREFECT_API_URL=f"http://user:{secret}@127.0.0.1:1/api",
    )
    assert seen["ANTHROPIC_API_KEY"].available and seen["AWS credentials"].available
    assert secret not in repr(seen)
    assert not found(ANTHROPIC_API_KEY="  ")["ANTHROPIC_API_KEY"].available
    assert not found()["AWS credentials"].available
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(secret)
    by_file = found(HOME=str(tmp_path))["AWS credentials"]
    assert by_file.available and secret not in by_file.detail


def test_a_prefect_server_is_asked_whether_it_is_well(answering: Any) -> None:
    assert found(PREFECT_API_URL=answering(200))["Prefect server"].available
    assert not found(PREFECT_API_URL=answering(503))["Prefect server"].available
    assert not found(PREFECT_API_URL="http://127.0.0.1:1/api")["Prefect server"].available
    assert not found(PREFECT_API_URL="file:///etc/passwd")["Prefect server"].available
    assert "not set" in found()["Prefect server"].detail


def test_one_that_does_not_answer_does_not_hold_up_the_rest() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        began = time.monotonic()
        seen = found(PREFECT_API_URL=f"http://127.0.0.1:{mute.getsockname()[1]}/api")
        assert time.monotonic() - began < machine.DEADLINE_S + 0.5
    assert not seen["Prefect server"].available
    assert seen["Python"].available and seen["DuckDB"].available


def test_who_holds_the_store_is_said(tmp_path: Path) -> None:
    home = {"EVALAGENT_HOME": str(tmp_path)}
    assert "no warehouse yet" in found(**home)["Store"].detail
    with FileLock(tmp_path / "warehouse.lock"):
        (tmp_path / "warehouse.holder").write_text("process 1 on box since noon")
        held = found(**home)["Store"]
        assert not held.available and "process 1 on box" in held.detail
    assert found(**home)["Store"].available


def test_a_home_that_is_nowhere_yet_and_a_broken_docker_host_are_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "nonsense://")
    seen = found(EVALAGENT_HOME=str(tmp_path / "a" / "b"))
    assert not seen["Docker"].available and not seen["Collector image"].available
    assert f"free at {tmp_path}" in seen["Disk"].detail


@pytest.mark.docker
def test_docker_and_the_collectors_image_are_found() -> None:
    require_docker()
    seen = found()
    assert seen["Docker"].available and seen["Collector image"].available
