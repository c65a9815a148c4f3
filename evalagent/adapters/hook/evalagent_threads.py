"""Carries the OpenTelemetry context into threads, where opentelemetry-instrumentation-threading is not installed."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from opentelemetry import context


def carry_context() -> None:
    """Patch `Thread.start` and `ThreadPoolExecutor.submit`, once a process."""
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def start_carrying(self: threading.Thread) -> None:
        if context.get_current():
            self.run = _carrying(self.run, lambda: self.__dict__.pop("run", None))  # type: ignore[method-assign]
        start(self)

    def submit_carrying(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        # An empty context is carried too: the worker may have been started in that of another job.
        return submit(self, _carrying(fn), *args, **kwargs)

    threading.Thread.start = start_carrying  # type: ignore[method-assign]
    ThreadPoolExecutor.submit = submit_carrying  # type: ignore[method-assign, assignment]


def _carrying(function: Callable[..., Any], done: Callable[[], object] = lambda: None) -> Callable[..., Any]:
    carried = context.get_current()

    def run(*args: Any, **kwargs: Any) -> Any:
        token = context.attach(carried)
        try:
            return function(*args, **kwargs)
        finally:
            context.detach(token)
            done()

    return run
