"""Warm Python: a process that has imported an agent's libraries once, and forks a child for each trial.

Whatever is in doubt (not Python, threads after the imports, a server that does not answer) is run as a plain process
instead, so `start` gives None rather than an error. EVALAGENT_WARM=0 switches it off.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from evalagent.adapters import agents
from evalagent.authoring import instrumenting
from evalagent.errors import SandboxUnavailable
from evalagent.suites import Agent

PER_TRIAL = frozenset(
    {
        "EVALAGENT_ATTEMPT",
        "EVALAGENT_TRIAL",
        "HOME",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_SERVICE_NAME",
        "PYTHONPATH",
        "TMPDIR",
    }
)
"""Variables that a child may have otherwise than its server; all others are the server's key."""
READY_S = 120.0
ANSWER_S = 30.0
MOST_SERVERS = 4
MOST_SOURCES = 2000
MOST_SOURCE = 1 << 20

NOT_SOURCE = frozenset({"__pycache__", "env", "node_modules", "venv"})

_Key = tuple[tuple[str, ...], tuple[tuple[str, str], ...], agents.Entry]
_lock = threading.Lock()
_servers: dict[_Key, "_Server"] = {}


class WarmProcess:
    """A trial's process that a server has forked."""

    def __init__(self, pid: int, waiter: socket.socket) -> None:
        self.pid, self._waiter = pid, waiter
        self._code: int | None = None

    def fileno(self) -> int:
        return self._waiter.fileno()

    def poll(self) -> int | None:
        if self._code is None:
            try:
                message = self._waiter.recv(1024)
            except BlockingIOError:
                return None
            except OSError:
                message = b""
            if not message:
                raise SandboxUnavailable("the warm Python process ended, and the trial with it")
            self._code = int(json.loads(message)["code"])
        return self._code

    def close(self) -> None:
        self._waiter.close()


def warm(agent: Agent, suite_dir: Path, env: Mapping[str, str]) -> None:
    """Start the server that trials of this agent will need; returns at once."""
    ready = agents.launch(agent, suite_dir)
    observed = instrumenting.environment(agent, endpoint="", resource={}, case_id="", trial=0, attempt="")
    environment = agents.environment(agent, ready, observed, env, Path("/"), Path("/"))
    if ready.entry is not None:
        _server(ready, ready.entry, suite_dir, agent, environment)


def close() -> None:
    """End all servers."""
    with _lock:
        servers = list(_servers.values())
        _servers.clear()
    for server in servers:
        server.end()


def start(
    agent: Agent,
    ready: agents.Launch,
    suite_dir: Path,
    work_dir: Path,
    environment: Mapping[str, str],
    fds: tuple[int, int, int],
) -> WarmProcess | None:
    """Fork a trial with these descriptors as its stdin, stdout and stderr; None: a plain process has to do it."""
    if ready.entry is None:
        return None
    server = _server(ready, ready.entry, suite_dir, agent, environment)
    if server is None or not server.ready():
        return None
    trial = {
        "how": ready.entry.how,
        "target": ready.entry.target,
        "arguments": ready.entry.arguments,
        "cwd": str(work_dir),
        "path": environment["PYTHONPATH"].split(":"),
        "env": dict(environment),
    }
    return server.fork(json.dumps(trial).encode(), fds)


def _server(
    ready: agents.Launch, entry: agents.Entry, suite_dir: Path, agent: Agent, environment: Mapping[str, str]
) -> "_Server | None":
    if os.environ.get("EVALAGENT_WARM", "1") == "0" or not hasattr(os, "pidfd_open"):
        return None
    stable = {name: value for name, value in environment.items() if name not in PER_TRIAL}
    path = tuple(environment["PYTHONPATH"].split(":"))
    key = (path, tuple(sorted(stable.items())), entry)
    with _lock:
        if key not in _servers:
            if len(_servers) >= MOST_SERVERS:
                return None
            source = agents.source_dir(agent, suite_dir)
            sources = own_modules(source)
            libraries = tuple(folder for folder in path if folder != str(source))
            _servers[key] = _Server(
                stable, libraries, instrumenting.imported(_starts(entry, sources), sources), sources
            )
        return _servers[key]


def own_modules(source: Path) -> dict[str, str]:
    """Dotted name -> text of the Python modules under an agent's source."""
    found: dict[str, str] = {}
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(name for name in folders if name.isidentifier() and name not in NOT_SOURCE)
        for name in sorted(files):
            path = Path(folder, name)
            if path.suffix == ".py" and path.stem.isidentifier() and len(found) < MOST_SOURCES:
                parts = path.relative_to(source).with_suffix("").parts
                dotted = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    found[dotted] = path.read_text(encoding="utf-8") if path.stat().st_size <= MOST_SOURCE else ""
    return found


def _starts(entry: agents.Entry, sources: dict[str, str]) -> tuple[str, ...]:
    if entry.how == "module":
        return (entry.target, f"{entry.target}.__main__") if f"{entry.target}.__main__" in sources else (entry.target,)
    if entry.how == "callable":
        return (entry.target.partition(":")[0],)
    script = "__script__"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        sources[script] = Path(entry.target).read_text(encoding="utf-8")
    return (script,)


class _Server:
    """One server process and the socket that it is commanded by; it dies when that socket closes."""

    def __init__(
        self, environment: Mapping[str, str], path: tuple[str, ...], preload: tuple[str, ...], own: Mapping[str, str]
    ) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._state: bool | None = None
        self.doubt = ""
        self._folder = tempfile.TemporaryDirectory(prefix="evalagent-warm-", ignore_cleanup_errors=True)
        with theirs, Path(self._folder.name, "stderr").open("w+b") as said:
            self._process = subprocess.Popen(
                [sys.executable, str(agents.LAUNCHER / "evalagent_warm.py"), str(theirs.fileno())],
                cwd=self._folder.name,
                env={
                    **environment,
                    "HOME": self._folder.name,
                    "PYTHONPATH": ":".join(path),
                    "EVALAGENT_HOOK_DEFER": "1",
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        tops = sorted({name.partition(".")[0] for name in own})
        with contextlib.suppress(OSError):
            self._control.send(json.dumps({"preload": preload, "own": tops}).encode())

    def ready(self) -> bool:
        """Whether it may be forked; waits for its imports."""
        with self._lock:
            if self._state is None:
                try:
                    self._control.settimeout(READY_S)
                    message = self._control.recv(1 << 16)
                    self.doubt = json.loads(message)["doubt"] if message else "it ended while importing"
                except (OSError, ValueError) as error:
                    self.doubt = f"it did not answer: {error}"
                self._state = not self.doubt
                if self.doubt:
                    self.end()
            return self._state

    def fork(self, trial: bytes, fds: tuple[int, int, int]) -> WarmProcess | None:
        """A child that runs this trial; None if there is none. SandboxUnavailable: nobody can tell whether there is."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, self._lock:
                self._control.settimeout(ANSWER_S)
                socket.send_fds(self._control, [trial], [*fds, theirs.fileno()])
            ours.settimeout(ANSWER_S)
            answer = json.loads(ours.recv(1 << 16) or b"{}")
        except TimeoutError as error:
            ours.close()  # on which the server kills the child, should it come to fork one
            raise SandboxUnavailable(
                "the warm Python process does not answer; EVALAGENT_WARM=0 does without"
            ) from error
        except OSError:
            answer = {}
        if "pid" not in answer:
            ours.close()
            return None
        ours.setblocking(False)
        return WarmProcess(int(answer["pid"]), ours)

    def end(self) -> None:
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()
