"""What other tools need for the same spans, each in an environment of its own and asked in its own way.

Phoenix and MLflow are servers: they are started empty on loopback with SQLite, sent OTLP protobuf requests of 100 spans
by two clients, and are done when all spans can be read from their database; the start of the server is not counted.
agentevals-cli reads the file in a process and extracts the turns of every trace; it stores nothing.
"""

import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PEERS = {"arize-phoenix": "20.26.1", "mlflow": "3.17.2", "agentevals-cli": "0.11.0"}
START_S = 240.0
QUIET = {"DO_NOT_TRACK": "1", "PHOENIX_TELEMETRY_ENABLED": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
EXTRACT = """
import sys, time
from agentevals.genai.extract import extract_turns
from agentevals.loader.auto import load_traces
start = time.perf_counter()
traces = load_traces(sys.argv[1], format="otlp-json")
turns = sum(len(extract_turns(trace)) for trace in traces)
print(time.perf_counter() - start, sum(len(getattr(t, "spans", None) or t.all_spans) for t in traces), turns)
"""


def installed(name: str, folder: Path) -> Path:
    """The Python of an environment with that peer in it, made on first use."""
    home = folder / name
    python = home / "bin" / "python"
    if not python.exists():
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, home], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, f"{name}=={PEERS[name]}"], check=True)
    return python


def requests(file: Path) -> list[bytes]:
    """The lines of an OTLP/JSON file as protobuf requests."""
    made = []
    for line in file.read_bytes().splitlines():
        request = ExportTraceServiceRequest()
        for given in orjson.loads(line)["resourceSpans"]:
            part = request.resource_spans.add()
            _attributes(part.resource.attributes, given["resource"]["attributes"])
            for scope_given in given["scopeSpans"]:
                scope = part.scope_spans.add()
                scope.scope.name, scope.scope.version = scope_given["scope"]["name"], scope_given["scope"]["version"]
                for told in scope_given["spans"]:
                    span = scope.spans.add(name=told["name"], kind=told["kind"])
                    span.trace_id, span.span_id = bytes.fromhex(told["traceId"]), bytes.fromhex(told["spanId"])
                    span.parent_span_id = bytes.fromhex(told.get("parentSpanId", ""))
                    span.start_time_unix_nano = int(told["startTimeUnixNano"])
                    span.end_time_unix_nano = int(told["endTimeUnixNano"])
                    _attributes(span.attributes, told["attributes"])
        made.append(request.SerializeToString())
    return made


def _attributes(target: Any, given: list[dict[str, Any]]) -> None:
    for pair in given:
        one = target.add(key=pair["key"])
        (kind, value), *_ = pair["value"].items()
        if kind == "intValue":
            one.value.int_value = int(value)
        elif kind == "doubleValue":
            one.value.double_value = value
        elif kind == "arrayValue":
            for inner in value["values"]:
                one.value.array_value.values.add(string_value=inner["stringValue"])
        else:
            one.value.string_value = value


def agentevals(file: Path, folder: Path) -> float:
    """Seconds to load the file and extract all turns."""
    python = installed("agentevals-cli", folder)
    done = subprocess.run(
        [python, "-c", EXTRACT, str(file)], check=True, capture_output=True, text=True, env={**os.environ, **QUIET}
    )
    return float(done.stdout.split()[-3])


def phoenix(bodies: list[bytes], spans: int, folder: Path, scratch: Path, limit_s: float) -> tuple[float, int]:
    """Seconds until the spans can be read from its database, or until the limit; how many can."""
    python = installed("arize-phoenix", folder)
    home = _fresh(scratch / "phoenix")
    port, grpc = _free_port(), _free_port()
    told = {
        "PHOENIX_WORKING_DIR": str(home), "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc),
    }  # fmt: skip
    command = [str(python.with_name("phoenix")), "serve"]
    with _server(command, f"http://127.0.0.1:{port}/healthz", told, scratch / "phoenix.log"):
        return _sent(f"http://127.0.0.1:{port}/v1/traces", bodies, spans, home / "phoenix.db", {}, limit_s)


def mlflow(bodies: list[bytes], spans: int, folder: Path, scratch: Path, limit_s: float) -> tuple[float, int]:
    """As `phoenix`."""
    python = installed("mlflow", folder)
    home = _fresh(scratch / "mlflow")
    port, database = _free_port(), home / "mlflow.db"
    command = [
        str(python.with_name("mlflow")), "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{database}", "--default-artifact-root", str(home / "artifacts"),
    ]  # fmt: skip
    headers = {"x-mlflow-experiment-id": "0"}
    environment = {"PATH": f"{python.parent}:{os.environ['PATH']}"}
    with _server(command, f"http://127.0.0.1:{port}/health", environment, scratch / "mlflow.log"):
        return _sent(f"http://127.0.0.1:{port}/v1/traces", bodies, spans, database, headers, limit_s)


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _server(command: list[str], health: str, told: Mapping[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, **QUIET, **told}, start_new_session=True
        )
    try:
        end = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(health, timeout=5) as answer:
                if answer.status == 200:
                    break
            if time.monotonic() > end or process.poll() is not None:
                raise RuntimeError(f"{command[0]} did not start: see {log}")
            time.sleep(0.5)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _sent(
    url: str, bodies: list[bytes], spans: int, database: Path, headers: Mapping[str, str], limit_s: float
) -> tuple[float, int]:
    def send(body: bytes) -> None:
        asked = urllib.request.Request(url, body, {"Content-Type": "application/x-protobuf", **headers})
        for _ in range(60):
            try:
                with urllib.request.urlopen(asked, timeout=300) as answer:
                    answer.read()
                return
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503):
                    raise
                time.sleep(0.5)
        raise RuntimeError(f"{url} would not take a request")

    start = time.perf_counter()
    with ThreadPoolExecutor(2) as clients:
        list(clients.map(send, bodies))
    seen = 0
    while seen < spans and time.perf_counter() - start < limit_s:
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as rows,
        ):
            seen = rows.execute("SELECT count(*) FROM spans").fetchone()[0]
        if seen < spans:
            time.sleep(0.25)
    return time.perf_counter() - start, seen
