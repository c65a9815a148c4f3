"""Work done on many pieces in order, in this process or in some others."""

import contextlib
import queue
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, TypeVar

from evalagent.adapters.channels import Channel
from evalagent.adapters.garbage import uncollected
from evalagent.errors import Terminal

A = TypeVar("A")
B = TypeVar("B")
DEFAULT = 2
"""Processes that work beside this one where nothing else is said."""
AHEAD = 1
"""Pieces that wait beyond those that are worked on."""


class Workers(Generic[A, B]):
    """Does one kind of work on pieces that are given one by one; results come back in the same order.

    `processes` 0: in this process, when the result is asked for. Else the work, the pieces and the results are pickled.
    Started late: without a piece there is no process. Terminal if a process is killed.
    """

    def __init__(self, work: Callable[[A], B], processes: int) -> None:
        self._work = work
        self._processes = processes
        self._todo: queue.SimpleQueue[tuple[A, Future[B]] | None] = queue.SimpleQueue()
        self._hands: list[_Hand] = []
        self._waiting: deque[tuple[A, Future[B] | None]] = deque()

    def __enter__(self) -> "Workers[A, B]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hand in self._hands:
            hand.end()
        for _ in self._hands:
            self._todo.put(None)
        for hand in self._hands:
            hand.join()

    def put(self, piece: A) -> None:
        """Give a piece to work on."""
        self._waiting.append((piece, self._submitted(piece)))

    @property
    def full(self) -> bool:
        """Whether as many pieces wait as there should; take a result first."""
        return len(self._waiting) >= (self._processes + AHEAD if self._processes else 1)

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self) -> tuple[A, B]:
        """The earliest piece that waits, and its result."""
        piece, future = self._waiting.popleft()
        return piece, self._result(piece, future)

    def recall(self) -> A:
        """The earliest piece that waits, its work undone."""
        piece, future = self._waiting.popleft()
        if future is not None:
            future.cancel()
        return piece

    def done(self, piece: A) -> B:
        """The result of a piece that goes before all that wait."""
        return self._result(piece, self._submitted(piece))

    def map(self, pieces: Iterator[A]) -> Iterator[B]:
        """The results of many pieces."""
        for piece in pieces:
            self.put(piece)
            while self.full:
                yield self.take()[1]
        while len(self):
            yield self.take()[1]

    def _submitted(self, piece: A) -> "Future[B] | None":
        if not self._processes:
            return None
        while len(self._hands) < self._processes:
            self._hands.append(_Hand(self._work, self._todo))
        future: Future[B] = Future()
        self._todo.put((piece, future))
        return future

    def _result(self, piece: A, future: "Future[B] | None") -> B:
        if future is not None:
            return future.result()
        with uncollected():
            return self._work(piece)


class _Hand(threading.Thread):
    """One process, and the thread that speaks with it."""

    def __init__(self, work: Callable[[Any], Any], todo: "queue.SimpleQueue[Any]") -> None:
        super().__init__(daemon=True)
        self._todo = todo
        ours, other = socket.socketpair()
        self._channel = Channel(ours)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "evalagent.adapters.worker_process", str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
            )
        self._begun: list[object] = [sys.path, work]
        self.start()

    def run(self) -> None:
        broken = False
        for piece, future in iter(self._todo.get, None):
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if broken:
                    raise EOFError
                while self._begun:
                    self._channel.send(self._begun[0])
                    del self._begun[0]
                self._channel.send(piece)
                good, answer = self._channel.receive()
            except (EOFError, OSError):
                broken = True
                future.set_exception(
                    Terminal(
                        "a worker process was killed, most likely for want of memory; try again with fewer workers"
                    )
                )
            except Exception as error:  # noqa: BLE001 - whoever asks for the result is told
                future.set_exception(error)
            else:
                if good:
                    future.set_result(answer)
                else:
                    future.set_exception(answer)
            del piece, future
        self._channel.close()

    def end(self) -> None:
        """End the process, whatever it is doing."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
