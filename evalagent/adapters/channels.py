"""Values sent between two processes of ours, through a socket and without copies of what is large."""

import pickle
import socket
import struct
from typing import Any

_NUMBER = struct.Struct("<Q")


class Channel:
    """One end. A value is pickled; the buffers of tables travel beside the pickle, each after its length."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, value: object) -> None:
        """Send a value. OSError if nobody is there to take it; whatever pickling raises, and then nothing is sent."""
        parts: list[bytes | memoryview] = []
        parts.insert(0, pickle.dumps(value, pickle.HIGHEST_PROTOCOL, buffer_callback=lambda b: parts.append(b.raw())))
        self._end.sendall(b"".join(_NUMBER.pack(number) for number in (len(parts), *map(len, parts))))
        for part in parts:
            self._end.sendall(part)

    def receive(self) -> Any:
        """The next value. EOFError if the other end is closed."""
        (count,) = _NUMBER.unpack(self._taken(_NUMBER.size))
        sizes = struct.unpack(f"<{count}Q", self._taken(_NUMBER.size * count))
        head, *buffers = [self._taken(size) for size in sizes]
        return pickle.loads(head, buffers=buffers)  # noqa: S301 - from our own process

    def _taken(self, size: int) -> bytearray:
        taken = bytearray(size)
        rest = memoryview(taken)
        while rest:
            got = self._end.recv_into(rest)
            if not got:
                raise EOFError
            rest = rest[got:]
        return taken

    def close(self) -> None:
        """Close this end; the other one is told."""
        self._end.close()
