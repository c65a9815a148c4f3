"""`evalagent receive`: what exporters send is in the trace store, whatever happens on the way."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from evalagent.adapters.settings import Settings
from evalagent.adapters.trace_files import evaluate
from evalagent.adapters.trace_store import TraceStore

SECRET = "sk-ant-api03-" + "A1b2C3d4E5" * 5


@contextmanager
def receiving(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, running on a free port."""
    command = [
        str(Path(sys.executable).with_name("evalagent")),
        "receive",
        "--port",
        "0",
        "--home",
        str(home),
        "--every",
        "0.2",
    ]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = ""
        while "receiving" not in said:
            said = process.stdout.readline()
            assert said, "it ended before it listened"
        yield process, re.findall(r"http://\S+", said)[0]
    finally:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    return process.returncode, out


def post(endpoint: str, name: str, trace: int) -> None:
    span = {
        "traceId": f"{trace:032x}", "spanId": "cd" * 8, "name": name,
        "startTimeUnixNano": "5", "endTimeUnixNano": "6",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "note", "value": {"stringValue": f"the key is {SECRET}"}},
        ],
    }  # fmt: skip
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=20)
    connection.request("POST", "/v1/traces", body, {"Content-Type": "application/json"})
    assert connection.getresponse().status == 200
    connection.close()


def spans_of(home: Path) -> list[str]:
    with TraceStore(home).connection(read_only=True) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM spans ORDER BY ALL").fetchall()]


def files_of(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


def test_what_the_sdk_exports_is_stored_built_and_judged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with receiving(home) as (process, endpoint):
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
        tracer = provider.get_tracer("desk")
        with tracer.start_as_current_span("invoke_agent desk", attributes={"gen_ai.operation.name": "invoke_agent"}):
            for number in range(3):
                told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": f"m{number}"}
                with tracer.start_as_current_span("chat", attributes=told):
                    pass
        provider.shutdown()
        code, said = ended(process)
    assert code == 0, said
    assert "in all 4 spans and 0 log records; 1 traces built" in said
    store = TraceStore(home)
    assert store.counts()["steps"] == 3
    record = evaluate([str(store.path)], tmp_path / "out", Settings(), judge="rules")
    assert [step.kind for trace in record.traces for step in trace.steps] == ["llm"] * 3
    assert not any(name.startswith("inbox") for name in files_of(home))


def test_spans_are_in_the_store_while_it_runs_and_secrets_nowhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with receiving(home) as (process, endpoint):
        post(endpoint, "first", 1)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not (home / "traces.duckdb").exists():
            time.sleep(0.1)
        post(endpoint, "second", 2)
        code, said = ended(process)
    assert (code, spans_of(home)) == (0, ["first", "second"]), said
    for name in files_of(home):
        assert SECRET.encode() not in (home / name).read_bytes(), name


def test_what_a_killed_receiver_had_answered_is_loaded_by_the_next(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with receiving(home, "--every", "600") as (process, endpoint):
        post(endpoint, "answered", 1)
        process.kill()
        process.wait()
    (inbox,) = (home / "inbox").iterdir()
    with (inbox / "traces.jsonl").open("ab") as torn:
        torn.write(b'{"resourceSpans": [{"scopeSpa')  # never answered
    with receiving(home) as (process, endpoint):
        post(endpoint, "later", 2)
        code, said = ended(process)
    assert spans_of(home) == ["answered", "later"]
    assert code == 3 and "rejected" in said  # the torn line is told, not passed over
    assert not any(name.startswith("inbox") for name in files_of(home))


def test_two_receivers_of_one_home_do_not_take_each_others_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with receiving(home, "--every", "600") as (one, first), receiving(home) as (two, second):
        post(first, "one", 1)
        post(second, "two", 2)
        assert ended(two)[0] == 0
        assert spans_of(home) == ["two"]
        assert ended(one)[0] == 0
    assert spans_of(home) == ["one", "two"]


def test_requests_are_kept_as_received_only_where_that_is_wished(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with receiving(home, "--raw") as (process, endpoint):
        post(endpoint, "first", 1)
        assert ended(process)[0] == 0
    kept = [name for name in files_of(home) if SECRET.encode() in (home / name).read_bytes()]
    assert kept and all(name.startswith("raw" + os.sep) for name in kept)


def test_a_port_that_is_taken_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    with receiving(tmp_path / "one") as (_, endpoint):
        port = str(urlsplit(endpoint).port)
        command = [
            str(Path(sys.executable).with_name("evalagent")),
            "receive",
            "--port",
            port,
            "--home",
            str(tmp_path / "two"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr and "Traceback" not in done.stderr
