"""The real collector: what it writes, that nothing of it stays, and what is said when it cannot run or dies."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evalagent.adapters import docker_daemon
from evalagent.adapters.collector import Collector, network_name
from evalagent.adapters.otlp_lines import end_last_line, mask_lines
from evalagent.adapters.receiver import Receiver
from evalagent.errors import SandboxUnavailable, UsageError
from evalagent.model import Span
from evalagent.traces.reading import read
from tests.adapters.docker_needed import require_docker

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def docker(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("docker"):
        require_docker()


@pytest.fixture
def left_by() -> Iterator[Any]:
    """What Docker holds of a run."""
    client = docker_daemon.connect()

    def look(run_id: str) -> list[str]:
        marked = [c.name for c in docker_daemon.containers(client, f"evalagent.run={run_id}")]
        return marked + [n.name for n in client.networks.list(names=[network_name(run_id)])]

    yield look
    client.close()


def spans_of_an_sdk(count: int = 0, size: int = 0) -> tuple[ReadableSpan, ...]:
    """Spans with every kind of value; `count` more with a text of `size` bytes each."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(
        resource=Resource({"service.name": "bot", "evalagent.trial": "0"}), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("tests", "1.0")
    with tracer.start_as_current_span("agent", attributes={"gen_ai.operation.name": "invoke_agent"}) as agent:
        with tracer.start_as_current_span(
            "chat",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.usage.input_tokens": 2**53 + 1,
                "score": 0.1,
                "stream": False,
                "empty": "",
                "text": 'Ünïcödé "quoted"\n\u2028 \U0001f600',
                "tags": ["a", "b"],
                "numbers": [1, 2, 3],
            },
        ) as chat:
            chat.add_event("first token", {"ms": 12.5}, timestamp=1_700_000_000_000_000_001)
        with tracer.start_as_current_span(
            "tool", links=[trace.Link(chat.get_span_context(), {"why": "asked"})]
        ) as tool:
            tool.record_exception(ValueError("no such order"))
            tool.set_status(trace.Status(trace.StatusCode.ERROR, "no such order"))
        for number in range(count):
            with tracer.start_as_current_span(f"more {number}", attributes={"text": "x" * size}):
                pass
        agent.set_status(trace.StatusCode.OK)
    return memory.get_finished_spans()


def send(endpoint: str, spans: Sequence[ReadableSpan]) -> None:
    assert OTLPSpanExporter(f"{endpoint}/v1/traces").export(spans) is SpanExportResult.SUCCESS


def spans_in(folder: Path) -> list[Span]:
    reading = read((folder / "traces.jsonl").read_bytes(), "traces.jsonl")
    assert reading.rejected == ()
    return sorted(reading.spans, key=lambda span: (span.trace_id, span.span_id))


@pytest.mark.docker
def test_the_collector_and_the_embedded_receiver_write_the_same_spans(tmp_path: Path) -> None:
    sent = spans_of_an_sdk()
    with Collector(tmp_path / "collector", "same") as collector, Receiver(tmp_path / "receiver") as receiver:
        send(collector.host_endpoint, sent)
        send(receiver.endpoint, sent)
    by_collector = spans_in(tmp_path / "collector")
    assert len(by_collector) == 3
    assert by_collector == spans_in(tmp_path / "receiver")


@pytest.mark.docker
def test_large_requests_become_many_lines_that_json_readers_take(tmp_path: Path) -> None:
    with Collector(tmp_path, "large") as collector:
        send(collector.host_endpoint, spans_of_an_sdk(250, 100_000))
    lines = (tmp_path / "traces.jsonl").read_bytes().splitlines()
    assert max(map(len, lines)) < 16_000_000
    assert len(spans_in(tmp_path)) == 253


@pytest.mark.docker
def test_secrets_are_masked_where_they_stand_and_counts_stay(tmp_path: Path) -> None:
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    secrets = ("sk-ant-REDACTME0123456789abcdef", "Basic cmVkYWN0bWU6cmVkYWN0bWU=", "ACME-12345678")
    attributes = {
        "text": f"the key is {secrets[0]}, use it",
        "again": f"{secrets[0]}",
        "listed": ["a", secrets[0]],
        "http.request.header.authorization": secrets[1],
        "note": f"customer {secrets[2]}",
        "gen_ai.usage.input_tokens": 7,
    }
    with provider.get_tracer("t").start_as_current_span(f"call with {secrets[0]}", attributes=attributes):
        pass
    with Collector(tmp_path, "secret", patterns=["ACME-[0-9]{8}"]) as collector:
        send(collector.host_endpoint, memory.get_finished_spans())
        while not (tmp_path / "traces.jsonl").stat().st_size:
            time.sleep(0.05)
        raw = (tmp_path / "traces.jsonl").read_text()
        name = f"call with {secrets[0]}"
        assert secrets[0] not in raw.replace(name, ""), "the collector itself masks attributes as they come"
    text = (tmp_path / "traces.jsonl").read_text()
    assert [secret for secret in secrets if secret in text] == []
    (span,) = spans_in(tmp_path)
    assert span.attributes["gen_ai.usage.input_tokens"] == 7
    assert str(span.attributes["again"]) in str(span.attributes["text"]), "equal secrets stay equal"


@pytest.mark.docker
def test_a_collector_that_died_is_started_again_and_the_gap_is_said(tmp_path: Path, left_by: Any) -> None:
    first, second = spans_of_an_sdk(), spans_of_an_sdk()
    with Collector(tmp_path, "dies") as collector:
        assert collector.alive() and collector.revive() is None
        send(collector.host_endpoint, first)
        time.sleep(1)
        _kill("dies")
        deadline = time.monotonic() + 60
        while not collector.gaps and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(collector.gaps) == 1 and "exit code 137" in collector.gaps[0]
        assert collector.alive() and collector.revive() is None
        send(collector.host_endpoint, second)
    ids = {f"{span.context.span_id:016x}" for span in (*first, *second) if span.context}
    assert {span.span_id for span in spans_in(tmp_path)} == ids
    assert left_by("dies") == []


def _kill(run_id: str) -> None:
    client = docker_daemon.connect()
    for container in docker_daemon.containers(client, f"evalagent.run={run_id}"):
        container.kill()
    client.close()


@pytest.mark.docker
def test_lines_of_an_earlier_start_stay(tmp_path: Path) -> None:
    for _ in range(2):
        with Collector(tmp_path, "again") as collector:
            send(collector.host_endpoint, spans_of_an_sdk())
        collector.stop()  # once more does nothing
    assert len(spans_in(tmp_path)) == 6


@pytest.mark.docker
def test_a_run_that_is_under_way_elsewhere_is_left_alone(tmp_path: Path) -> None:
    with Collector(tmp_path / "one", "twice") as first:
        with pytest.raises(SandboxUnavailable, match="run twice is under way"), Collector(tmp_path / "two", "twice"):
            pass
        assert first.alive()


ORPHAN = """
import sys, os, signal
from pathlib import Path
from evalagent.adapters.collector import Collector
collector = Collector(Path(sys.argv[1]), "orphan")
collector.start()
print(collector.host_endpoint, flush=True)
sys.stdin.read()
"""


@pytest.mark.docker
def test_what_a_killed_process_left_is_swept_and_what_it_wrote_stays(tmp_path: Path, left_by: Any) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    endpoint = process.stdout.readline().strip()
    send(endpoint, spans_of_an_sdk())
    docker_daemon.sweep()
    assert len(left_by("orphan")) == 2, "its owner lives"
    time.sleep(1)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert network_name("orphan") in docker_daemon.sweep()
    assert left_by("orphan") == []
    assert len(spans_in(tmp_path)) == 3


@pytest.mark.docker
def test_an_image_that_is_not_there_is_named_with_the_ways_to_get_one(tmp_path: Path, left_by: Any) -> None:
    with pytest.raises(UsageError, match=r"nosuch:1.*infra/collector/build.sh"):
        Collector(tmp_path, "noimage", image="nosuch:1").start()
    assert left_by("noimage") == []


def test_without_docker_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(UsageError, match=r"Docker is not running.*no\.sock.*--sandbox process"):
        Collector(tmp_path / "otlp", "none").start()


def test_only_what_is_certainly_dead_is_abandoned() -> None:
    ours = docker_daemon.owner_labels("r")
    made = int(ours["evalagent.made"])
    assert not docker_daemon.abandoned(ours)
    assert docker_daemon.abandoned(ours | {"evalagent.started": "1"}), "another process has the number now"
    assert docker_daemon.abandoned(ours | {"evalagent.boot": "an earlier one"})
    assert not docker_daemon.abandoned(ours | {"evalagent.host": "elsewhere", "evalagent.boot": "unknown to us"})
    foreign = ours | {"evalagent.pids": "pid:[1]", "evalagent.started": "1"}
    assert not docker_daemon.abandoned(foreign), "its processes cannot be seen from here"
    assert docker_daemon.abandoned(foreign, now_s=made + 90_000.0)
    assert not docker_daemon.abandoned({"com.example": "1"})


def test_a_torn_line_does_not_spoil_the_next(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    end_last_line(file)
    assert not file.exists()
    for before, after in ((b"", b""), (b'{"a":1}\n', b'{"a":1}\n'), (b'{"a":1}\n{"b', b'{"a":1}\n{"b\n')):
        file.write_bytes(before)
        end_last_line(file)
        assert file.read_bytes() == after


def test_masking_rewrites_only_the_lines_that_hold_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    clean = b'{"a": 1,   "b": [1e400]}\n'
    file.write_bytes(clean + b'{"text":"ACME-12345678"}\n' + b'{"torn":"ACME-12345678')
    file.chmod(0o640)
    mask_lines(file, ["ACME-[0-9]{8}"])
    lines = file.read_bytes().splitlines(keepends=True)
    assert lines[0] == clean
    assert b"ACME" not in b"".join(lines) and len(lines) == 3
    assert json.loads(lines[1])["text"].startswith("[masked:")
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["traces.jsonl"]


def test_the_compose_file_publishes_on_loopback_only_and_holds_no_secret() -> None:
    said = yaml.safe_load((ROOT / "infra/compose.yaml").read_text())
    ports = [port for service in said["services"].values() for port in service.get("ports", ())]
    assert len(ports) == 4 and all(port.startswith("127.0.0.1:") for port in ports)
    passed = {name: value for s in said["services"].values() for name, value in s.get("environment", {}).items()}
    assert all(passed[name] is None for name in passed if "KEY" in name or "AWS" in name)
    assert set(said["volumes"]) == {
        volume.partition(":")[0]
        for service in said["services"].values()
        for volume in service["volumes"]
        if not volume.startswith(".")
    }


def test_the_image_and_the_adapter_have_one_configuration() -> None:
    baked = ROOT / "infra/collector/config.yaml"
    assert baked.resolve() == ROOT / "evalagent/adapters/collector.yaml"
    said = yaml.safe_load(baked.read_text())
    used = {name for p in said["service"]["pipelines"].values() for part in p.values() for name in part}
    assert used == {name for part in ("receivers", "processors", "exporters") for name in said[part]}
