"""Where `evaluate` gets its traces from: small inputs are held in memory, larger ones go through a store on disk, so
that their size does not matter; a trace store is read as it is. What is said of the traces is the same."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from evalagent.adapters import folders
from evalagent.adapters.files import SCRATCH, STANDARD_INPUT, Input, content, shown
from evalagent.adapters.garbage import uncollected
from evalagent.errors import UsageError
from evalagent.model import Json, Rejected, Trace
from evalagent.traces.building import Built, build
from evalagent.traces.masking import mask, mask_log, mask_span
from evalagent.traces.reading import Reading, read
from evalagent.traces.receipt import receipt

if TYPE_CHECKING:  # the database takes longer to import than a small file to judge
    from evalagent.adapters.intake import IntakeReceipt
    from evalagent.adapters.trace_store import TraceStore

T = TypeVar("T")
Work = Callable[[Built], T]
"""What is done to some of the traces; it can be pickled, and what it returns too."""

SPOOLED_ABOVE = 32 << 20
"""Bytes of input above which it goes through a store on disk; of a compressed file they count tenfold."""
_COMPRESSED = {".gz": 10, ".zst": 10}


class TraceSource(Protocol):
    """Traces, some at a time: those that belong together come together."""

    @property
    def outlined(self) -> bool:
        """Whether all traces together may be larger than memory."""
        ...

    @property
    def spans_in(self) -> int: ...
    @property
    def rejected(self) -> Sequence[Rejected]: ...
    @property
    def files(self) -> Sequence[str]: ...

    def each(self, work: Work[T], *, here: bool) -> Iterator[T]:
        """The work done on all traces, in a fixed order; `here`: in this process alone."""
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

    @property
    def outlined(self) -> bool:
        return False

    @property
    def spans_in(self) -> int:
        return sum(len(reading.spans) for reading in self.readings)

    @property
    def rejected(self) -> Sequence[Rejected]:
        return [piece for reading in self.readings for piece in reading.rejected]

    @property
    def files(self) -> Sequence[str]:
        return [reading.file for reading in self.readings]

    def each(self, work: Work[T], *, here: bool) -> Iterator[T]:
        yield work(self.built)

    def receipt(self, traces: Sequence[Trace], duplicates: int, logs: tuple[int, int]) -> dict[str, Json]:
        return receipt(self.readings, Built(tuple(traces), duplicates, *logs))


@dataclass(slots=True)
class InStore:
    """Traces whose spans lie in a store."""

    store: "TraceStore"
    prices: Mapping[str, Json] | None

    @property
    def outlined(self) -> bool:
        return True

    def each(self, work: Work[T], *, here: bool) -> Iterator[T]:
        from evalagent.adapters import rebuilding

        yield from rebuilding.map_built(self.store, work, prices=self.prices, workers=0 if here else None)


@dataclass(slots=True)
class Spooled(InStore):
    """Files whose spans lie in a store that goes away afterwards."""

    came: "IntakeReceipt"

    @property
    def spans_in(self) -> int:
        return self.came.spans_in

    @property
    def rejected(self) -> Sequence[Rejected]:
        return self.came.rejected

    @property
    def files(self) -> Sequence[str]:
        return [one.file for one in self.came.files]

    def receipt(self, traces: Sequence[Trace], duplicates: int, logs: tuple[int, int]) -> dict[str, Json]:
        told = receipt(self.came.readings, Built(tuple(traces), duplicates, *logs))
        attached, ignored = logs
        counted = {"in": self.came.logs_in, "attached": attached, "ignored": ignored}
        return {**told, "spans_in": self.came.spans_in, "log_records": counted}


@dataclass(slots=True)
class Stored(InStore):
    """A trace store that was filled before. Its lines were rejected then and told then."""

    told: Mapping[str, Json]
    rejected: Sequence[Rejected] = ()

    @property
    def spans_in(self) -> int:
        return int(self.told["spans_in"])

    @property
    def files(self) -> Sequence[str]:
        return [shown(self.store.path)]

    def receipt(self, traces: Sequence[Trace], duplicates: int, logs: tuple[int, int]) -> dict[str, Json]:
        now = receipt((), Built(tuple(traces), duplicates, *logs))
        now["log_records"]["in"] = sum(logs)
        return {**now, **{key: self.told[key] for key in ("files", "bytes", "lines", "spans_in", "rejected")}}


@contextlib.contextmanager
def opened(
    inputs: Sequence[Input], patterns: Sequence[str], format: str, prices: Mapping[str, Json] | None, scratch: Path
) -> Iterator[TraceSource]:
    """The source for these inputs, until the block ends; what is too large for memory lies below `scratch` meanwhile.

    UsageError if an input that was named cannot be read, or a trace store is given beside other inputs.
    """
    stored = [one for one in inputs if one.named and one.path is not None and _is_store(one.path)]
    if stored:
        if len(inputs) > 1:
            raise UsageError("a trace store is evaluated by itself; give no other PATH", file=stored[0].name)
        yield _stored(stored[0], prices)
        return
    inputs = [_begun(one) if one.path is None else one for one in inputs]
    if _size(inputs) <= SPOOLED_ABOVE:
        yield _in_memory(inputs, patterns, format, prices)
        return
    from evalagent.adapters import intake
    from evalagent.adapters.trace_store import TraceStore

    scratch.mkdir(parents=True, exist_ok=True)
    sweep(scratch)
    with TraceStore.temporary(scratch) as store:
        yield Spooled(store, prices, intake.load(store, inputs, format=format, patterns=patterns))


def sweep(scratch: Path) -> None:
    """Remove what evaluations that were killed left in their --out folder."""
    for left in scratch.glob(f"{SCRATCH}*"):
        number = left.name.removeprefix(SCRATCH).split("-")[0]
        if number.isdecimal() and not _runs(int(number)):
            with contextlib.suppress(OSError):
                folders.remove(left)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_store(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def _stored(given: Input, prices: Mapping[str, Json] | None) -> Stored:
    from evalagent.adapters.store import TRACES
    from evalagent.adapters.trace_store import TraceStore

    path = given.path or Path(given.name)
    if path.name != TRACES:
        raise UsageError(f"is a DuckDB file, but no trace store; that is called {TRACES}", file=given.name)
    store = TraceStore(path.parent)
    return Stored(store, prices, store.receipt())


def _size(inputs: Sequence[Input]) -> int:
    total = 0
    for one in inputs:
        total += len(one.begun)
        if one.path is not None:
            with contextlib.suppress(OSError):
                total += one.path.stat().st_size * _COMPRESSED.get(one.path.suffix.lower(), 1)
    return total


def _begun(given: Input) -> Input:
    """Standard input with its beginning read: nobody knows how much comes, and it is not kept unmasked on a disk."""
    if sys.stdin is None:
        raise UsageError("standard input is closed", file=STANDARD_INPUT)
    try:
        return replace(given, begun=sys.stdin.buffer.read(SPOOLED_ABOVE + 1))
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}", file=STANDARD_INPUT) from error


def _in_memory(
    inputs: Sequence[Input], patterns: Sequence[str], format: str, prices: Mapping[str, Json] | None
) -> InMemory:
    with uncollected():
        readings = [_reading(one, patterns, format) for one in inputs]
        spans = [mask_span(span, patterns) for reading in readings for span in reading.spans]
        logs = [mask_log(record, patterns) for reading in readings for record in reading.logs]
        return InMemory(readings, build(spans, logs, prices))


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
