"""An OTLP/HTTP receiver inside this process: what an agent exports is masked and appended to OTLP/JSON lines.

    with Receiver(folder) as receiver:
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.endpoint

`folder` gets `traces.jsonl` and `logs.jsonl` when the first spans or records come, one request a line as the
collector's file exporter writes them (ids in hex, 64-bit numbers as text); lines that are there already stay. Metrics
are accepted and dropped. An answer of success means that the line is in the file; whoever got another may send again.
It listens on loopback unless told otherwise, and has no authentication.
"""

import contextlib
import json
import os
import socketserver
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http.server import ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

import orjson

from evalagent.adapters.receiving import BROKEN_OFF, NotStored, Receiving, Refused, Signal
from evalagent.adapters.request_bodies import MOST_OBJECTS, Busy, BytesInFlight, TooLarge, check_json
from evalagent.model import Json
from evalagent.traces import masking, otlp_protobuf
from evalagent.traces.documents import Fault, documents

FILES: Mapping[str, str] = {"traces": "traces.jsonl", "logs": "logs.jsonl"}
LARGEST_BODY = 64 << 20
"""Bytes of a request, before and after unpacking: 512 spans with whole conversations in them are large."""
IN_FLIGHT = 256 << 20
"""Bytes, as sent and as unpacked, that all requests together may hold; whoever comes then is asked to come again."""
SMALL_BODY = 1 << 20
"""Bytes up to which two requests are read at once; of larger ones one, beside them."""
QUEUE_S = 8.0
"""How long a request waits for its turn: exporters give up after ten seconds."""
MOST_REASONS = 200
"""Reasons for refusal that are counted apart."""
PATIENCE_S = 3.0
"""How long `stop` waits for requests that are being answered."""
_LISTS = {"traces": ("resourceSpans", "resource_spans"), "logs": ("resourceLogs", "resource_logs")}


class Receiver:
    """Receives from `start` to `stop`, or for as long as the `with` block does.

    `mask` is applied to each request (an object in OTLP/JSON's shape) before anything is written; by default it is
    `masking.mask` with the suite's own `patterns`. `port` 0 takes a free one.
    """

    def __init__(
        self,
        folder: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        mask: Callable[[Json], Json] | None = None,
        *,
        patterns: Sequence[str] = (),
        largest_body: int = LARGEST_BODY,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        self.folder = folder
        self.largest_body = largest_body
        self.in_flight = BytesInFlight(max(in_flight, 2 * largest_body))
        self.accepted: Counter[str] = Counter()
        """Requests answered with success, by signal (`traces`, `logs`, `metrics`)."""
        self.refused: Counter[str] = Counter()
        """Requests answered with an error, by reason."""
        self._host, self._port = host, port
        self._mask = mask or partial(masking.mask, patterns=tuple(patterns))
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._files: dict[str, IO[bytes]] = {}
        self._lock = threading.Lock()
        self._idle = threading.Condition()
        self._busy = 0
        self._turns = {"small": threading.Semaphore(2), "large": threading.Semaphore(1)}
        self._open = False
        self._cuts = 0

    @property
    def endpoint(self) -> str:
        """What `OTEL_EXPORTER_OTLP_ENDPOINT` is set to; the paths `/v1/traces` and so on are added by exporters."""
        if self._server is None:
            raise RuntimeError("the receiver is not started")
        host, port = self._server.server_address[:2]
        name = host if isinstance(host, str) else host.decode()
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen; OSError if the port is taken or the folder cannot be made."""
        if self._server is not None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._server = _Server((self._host, self._port), self)
        self._open = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="otlp-receiver", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Answer what has begun, then close the files with everything on the disk. Twice is once.

        What is not done within `PATIENCE_S` is counted as refused: nobody was told that it is kept, and it is not.
        """
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server = None
        with self._idle:
            self._open = False
            if not self._idle.wait_for(lambda: self._busy == 0, PATIENCE_S):
                self.refused["not answered before the receiver ended"] += self._busy
        with self._lock:
            for file in self._files.values():
                os.fsync(file.fileno())
                file.close()
            self._files.clear()

    def cut(self) -> tuple[Path, ...]:
        """Close what was written so far under names of its own, in order; what comes next begins new files.

        Empty if nothing came since the last cut. OSError if the disk does not keep it: the files then stay open.
        """
        closed = []
        with self._lock:
            for signal, file in sorted(self._files.items(), reverse=True):  # the traces before their logs
                os.fsync(file.fileno())
                self._cuts += 1
                path = self.folder / f"{self._cuts:06d}-{FILES[signal]}"
                (self.folder / FILES[signal]).rename(path)
                file.close()
                del self._files[signal]
                closed.append(path)
        return tuple(closed)

    def begin(self) -> bool:
        """A request has come; False when it comes too late to be taken."""
        with self._idle:
            self._busy += self._open
            return self._open

    def end(self) -> None:
        """The request that `begin` took is answered."""
        with self._idle:
            self._busy -= 1
            self._idle.notify_all()

    def count(self, counter: Literal["accepted", "refused"], what: str) -> None:
        """One more request of this outcome."""
        with self._idle:
            counts = self.accepted if counter == "accepted" else self.refused
            counts[what if what in counts or len(counts) < MOST_REASONS else "other reasons"] += 1

    def take(self, signal: Signal, body: bytes, binary: bool) -> tuple[str, ...]:
        """Store one request when it is its turn; why parts of it were left out. Refused, TooLarge, Busy or NotStored if
        none of it was stored."""
        with self._turn("small" if len(body) <= SMALL_BODY else "large"):
            return self._take(signal, body, binary)

    @contextlib.contextmanager
    def _turn(self, size: Literal["small", "large"]) -> Iterator[None]:
        """What is parsed takes many times the memory of its text, and the time of all: little of it goes on at once."""
        deadline = time.monotonic() + QUEUE_S
        while not self._turns[size].acquire(timeout=0.1):
            if not self._open:
                raise NotStored("the receiver has stopped")
            if time.monotonic() >= deadline:
                raise Busy("too many requests at once")
        try:
            yield
        finally:
            self._turns[size].release()

    def _take(self, signal: Signal, body: bytes, binary: bool) -> tuple[str, ...]:
        lost: tuple[str, ...] = ()
        if binary:
            try:
                decoded = otlp_protobuf.decode(body, signal, most=MOST_OBJECTS)
            except otlp_protobuf.MalformedProtobuf as error:
                raise Refused(f"no OTLP protobuf: {error}") from error
            except otlp_protobuf.TooManyMessages as error:
                raise TooLarge(f"more than {MOST_OBJECTS} messages in it") from error
            request, lost = decoded.request, decoded.lost
        else:
            check_json(body)
            request = _json_request(signal, body)
        if any(request.get(name) for name in _LISTS[signal]):
            self._append(signal, _line(self._mask(request)))
        return lost

    def _append(self, signal: str, line: bytes) -> None:
        with self._lock:
            if not self._open:
                raise NotStored("the receiver has stopped")
            try:
                file = self._files.get(signal) or self._file(signal)
                whole = file.tell()
                try:
                    rest = memoryview(line)
                    while rest:
                        rest = rest[file.write(rest) :]
                except OSError:
                    file.truncate(whole)
                    raise
            except OSError as error:
                raise NotStored(f"could not be written: {error.strerror}") from error

    def _file(self, signal: str) -> IO[bytes]:
        """The file of a signal; a line that a dead process left unfinished is ended first."""
        path = self.folder / FILES[signal]
        file = path.open("ab+", buffering=0)
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        self._files[signal] = file
        return file


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], receiver: Receiver) -> None:
        self._receiver = receiver
        super().__init__(address, partial(Receiving, receiver))

    def handle_error(self, request: object, client_address: object) -> None:
        """Count what ended a connection: the terminal is not its place."""
        error = sys.exception()
        broken = isinstance(error, ConnectionError | TimeoutError)
        self._receiver.count("refused", BROKEN_OFF if broken else f"a fault of ours ({type(error).__name__})")

    def server_bind(self) -> None:
        """Bind without asking the resolver for this machine's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "evalagent", self.server_address[1]


def _json_request(signal: str, body: bytes) -> dict[str, Json]:
    found = list(islice(documents(body), 2))
    if len(found) != 1:
        raise Refused("the body is empty" if not found else "more than one JSON value")
    value = found[0].value
    if isinstance(value, Fault):
        raise Refused(value.reason)
    names = _LISTS[signal]
    if type(value) is not dict or any(type(value.get(name, [])) is not list for name in names):
        raise Refused(f"no export request of {signal}: an object with the list `{names[0]}` was expected")
    if value and not any(name in value for name in names):
        raise Refused(f"no export request of {signal}: there is no `{names[0]}`")
    return value


def _line(request: Json) -> bytes:
    try:
        return orjson.dumps(request) + b"\n"
    except TypeError:  # nested deeper, or with larger integers, than the fast writer takes
        return json.dumps(request, separators=(",", ":")).encode() + b"\n"
