"""The three standard streams of a container, read to their end and kept within bounds."""

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Any, Self

from evalagent.adapters.streams import Kept

EAGER = 64 << 20
"""Bytes after which an agent that floods its output is read slowly, so that it costs itself time and not us."""


class Attached:
    """Attached before the container starts, so that nothing it says is missed. The daemon stores none of it.

    A thread reads, always: a container whose output nobody takes cannot even be killed.
    """

    def __init__(self, container: Any) -> None:
        self.stdout, self.stderr = Kept(tail=False), Kept(tail=True)
        stream = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        self._stream = stream
        self._socket: socket.socket = getattr(stream, "_sock", stream)
        self._socket.settimeout(None)
        self._rest = bytearray()
        self._left = 0
        self._kind = 0
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._begin(self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        self._socket.close()
        self._stream.close()

    def send(self, data: bytes) -> None:
        """Writes all of standard input and closes it, beside the reading: an agent need not read it first."""
        self._begin(lambda: self._send(data))

    def until_end(self, deadline: float) -> bool:
        """Waits until both outputs are closed; False where `deadline` (monotonic seconds) came first."""
        return self._ended.wait(max(0.0, deadline - time.monotonic()))

    def _begin(self, work: Any) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(data)
            self._socket.shutdown(socket.SHUT_WR)

    def _read(self) -> None:
        try:
            while data := self._socket.recv(65536):
                self._take(data)
                if self.stdout.total + self.stderr.total > EAGER:
                    time.sleep(0.01)
        except OSError:
            return
        finally:
            self._ended.set()

    def _take(self, data: bytes) -> None:
        """Frames are 8 bytes of head (stream, 0, 0, 0, length) and their content, cut anywhere."""
        self._rest += data
        while self._rest:
            if self._left == 0:
                if len(self._rest) < 8:
                    return
                self._kind, self._left = self._rest[0], int.from_bytes(self._rest[4:8], "big")
                del self._rest[:8]
                continue
            part = bytes(self._rest[: self._left])
            del self._rest[: len(part)]
            self._left -= len(part)
            (self.stderr if self._kind == 2 else self.stdout).add(part)
