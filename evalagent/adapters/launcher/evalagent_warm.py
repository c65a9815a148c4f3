"""`python evalagent_warm.py CONTROL_FD`: Python that has imported what the agent will, and forks a child a trial.

Messages are JSON on a Unix socket that keeps their borders. The first says what to import; then each brings the three
standard descriptors of a trial and a socket on which its process id and its exit code are told. When the control socket
closes, its owner is gone, and so are all children. No thread is ever started here: forking with threads is not safe.

Stands alone: it runs in the agent's interpreter, and leaves nothing of its own on the agent's path.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import types
from pathlib import Path

HERE = __file__.rpartition("/")[0]
sys.path.insert(0, HERE)

import evalagent_limits  # type: ignore[import-not-found]  # noqa: E402
from evalagent_call import call as call_agent  # type: ignore[import-not-found]  # noqa: E402

sys.path[:] = [entry for entry in sys.path if entry != HERE]
MESSAGE = 1 << 20


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    order = json.loads(control.recv(MESSAGE) or b"{}")
    doubt = preload(order.get("preload", []), set(order.get("own", [])))
    control.send(json.dumps({"doubt": doubt}).encode())
    if not doubt:
        Server(control).serve()


def preload(names: list[str], own: set[str]) -> str:
    """Import; say why this process is not to be forked, if so."""
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001, S112 the agent will meet the same, and may know what to do
            continue
    for name in ("evalagent_telemetry", "evalagent_tools", "evalagent_threads"):
        with contextlib.suppress(ImportError):  # no hook wanted, or no OpenTelemetry SDK, which the hook says itself
            importlib.import_module(name)
    if "opentelemetry.exporter.otlp.proto.http" in sys.modules:
        with contextlib.suppress(ImportError):  # the exporter imports it when it is made
            importlib.import_module("requests")
    return threads() or next(
        (
            f"a library has loaded a module named {name}, as one of the agent's is"
            for name in sys.modules
            if name in own
        ),
        "",
    )


def threads() -> str:
    count = sum(1 for _ in Path("/proc/self/task").iterdir())
    return f"an import started {count - 1} threads" if count > 1 else ""


class Server:
    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.poll = select.poll()
        self.poll.register(control, select.POLLIN)
        self.children: dict[int, tuple[int, socket.socket]] = {}
        """pidfd -> pid and the socket of whoever waits for it."""
        self.owners: dict[int, int] = {}
        """descriptor of that socket -> pid."""

    def serve(self) -> None:
        import gc

        gc.collect()
        gc.freeze()  # else the first collection in a child copies every page
        while True:
            for fd, _ in self.poll.poll():
                if fd == self.control.fileno():
                    if not self.accept():
                        self.kill_all()
                        os._exit(0)
                elif fd in self.children:
                    self.ended(fd)
                elif fd in self.owners:  # nothing is ever sent on it: it was closed
                    kill(self.owners[fd])
                    self.poll.unregister(fd)

    def accept(self) -> bool:
        message, fds, _, _ = socket.recv_fds(self.control, MESSAGE, 4)
        if not message:
            return False
        trial, waiter = json.loads(message), socket.socket(fileno=fds[3])
        doubt = threads()
        if not doubt:
            try:
                pid = os.fork()
            except OSError as error:
                doubt = str(error)
        if doubt:
            tell(waiter, {"doubt": doubt})
            waiter.close()
        elif pid == 0:
            self.become(trial, fds[:3], waiter)
        else:
            pidfd = os.pidfd_open(pid)
            self.children[pidfd] = (pid, waiter)
            self.owners[waiter.fileno()] = pid
            self.poll.register(pidfd, select.POLLIN)
            self.poll.register(waiter, select.POLLIN)
            tell(waiter, {"pid": pid})
        for fd in fds[:3]:
            os.close(fd)
        return True

    def ended(self, pidfd: int) -> None:
        pid, waiter = self.children.pop(pidfd)
        _, status = os.waitpid(pid, 0)
        self.owners.pop(waiter.fileno(), None)
        with contextlib.suppress(KeyError):  # its owner has closed it
            self.poll.unregister(waiter)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        tell(waiter, {"code": os.waitstatus_to_exitcode(status)})
        waiter.close()

    def kill_all(self) -> None:
        for pid, _ in self.children.values():
            kill(pid)

    def become(self, trial: dict, fds: list[int], waiter: socket.socket) -> None:  # type: ignore[type-arg]
        """In the child: take the trial's place in the world, run the agent, never return."""
        code = 70
        try:
            server = os.getppid()
            os.setsid()
            evalagent_limits.die_with_parent(server)
            said = what_was_said()
            for target, fd in enumerate(fds):
                os.dup2(fd, target)
            for fd in [*fds, waiter.detach(), self.control.detach(), *self.children]:
                os.close(fd)
            for _, other in self.children.values():
                other.close()
            os.write(2, said)
            settle(trial)
            evalagent_limits.confine()
            code = run(trial)
        finally:
            os._exit(code)


def tell(waiter: socket.socket, message: dict) -> None:  # type: ignore[type-arg]
    with contextlib.suppress(OSError):  # whoever waited is gone
        waiter.send(json.dumps(message).encode())


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def what_was_said() -> bytes:
    """What the imports wrote to stderr, which is a file here: a cold agent would have said it too."""
    try:
        return os.pread(2, 1 << 16, 0)
    except OSError:
        return b""


def settle(trial: dict) -> None:  # type: ignore[type-arg]
    """Make this process look as if it had just been started for this trial."""
    os.environ.clear()
    os.environ.update(trial["env"])
    os.chdir(trial["cwd"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.path[:] = [*trial["path"], *(entry for entry in sys.path if entry not in trial["path"])]
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None  # type: ignore[attr-defined]
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "evalagent_hook" in sys.modules:
        sys.modules["evalagent_hook"].begin()


def run(trial: dict) -> int:  # type: ignore[type-arg]
    """Run the entry as the interpreter would, its end included; the exit code."""
    import atexit
    import threading

    main = types.ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    target = trial["target"]
    sys.argv[:] = [target, *trial["arguments"]]
    code = 0
    try:
        if trial["how"] == "module":
            import runpy

            sys.path.insert(0, trial["cwd"])
            runpy._run_module_as_main(target)  # type: ignore[attr-defined]
        elif trial["how"] == "file":
            sys.path.insert(0, target.rpartition("/")[0])
            main.__file__ = target
            exec(compile(Path(target).read_bytes(), target, "exec"), main.__dict__)  # noqa: S102
        else:
            sys.argv[:] = ["-c"]
            call_agent(target)
    except SystemExit as stop:
        code = exit_code(stop)
    except BaseException as error:  # noqa: BLE001
        code = 1
        trace = without_this_file(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        if isinstance(error, KeyboardInterrupt):
            code = 130
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException as error:  # noqa: BLE001
        sys.excepthook(type(error), error, error.__traceback__)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    return code


def exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    sys.stderr.write(f"{stop.code}\n")
    return 1


def without_this_file(trace: types.TracebackType | None) -> types.TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    main()
