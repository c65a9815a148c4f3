"""The Docker sandbox with real containers: what an agent can and cannot do, how its end is told, what stays of it."""

import contextlib
import http.server
import io
import ipaddress
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from docker import errors

from evalagent.adapters import agent_needs, docker_daemon, docker_sandbox, python_image
from evalagent.adapters.collector import Collector, network_name
from evalagent.adapters.egress_proxy import allowed
from evalagent.errors import SandboxUnavailable, UsageError
from evalagent.model import TrialRun
from evalagent.suites import Agent, Budgets, Case
from evalagent.traces.reading import read
from tests.adapters import docker_needed
from tests.adapters.docker_needed import require_docker

RUN = "sandboxed"
ROOT = Path(__file__).resolve().parents[2]

BOT = """
import concurrent.futures, json, os, signal, socket, sys, time, urllib.request

def tried(what):
    try:
        return str(what())
    except OSError as error:
        return type(error).__name__

def write(path):
    with open(path, "w") as file:
        return file.write("x")

def net(targets):
    def one(target):
        return tried(lambda: "reached" if socket.create_connection(target, 4) else "")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        results = threads.map(one, map(tuple, targets))
        return {f"{host}:{port}": result for (host, port), result in zip(targets, results)}

def name(host):
    began = time.monotonic()
    return [tried(lambda: socket.getaddrinfo(host, 443)), time.monotonic() - began]

def paths(names):
    return {path: tried(lambda: write(path)) for path in names}

def whoami(_):
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    return {key: status[key].strip() for key in ("Uid", "Gid", "CapEff", "CapPrm", "NoNewPrivs", "Seccomp")}

def forks(_):
    made = 0
    try:
        while made < 5000:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            made += 1
    except OSError:
        pass
    sys.stdout.write(json.dumps(made))
    sys.stdout.flush()
    os._exit(0)

def memory(_):
    return len(bytearray(1 << 30))

def hang(_):
    from opentelemetry import trace
    with trace.get_tracer("bot").start_as_current_span("slow tool"):
        time.sleep(60)

def deaf(_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)

def flood(_):
    while True:
        sys.stdout.write("x" * 100_000)

def fetch(urls):
    return {url: tried(lambda: urllib.request.urlopen(url, timeout=10).read().decode()) for url in urls}

def files(folder):
    return sorted(os.path.relpath(os.path.join(d, n), folder) for d, _, names in os.walk(folder) for n in names)

if __name__ == "__main__":
    case = json.load(sys.stdin)
    what, _, argument = case["input"].partition(" ")
    act = {
        "env": lambda _: dict(os.environ), "exit": lambda code: sys.exit(code), "say": lambda text: text,
        "kill": lambda number: os.kill(os.getpid(), number), "length": len, "case": lambda _: case,
        "import": lambda module: __import__(module).__name__,
    }.get(what) or globals()[what]
    answer = act(json.loads(argument) if argument else None)
    if answer is not None:
        print(json.dumps(answer))
"""


@pytest.fixture(autouse=True)
def docker(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("docker"):
        require_docker()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    require_docker()
    with Collector(tmp_path_factory.mktemp("otlp"), RUN) as started:
        yield started


@pytest.fixture(scope="module", autouse=True)
def no_images_stay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each test's source and requirements make images of their own; only what the next session uses again is kept."""
    if docker_needed.lacking():
        yield
        return
    client = docker_daemon.connect()
    source = tmp_path_factory.mktemp("bot")
    (source / "bot.py").write_text(BOT)
    for wanted in (agent_needs.needs(source), agent_needs.Needs((), ())):
        python_image.build(client, wanted)
    before = {image.id for image in client.images.list()}
    yield
    for role in ("agent-image", "python"):
        for image in client.images.list(filters={"label": f"evalagent.role={role}"}):
            if image.id not in before and image.id is not None:
                with contextlib.suppress(errors.APIError):
                    client.images.remove(image.id)
    client.close()


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    (folder / "agent").mkdir(parents=True)
    (folder / "agent" / "bot.py").write_text(BOT)
    return folder


class Trials:
    """Runs trials of the bot, one case each, and remembers their worlds."""

    def __init__(self, collector: Collector, suite: Path, tmp_path: Path) -> None:
        self.collector, self.suite, self.tmp_path = collector, suite, tmp_path
        self.world = tmp_path / "none"

    def __call__(
        self,
        asked: str,
        argument: Any = None,
        *,
        wall_s: float = 30.0,
        available: Mapping[str, str] | None = None,
        memory: str = "192m",
        **agent: Any,
    ) -> TrialRun:
        self.world = self.tmp_path / f"world-{asked}-{time.monotonic_ns()}"
        self.world.mkdir(mode=0o700)
        said = {"source": "agent", "command": ["python", "bot.py"], "reply": "stdout", **agent}
        text = asked if argument is None else f"{asked} {json.dumps(argument)}"
        return docker_sandbox.run_trial(
            Agent(**said),
            Case(id=asked, input=text),
            3,
            suite_dir=self.suite,
            work_dir=self.world,
            endpoint=self.collector.endpoint,
            resource={"evalagent.run": RUN},
            budgets=Budgets(wall_s=wall_s),
            env=available or {},
            attempt="attempt-1",
            memory=memory,
        )


@pytest.fixture
def run(collector: Collector, suite: Path, tmp_path: Path) -> Iterator[Trials]:
    yield Trials(collector, suite, tmp_path)
    assert left_of_agents() == []


def left_of_agents() -> list[str]:
    client = docker_daemon.connect()
    try:
        found = [c for c in docker_daemon.containers(client) if c.labels.get("evalagent.run") == RUN]
        return [f"{c.name} {c.labels['evalagent.role']}" for c in found if c.labels["evalagent.role"] != "collector"]
    finally:
        client.close()


def told(run: TrialRun) -> Any:
    assert run.exit == "completed", (run.reason, run.stderr_tail)
    return json.loads(run.reply or "null")


@pytest.mark.docker
def test_an_agent_gets_its_question_and_its_world_and_its_answer_comes_back(run: Trials) -> None:
    ended = run("case")
    assert told(ended) == {"id": "case", "input": "case"}
    assert (ended.exit_code, ended.trial, ended.attempt, ended.reason) == (0, 3, "attempt-1", "")
    assert told(run("paths", ["notes.txt"])) == {"notes.txt": "1"}
    assert (run.world / "notes.txt").read_text() == "x"


@pytest.mark.docker
def test_nothing_but_the_world_and_tmp_can_be_written(run: Trials) -> None:
    closed = [
        "/x",
        "/agent/bot.py",
        "/evalagent/hook/x",
        "/usr/local/bin/x",
        "/etc/passwd",
        "/proc/sys/kernel/hostname",
    ]
    written = told(run("paths", [*closed, "/tmp/x", "/work/x"]))
    assert {path for path, result in written.items() if result == "1"} == {"/tmp/x", "/work/x"}


@pytest.mark.docker
def test_an_agent_is_nobody_with_no_capability(run: Trials) -> None:
    status = told(run("whoami"))
    assert "0" not in status["Uid"].split() and "0" not in status["Gid"].split()
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


@pytest.mark.docker
def test_no_network_but_the_collector(run: Trials) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        client = docker_daemon.connect()
        joined = client.networks.list(names=[network_name(RUN), "bridge"])
        gateways = [str(ipaddress.ip_network(n.attrs["IPAM"]["Config"][0]["Subnet"])[1]) for n in joined]
        client.close()
        assert len(gateways) == 2
        targets = [*((gateway, port) for gateway in gateways), ("192.0.2.1", 80), ("collector", 4318)]
        reached = told(run("net", targets))
    assert reached.pop("collector:4318") == "reached"
    assert len(reached) == 3 and all(result in ("TimeoutError", "OSError") for result in reached.values()), reached


@pytest.mark.docker
def test_a_lookup_ends_in_the_container_and_soon(run: Trials) -> None:
    result, took = told(run("name", "example.org"))
    assert result == "gaierror" and took < 5


@pytest.mark.docker
def test_memory_is_limited_and_the_reason_said(run: Trials) -> None:
    ended = run("memory")
    assert (ended.exit, ended.exit_code) == ("crashed", 137)
    assert "more memory than 192m" in ended.reason


@pytest.mark.docker
def test_a_fork_bomb_stays_small_and_ends_with_its_agent(run: Trials) -> None:
    made = told(run("forks", memory="1g"))
    assert 10 < made < docker_sandbox.PROCESSES


@pytest.mark.docker
def test_an_agent_that_hangs_is_stopped_and_its_open_step_is_seen(run: Trials, collector: Collector) -> None:
    ended = run("hang", wall_s=8.0)
    assert ended.exit == "timeout" and ended.wall_s < 15
    assert re.fullmatch(r"stopped at the wall limit of 8 s, having used [0-9.]+ s of processor time", ended.reason)
    deadline = time.monotonic() + 20
    slow = None
    while slow is None and time.monotonic() < deadline:
        spans = read((collector.folder / "traces.jsonl").read_bytes(), "traces.jsonl").spans
        slow = next((span for span in spans if span.name == "slow tool"), None)
        time.sleep(0.2)
    assert slow is not None
    assert slow.status == "error"
    marks = {key: slow.resource[f"evalagent.{key}"] for key in ("run", "case", "trial", "attempt")}
    assert marks == {"run": RUN, "case": "hang", "trial": "3", "attempt": "attempt-1"}


@pytest.mark.docker
def test_one_that_ignores_being_stopped_is_killed(run: Trials) -> None:
    ended = run("deaf", wall_s=1.5)
    assert (ended.exit, ended.exit_code) == ("timeout", 137)
    assert ended.wall_s < 15


@pytest.mark.docker
def test_one_that_floods_its_output_is_stopped_and_the_cut_is_said(run: Trials) -> None:
    ended = run("flood", wall_s=1.5)
    assert ended.exit == "timeout" and len(ended.reply or "") == 1 << 20
    assert "bytes were dropped" in ended.reason


@pytest.mark.docker
def test_how_an_agent_ended_is_told_apart(run: Trials) -> None:
    assert run("say", "").exit == "completed"
    silent = run("say")
    assert (silent.exit, silent.reply, silent.reason) == ("no_answer", None, "nothing on stdout")
    assert run("say", reply="trace").exit == "completed"
    failed = run("exit", 3)
    assert (failed.exit, failed.exit_code, failed.reason) == ("crashed", 3, "exit code 3")
    killed = run("kill", 9)
    assert (killed.exit, killed.reason) == ("crashed", "killed by SIGKILL")


@pytest.mark.docker
def test_a_long_question_reaches_an_agent_and_may_be_left_unread(run: Trials) -> None:
    assert told(run("length", "x" * 3_000_000)) == 3_000_000
    (run.suite / "agent" / "rude.py").write_text("print('not listening')")
    assert run("say", "x" * 3_000_000, command=["python", "rude.py"]).reply == "not listening"


@pytest.mark.docker
def test_only_named_variables_come_through(run: Trials) -> None:
    available = {"API_TOKEN": "t", "OTHER": "o"}
    found = told(run("env", available=available, env=["API_TOKEN", "ABSENT"]))
    assert found["API_TOKEN"] == "t" and "OTHER" not in found and "ABSENT" not in found
    assert found["HOME"] == "/tmp"


@pytest.mark.docker
def test_hosts_that_the_suite_names_are_reached_and_no_others(run: Trials) -> None:
    with _served("hello") as port, _served("secret") as other:
        urls = [f"http://host.docker.internal:{p}/" for p in (port, other)]
        answers = told(run("fetch", urls, egress=[f"host.docker.internal:{port}"]))
    assert answers == {urls[0]: "hello", urls[1]: "HTTPError"}


class _served:
    """A web server of this machine that always says one thing."""

    def __init__(self, text: str) -> None:
        class Says(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Says)

    def __enter__(self) -> int:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.server.server_port

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.mark.parametrize(
    ("hosts", "host", "port", "expected"),
    [
        (("api.example.com",), "API.example.com.", 443, True),
        (("api.example.com",), "api.example.com", 80, True),
        (("api.example.com",), "api.example.com", 22, False),
        (("api.example.com",), "evil-api.example.com", 443, False),
        (("api.example.com",), "api.example.com.evil.org", 443, False),
        (("*.example.com",), "a.b.example.com", 443, True),
        (("*.example.com",), "example.com", 443, False),
        (("api.example.com:8443",), "api.example.com", 8443, True),
        (("api.example.com:8443",), "api.example.com", 443, False),
        ((), "", 443, False),
    ],
)
def test_a_host_is_let_through_only_as_it_was_named(
    hosts: tuple[str, ...], host: str, port: int, expected: bool
) -> None:
    assert allowed(host, port, hosts) is expected


@pytest.mark.docker
def test_a_crash_for_want_of_a_module_that_this_machine_has_is_not_the_agents(run: Trials) -> None:
    with pytest.raises(UsageError, match=r"'scipy'.*agent/requirements.txt"):
        run("import", "scipy")
    assert run("import", "no_such_module").exit == "crashed"
    (run.suite / "agent" / "requirements.txt").write_text("filelock  # named, so it comes along\n")
    assert told(run("import", "filelock")) == "filelock"


@pytest.mark.docker
def test_requirements_that_are_not_installed_here_are_installed_into_the_image(run: Trials) -> None:
    wheel = run.tmp_path / "tiny_tool-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_tool.py", "")
        archive.writestr("tiny_tool-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-tool\nVersion: 1.0\n")
        archive.writestr(
            "tiny_tool-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_tool-1.0.dist-info/RECORD", "")
    requirements = run.suite / "agent" / "requirements.txt"
    requirements.write_text(f"tiny-tool @ {wheel.as_uri()}\n")
    assert told(run("import", "tiny_tool")) == "tiny_tool"
    requirements.write_text(f"tiny-tool @ {wheel.as_uri()}.gone\n")
    with pytest.raises(UsageError, match="could not be installed"):
        run("import", "tiny_tool")


@pytest.mark.docker
def test_a_program_that_the_image_lacks_is_the_users_to_mend(run: Trials) -> None:
    with pytest.raises(UsageError, match="no program 'no-such-program'"):
        run("say", command=["no-such-program", "--now"])
    with pytest.raises(UsageError, match="not on this machine"):
        run("say", command=None, image="evalagent-tests:no-such-image")
    with pytest.raises(UsageError, match="sandbox"):
        run("say", command=None, url="http://127.0.0.1:1/")


@pytest.mark.docker
def test_a_callable_is_called_with_the_task(run: Trials) -> None:
    (run.suite / "agent" / "desk.py").write_text(
        "def answer(task):\n    print('noise')\n    return task['input'].upper()\n"
    )
    assert run("say", command=None, callable="desk:answer").reply == "SAY"


@pytest.mark.docker
def test_an_image_of_the_users_own_runs_what_it_says(run: Trials) -> None:
    client = docker_daemon.connect()
    base = python_image.build(client, agent_needs.needs(run.suite / "agent"))
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, text in (
            (
                "Dockerfile",
                f'FROM {base}\nENV PYTHONPATH=/opt/own\nCOPY own.py /opt/own/\nCMD ["python", "-m", "own"]\n',
            ),
            ("own.py", "import os, sys; print(os.getcwd(), 'evalagent_hook' in sys.modules, os.getuid() != 0)"),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    context.seek(0)
    image, _ = client.images.build(fileobj=context, custom_context=True, tag="evalagent-tests:own", rm=True)
    try:
        assert run("say", command=None, image="evalagent-tests:own").reply == "/work True True"
    finally:
        client.images.remove("evalagent-tests:own")
        client.close()
    assert image.id


@pytest.mark.docker
def test_the_image_holds_the_source_without_its_secrets_and_expectations(run: Trials) -> None:
    for name in ("suite.yaml", "cases.jsonl", ".env", ".env.local", ".git/config", "data/prices.csv", "sub/.env"):
        file = run.suite / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    (run.suite / "bot.py").write_text(BOT)
    (run.suite / "outside").symlink_to("/etc/passwd")
    assert told(run("files", "/agent", source=".")) == ["agent/bot.py", "bot.py", "data/prices.csv"]


@pytest.mark.docker
def test_an_image_is_made_once_and_again_when_the_source_changes(suite: Path) -> None:
    agent = Agent(source="agent", command=["python", "bot.py"])
    first = docker_sandbox.prepare_image(agent, suite)
    began = time.monotonic()
    assert docker_sandbox.prepare_image(agent, suite) == first
    assert time.monotonic() - began < 1
    (suite / "agent" / "bot.py").write_text(BOT + "# better\n")
    assert docker_sandbox.prepare_image(agent, suite) != first


@pytest.mark.docker
def test_without_a_collector_no_agent_runs(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="no collector of run 'nobody'"):
        docker_sandbox.run_trial(
            Agent(source="agent", command=["python", "bot.py"]),
            Case(id="c", input="say"),
            0,
            suite_dir=suite,
            work_dir=tmp_path,
            endpoint="http://collector:4318",
            resource={"evalagent.run": "nobody"},
            budgets=Budgets(),
            env={},
            attempt="a",
        )


KILLED = """
import sys
from pathlib import Path
from evalagent.adapters import docker_sandbox
from evalagent.adapters.collector import Collector
from evalagent.suites import Agent, Budgets, Case
suite, work = Path(sys.argv[1]), Path(sys.argv[2])
with Collector(work / "otlp", "killed") as collector:
    (work / "world").mkdir()
    docker_sandbox.run_trial(Agent(source="agent", command=["python", "bot.py"]), Case(id="c", input="hang"), 0,
        suite_dir=suite, work_dir=work / "world", endpoint=collector.endpoint, resource={"evalagent.run": "killed"},
        budgets=Budgets(), env={}, attempt="a")
"""


@pytest.mark.docker
def test_an_agent_whose_evaluator_was_killed_is_swept(suite: Path, tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(suite), str(tmp_path)], cwd=ROOT)
    client = docker_daemon.connect()
    try:
        for _ in range(300):
            agents = docker_daemon.containers(client, "evalagent.run=killed", "evalagent.role=agent")
            if any(agent.status == "running" for agent in agents):
                break
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert len(docker_daemon.containers(client, "evalagent.run=killed")) == 2
        docker_daemon.sweep()
        assert docker_daemon.containers(client, "evalagent.run=killed") == []
        assert client.networks.list(names=[network_name("killed")]) == []
    finally:
        client.close()
