"""Where `evaluate` gets its traces from: small inputs are held in memory, larger ones go through a store on disk, so
that their size does not matter. What is said of them is the same."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from evalagent.adapters.files import Input, content
from evalagent.errors import UsageError
from evalagent.model import Json, Rejected, Trace
from evalagent.traces.building import Built, build
from evalagent.traces.masking import mask, mask_log, mask_span
from evalagent.traces.reading import Reading, read
from evalagent.traces.receipt import receipt

T = TypeVar("T")
Work = Callable[[Built], T]
"""What is done to some of the traces; it can be pickled, and what it returns too."""


class TraceSource(Protocol):
    """Traces, some at a time: those that belong together come together."""

    spans_in: int
    rejected: Sequence[Rejected]
    files: Sequence[str]

    def each(self, work: Work[T]) -> Iterator[T]:
        """The work done on all traces, in a fixed order."""
        ...

    def whole(self, trace_ids: Sequence[str]) -> Mapping[str, Trace]:
        """These traces with all their content."""
        ...

    def receipt(self, traces: Sequence[Trace], duplicates: int, logs: tuple[int, int]) -> dict[str, Json]:
        """The receipt, from the traces that were built (outlines suffice), the spans that came again, and the log
        records that were attached and ignored."""
        ...


@dataclass(slots=True)
class InMemory:
    """Files that were read whole."""

    readings: Sequence[Reading]
    built: Built
    spans_in: int
    rejected: Sequence[Rejected]
    files: Sequence[str]

    def each(self, work: Work[T]) -> Iterator[T]:
        yield work(self.built)

    def whole(self, trace_ids: Sequence[str]) -> Mapping[str, Trace]:
        wanted = set(trace_ids)
        return {trace.trace_id: trace for trace in self.built.traces if trace.trace_id in wanted}

    def receipt(self, traces: Sequence[Trace], duplicates: int, logs: tuple[int, int]) -> dict[str, Json]:
        return receipt(self.readings, Built(tuple(traces), duplicates, *logs))


@contextlib.contextmanager
def opened(
    inputs: Sequence[Input], patterns: Sequence[str], format: str, prices: Mapping[str, Json] | None
) -> Iterator[TraceSource]:
    """The source for these inputs, until the block ends. UsageError if an input that was named cannot be read."""
    yield _in_memory(inputs, patterns, format, prices)


def _in_memory(
    inputs: Sequence[Input], patterns: Sequence[str], format: str, prices: Mapping[str, Json] | None
) -> InMemory:
    readings = [_reading(one, patterns, format) for one in inputs]
    spans = [mask_span(span, patterns) for reading in readings for span in reading.spans]
    logs = [mask_log(record, patterns) for reading in readings for record in reading.logs]
    return InMemory(
        readings,
        build(spans, logs, prices),
        len(spans),
        [piece for reading in readings for piece in reading.rejected],
        [reading.file for reading in readings],
    )


def _reading(given: Input, patterns: Sequence[str], format: str) -> Reading:
    """What an input holds; of one that cannot be read, why. A file that was named itself must be readable."""
    name, fault = str(mask(given.name, patterns)), given.fault
    if not fault:
        try:
            return read(content(given), name, format)
        except UsageError as error:
            if given.named:
                raise
            fault = error.message
    return Reading(name, "unknown", 0, 0, (), (), (Rejected(name, 0, fault),))
