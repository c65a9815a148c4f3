"""`evalagent receive`: what is exported to it over OTLP/HTTP lands in the trace store.

A request is answered when it stands in a file of the inbox, and a few seconds later the files are loaded into the
store, so that many spans cost one transaction and the store is free for queries in between. What a killed process left
in its inbox is loaded by the next one.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from evalagent.adapters import intake, rebuilding
from evalagent.adapters.files import Input
from evalagent.adapters.loading import RAW
from evalagent.adapters.receiver import FILES, Receiver
from evalagent.adapters.trace_store import TraceStore
from evalagent.errors import EvalAgentError, UsageError
from evalagent.model import Json

INBOX = "inbox"


@dataclass(slots=True)
class Landed:
    """What has been loaded into the store."""

    spans: int = 0
    log_records: int = 0
    rejected: int = 0
    traces: int = 0
    """Traces that were built, again or anew."""
    waiting: int = 0
    """Files that are in the inbox still."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Requests that were answered with an error, by reason."""

    @property
    def text(self) -> str:
        """What is said at the end."""
        lines = [f"in all {self.spans} spans and {self.log_records} log records; {self.traces} traces built"]
        lines += [f"  {self.rejected} pieces rejected"] if self.rejected else []
        lines += [f"  {n} requests refused: {why}" for why, n in sorted(self.refused.items())]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Landing:
    """Where spans are to land, and on what terms."""

    home: Path
    patterns: Sequence[str] = ()
    """The suite's own secrets."""
    prices: Mapping[str, Json] | None = None
    raw: bool = False
    """Keep the requests as they came, secrets and all, in `raw/`."""


def receive(
    landing: Landing,
    host: str,
    port: int,
    *,
    every_s: float = 2.0,
    stop: threading.Event,
    say: Callable[[str], None],
) -> Landed:
    """Receive until `stop` is set; what came is in the store then, or in the inbox if the store is busy to the end.

    UsageError if the address cannot be listened on.
    """
    inbox = landing.home / INBOX
    landed = Landed()
    with _own_folder(inbox) as folder, contextlib.ExitStack() as adopted:
        waiting = _load(landing, _left_behind(inbox, folder, adopted), landed, say)
        receiver = Receiver(
            folder, host, port, (lambda request: request) if landing.raw else None, patterns=landing.patterns
        )
        try:
            receiver.start()
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}", key="--port") from error
        say(f"receiving OTLP/HTTP at {receiver.endpoint} (Ctrl-C ends it); point an exporter at it with")
        say(f"  export OTEL_EXPORTER_OTLP_ENDPOINT={receiver.endpoint} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
        try:
            while not stop.wait(every_s):
                waiting = _load(landing, [*waiting, *_cut(receiver, say)], landed, say)
        finally:
            receiver.stop()
        waiting += [path for name in FILES.values() if (path := folder / name).exists()]
        waiting = _load(landing, waiting, landed, say)
        if waiting:
            say(f"{len(waiting)} files are not loaded yet and stay in {inbox}; the next `evalagent receive` loads them")
        landed.waiting, landed.refused = len(waiting), dict(receiver.refused)
    return landed


def _cut(receiver: Receiver, say: Callable[[str], None]) -> tuple[Path, ...]:
    try:
        return receiver.cut()
    except OSError as error:  # what came is in the file still, and is cut off the next time
        say(f"not loaded yet: {error.strerror}")
        return ()


@contextlib.contextmanager
def _own_folder(inbox: Path) -> Iterator[Path]:
    """A folder of the inbox that is this process's own for as long as it lives; an empty one goes away."""
    folder = inbox / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
    folder.mkdir(parents=True)
    lock = FileLock(folder / "lock")
    lock.acquire()
    try:
        yield folder
    finally:
        lock.release()
        _remove_empty(folder)


def _left_behind(inbox: Path, own: Path, until_end: contextlib.ExitStack) -> list[Path]:
    """The files of processes that are no more, oldest first; they are this process's own from now on."""
    found: list[Path] = []
    for folder in sorted(inbox.iterdir()):
        if folder == own or not folder.is_dir():
            continue
        lock = FileLock(folder / "lock")
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):  # alive, or taken and removed by another one meanwhile
            continue
        until_end.callback(_remove_empty, folder)
        until_end.callback(lock.release)
        found += sorted(folder.glob("*.jsonl"))
    return found


def _remove_empty(folder: Path) -> None:
    if not any(folder.glob("*.jsonl")):
        (folder / "lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()


def _load(landing: Landing, files: Sequence[Path], landed: Landed, say: Callable[[str], None]) -> list[Path]:
    """Load files into the store and take them out of the inbox; those that have to wait for the store."""
    if not files:
        return []
    store = TraceStore(landing.home)
    inputs = [Input(str(path), path) for path in files]
    try:
        raw = landing.home / RAW if landing.raw else None
        came = intake.load(store, inputs, patterns=landing.patterns, raw=raw)
        built = rebuilding.rebuild(store, prices=landing.prices)
    except EvalAgentError as error:  # a busy store, a full disk: what was answered is in the inbox and is tried again
        say(f"not loaded yet: {error}")
        return list(files)
    for path in files:
        path.unlink(missing_ok=True)
    landed.spans += came.spans_in
    landed.log_records += came.logs_in
    landed.rejected += len(came.rejected)
    landed.traces += built.traces
    say(f"{came.spans_in} spans, {came.logs_in} log records; {built.traces} traces built")
    for piece in came.rejected[:5]:
        say(f"  rejected: {piece.file}:{piece.line}: {piece.reason}")
    return []
