"""Runs one trial of an agent as a process of this machine (Linux), within limits that the operating system keeps.

It keeps trials apart from each other and from this process. It does not keep a hostile agent from the machine's files
or network: that is what the Docker sandbox is for.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from evalagent import suites
from evalagent.adapters import agents, folders, forkserver
from evalagent.adapters.streams import Capture, Kept
from evalagent.authoring import instrumenting
from evalagent.errors import SandboxUnavailable, UsageError
from evalagent.model import TrialExit, TrialRun

GRACE_S = 2.0
"""Between SIGTERM, on which the hook flushes spans, and SIGKILL."""


class Started(Protocol):
    """A trial's process: the leader of its own session and group."""

    pid: int

    def fileno(self) -> int:
        """A descriptor that becomes readable when the process has ended."""

    def poll(self) -> int | None:
        """The exit code (negative: the signal) once it has ended."""

    def close(self) -> None:
        """Forget it."""


def run_trial(
    agent: suites.Agent,
    case: suites.Case,
    trial: int,
    *,
    suite_dir: Path,
    work_dir: Path,
    endpoint: str,
    resource: Mapping[str, str],
    budgets: suites.Budgets,
    env: Mapping[str, str],
    attempt: str,
) -> TrialRun:
    """Run an agent once, with the world already in `work_dir`, and say how it went. Blocks; safe from several threads.

    `env` is the caller's environment: only what the suite names comes through. UsageError: the suite asks for what
    cannot be run here. SandboxUnavailable: the machine failed, and nothing is known of the agent.
    """
    ready = agents.launch(agent, suite_dir)
    observed = instrumenting.environment(
        agent, endpoint=endpoint, resource=resource, case_id=case.id, trial=trial, attempt=attempt
    )
    work_dir = work_dir.resolve()
    with folders.scratch("evalagent-") as scratch:
        environment = agents.environment(agent, ready, observed, env, work_dir, scratch)
        task = json.dumps({"id": case.id, "input": case.input}).encode()
        code, timed_out, wall_s, out, err = _run(agent, ready, suite_dir, work_dir, environment, task, budgets.wall_s)
    reply = out.text().strip() or None
    exit, reason = _classified(agent, code, timed_out, reply, budgets.wall_s)
    return TrialRun(
        case_id=case.id,
        trial=trial,
        exit=exit,
        exit_code=code,
        attempt=attempt,
        reply=reply,
        stderr_tail=err.text(),
        wall_s=round(wall_s, 3),
        reason="; ".join(filter(None, (reason, out.remark("stdout"), err.remark("stderr")))),
    )


def warm(agent: suites.Agent, suite_dir: Path, env: Mapping[str, str] | None = None) -> None:
    """Start importing what the agent will import, so that the first trial need not wait for all of it."""
    forkserver.warm(agent, suite_dir, os.environ if env is None else env)


def close() -> None:
    """End the warm processes; trials that still run in them are killed."""
    forkserver.close()


def _run(
    agent: suites.Agent,
    ready: agents.Launch,
    suite_dir: Path,
    work_dir: Path,
    environment: Mapping[str, str],
    task: bytes,
    wall_s: float,
) -> tuple[int, bool, float, Kept, Kept]:
    """(exit code, whether the wall limit was reached, seconds it ran, stdout, stderr)."""
    with contextlib.ExitStack() as stack:
        stdin = stack.enter_context(tempfile.TemporaryFile())
        stdin.write(task)
        stdin.seek(0)
        capture = stack.enter_context(Capture())
        fds = (stdin.fileno(), capture.stdout_fd, capture.stderr_fd)
        process: Started = forkserver.start(agent, ready, suite_dir, work_dir, environment, fds) or _start(
            ready, work_dir, environment, fds
        )
        stack.callback(process.close)
        stack.callback(_abandon, process)
        capture.close_child_ends()
        began = time.monotonic()  # not before: a warm process may have to be waited for
        timed_out = not capture.until_end(process, began + wall_s)
        if timed_out:
            _signal(process.pid, signal.SIGTERM)
            if not capture.until_end(process, time.monotonic() + GRACE_S):
                _signal(process.pid, signal.SIGKILL)
                capture.until_end(process, time.monotonic() + 10)
        ran_s = time.monotonic() - began
        # A child that it left behind may hold the pipes open and go on writing: it gets a moment, then it is killed.
        capture.drain(time.monotonic() + 0.3)
        _signal(process.pid, signal.SIGKILL)
        _sweep(environment["TMPDIR"])
        capture.drain(time.monotonic() + 0.3)
        code = process.poll()
    if code is None:
        raise SandboxUnavailable(f"the agent's process {process.pid} does not end though it was killed")
    return code, timed_out, ran_s, capture.stdout, capture.stderr


def _classified(
    agent: suites.Agent, code: int, timed_out: bool, reply: str | None, wall_s: float
) -> tuple[TrialExit, str]:
    if timed_out:
        return "timeout", f"stopped at the wall limit of {wall_s:g} s"
    if code < 0:
        with contextlib.suppress(ValueError):
            return "crashed", f"killed by {signal.Signals(-code).name}"
        return "crashed", f"killed by signal {-code}"
    if code:
        return "crashed", f"exit code {code}"
    if agent.reply == "stdout" and reply is None:
        return "no_answer", "nothing on stdout"
    return "completed", ""


class _Process:
    """A process of its own, started through the launcher that sets its limits."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen, self.pid = popen, popen.pid
        self._pidfd = os.pidfd_open(popen.pid)

    def fileno(self) -> int:
        return self._pidfd

    def poll(self) -> int | None:
        return self._popen.poll()

    def close(self) -> None:
        os.close(self._pidfd)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(5)


def _start(ready: agents.Launch, work_dir: Path, environment: Mapping[str, str], fds: tuple[int, int, int]) -> Started:
    status, told = os.pipe()
    argv = [
        sys.executable,
        "-I",
        "-S",
        str(agents.LAUNCHER / "evalagent_exec.py"),
        str(os.getpid()),
        str(told),
        *ready.argv,
    ]
    try:
        popen = subprocess.Popen(
            argv,
            cwd=work_dir,
            env=dict(environment),
            stdin=fds[0],
            stdout=fds[1],
            stderr=fds[2],
            pass_fds=(told,),
            start_new_session=True,
        )
    except OSError as error:
        os.close(status)
        raise SandboxUnavailable(f"no process could be started: {error}") from error
    finally:
        os.close(told)
    with os.fdopen(status, "rb") as pipe:
        problem = pipe.read().decode(errors="replace")
    if problem:
        popen.wait()
        raise UsageError(f"cannot be started: {problem}", key="agent.command")
    return _Process(popen)


def _abandon(process: Started) -> None:
    """Whatever happened here, the agent does not go on. The number of one that has ended may be another's by now."""
    with contextlib.suppress(SandboxUnavailable):
        if process.poll() is not None:
            return
    _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _sweep(scratch: str) -> None:
    """Kill what left the group but still has this trial's scratch folder in its environment: it might yet change the
    world. What was forked from a warm process into a session of its own, and has not executed a program, escapes."""
    mark = f"TMPDIR={scratch}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
