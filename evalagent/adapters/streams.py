"""Takes what a process writes, to the end but not without bound."""

import contextlib
import os
import selectors
import time
from types import TracebackType
from typing import Protocol

KEPT = 1 << 20
"""Bytes kept of each stream."""
CHUNK = 1 << 16


class _Ending(Protocol):
    def fileno(self) -> int: ...

    def poll(self) -> int | None: ...


class Kept:
    """The first or the last MiB of a stream, and how much there was."""

    def __init__(self, *, tail: bool) -> None:
        self._tail, self._bytes, self.total = tail, bytearray(), 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        if self._tail:
            self._bytes += chunk
            if len(self._bytes) > 2 * KEPT:
                del self._bytes[:-KEPT]
        else:
            self._bytes += chunk[: max(0, KEPT - len(self._bytes))]

    def text(self) -> str:
        """What was kept, decoded with replacement."""
        kept = self._bytes[-KEPT:] if self._tail else self._bytes
        return bytes(kept).decode("utf-8", "replace").replace("\0", "\ufffd")

    def remark(self, name: str) -> str:
        """What is to be said if not all was kept."""
        lost = self.total - KEPT
        return (
            f"{name}: the {'first' if self._tail else 'last'} {lost} of {self.total} bytes were dropped"
            if lost > 0
            else ""
        )


class Capture:
    """Two pipes for a child's stdout and stderr, read by one thread together with the child's end."""

    def __init__(self) -> None:
        self.stdout, self.stderr = Kept(tail=False), Kept(tail=True)
        (out, self.stdout_fd), (err, self.stderr_fd) = os.pipe(), os.pipe()
        self._selector = selectors.DefaultSelector()
        self._open: dict[int, Kept] = {out: self.stdout, err: self.stderr}
        for fd in self._open:
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ)

    def __enter__(self) -> "Capture":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_child_ends()
        self._selector.close()
        for fd in self._open:
            os.close(fd)
        self._open.clear()

    def close_child_ends(self) -> None:
        """Once the child has them, so that the pipes end with it."""
        for fd in (self.stdout_fd, self.stderr_fd):
            if fd >= 0:
                os.close(fd)
        self.stdout_fd = self.stderr_fd = -1

    def until_end(self, process: _Ending, deadline: float) -> bool:
        """Read until the process has ended; False at the deadline (of `time.monotonic`)."""
        end = self._selector.register(process.fileno(), selectors.EVENT_READ)
        try:
            while process.poll() is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._read(left)
            return True
        finally:
            self._selector.unregister(end.fileobj)

    def drain(self, deadline: float) -> bool:
        """Read until both pipes are closed by all who hold them; False at the deadline."""
        while self._open:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._read(left)
        return True

    def _read(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            kept = self._open.get(key.fd)
            if kept is None:
                continue
            chunk = b""
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(key.fd, CHUNK)
                if not chunk:
                    self._selector.unregister(key.fd)
                    del self._open[key.fd]
                    os.close(key.fd)
            if chunk:
                kept.add(chunk)
