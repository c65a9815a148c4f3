"""Work done on many pieces in order, in this process or in some others."""

import gc
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, Generic, TypeVar

from evalagent.errors import Terminal

A = TypeVar("A")
B = TypeVar("B")
DEFAULT = 2
"""Processes that work beside this one where nothing else is said."""
AHEAD = 2
"""Pieces that wait beyond those that are worked on."""


class Workers(Generic[A, B]):
    """Does one kind of work on pieces that are given one by one; results come back in the same order.

    `processes` 0: in this process, when the result is asked for. Started late: without a piece there is no process.
    """

    def __init__(self, work: Callable[[A], B], processes: int) -> None:
        self._work = work
        self._processes = processes
        self._pool: ProcessPoolExecutor | None = None
        self._waiting: deque[tuple[A, Future[B] | None]] = deque()

    def __enter__(self) -> "Workers[A, B]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

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
        if self._pool is None:
            # a forked copy would share this process's database
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._processes, context, initializer=_begin)
        return self._pool.submit(_collected, self._work, piece)

    def _result(self, piece: A, future: "Future[B] | None") -> B:
        if future is None:
            return self._work(piece)
        try:
            return future.result()
        except BrokenProcessPool as error:
            raise Terminal(
                "a worker process was killed, most likely for want of memory; try again with fewer workers"
            ) from error


def _begin() -> None:
    gc.disable()  # what a piece makes goes when it is done; looking for rings meanwhile takes a third of the time


def _collected(work: Callable[[Any], Any], piece: Any) -> Any:
    try:
        return work(piece)
    finally:
        gc.collect()
