"""`evalagent store load`: files into the trace store of a home, and what became of them in a few lines."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalagent.adapters import intake, rebuilding
from evalagent.adapters.files import find_inputs, load_prices, load_suite, suite_path
from evalagent.adapters.intake import IntakeReceipt
from evalagent.adapters.rebuilding import RebuildReceipt
from evalagent.adapters.trace_store import TraceStore
from evalagent.errors import UnreadableInput
from evalagent.model import Json, Rejected

SHOWN = 20
"""Rejected pieces that are named."""
RAW = "raw"
"""Folder of a home for the bytes of inputs as received, each under its hash."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load did, as text, and the exit code of the command."""

    text: str
    exit_code: int


def said_by(suite_file: Path | None) -> tuple[Sequence[str], Mapping[str, Json] | None]:
    """The secrets and the prices of a suite; none of either without one."""
    if suite_file is None:
        return (), None
    suite = load_suite(suite_file)[0]
    return suite.secrets, load_prices(suite, suite_path(suite_file).parent)


def load_files(
    paths: Sequence[str],
    home: Path,
    *,
    format: str = "auto",
    suite_file: Path | None = None,
    raw: bool = False,
    allow_rejected: bool = False,
) -> Loaded:
    """Load files and folders, and build the traces that are new or changed.

    The suite's secrets and prices apply. UnreadableInput if nothing at all could be read.
    """
    began = time.monotonic()
    patterns, prices = said_by(suite_file)
    inputs = [one for one in find_inputs(paths) if not one.passed_over]
    store = TraceStore(home)
    came = intake.load(
        store,
        inputs,
        format=format,
        patterns=patterns,
        raw=home / RAW if raw else None,
    )
    if not came.spans_in and not came.logs_in:
        first = next(iter(came.rejected), None)
        raise UnreadableInput(f"no span could be read: {_named(first)}" if first else f"no span in {', '.join(paths)}")
    built = rebuilding.rebuild(store, prices=prices)
    text = "\n".join(_lines(came, built, store, time.monotonic() - began, raw))
    return Loaded(text, 3 if came.rejected and not allow_rejected else 0)


def rebuild_all(home: Path, suite_file: Path | None = None) -> str:
    """Build every trace of the store anew from its spans; what was done, in a line. The suite's prices apply."""
    built = rebuilding.rebuild(TraceStore(home), prices=said_by(suite_file)[1], everything=True)
    return f"trace store: {built.traces} traces with {built.steps} steps and {built.edges} edges"


def _lines(came: IntakeReceipt, built: RebuildReceipt, store: TraceStore, seconds: float, raw: bool) -> Iterator[str]:
    new = [one for one in came.files if not one.known]
    known = len(came.files) - len(new)
    size = sum(one.bytes for one in new)
    spans, logs = sum(one.spans for one in new), sum(one.log_records for one in new)
    yield f"loaded: {len(new)} files of {_bytes(size)}, {spans} spans, {logs} log records"
    if known:
        kept = "; their bytes were not kept again" if raw else ""
        yield f"known: {known} files had been loaded before and changed nothing{kept}"
    yield f"built: {built.traces} traces with {built.steps} steps and {built.edges} edges"
    held = store.receipt()
    counts = store.counts()
    yield (
        f"store: {counts['traces']} traces, {counts['spans']} spans, {counts['steps']} steps, {counts['edges']} edges;"
        f" {held['duplicates']} spans came again; {_bytes(store.path.stat().st_size)} in {store.path}"
    )
    for piece in came.rejected[:SHOWN]:
        yield f"rejected: {_named(piece)}"
    if len(came.rejected) > SHOWN:
        yield f"rejected: {len(came.rejected) - SHOWN} more; all are in the table traces.inputs"
    yield f"time: {seconds:.1f} s"


def _named(piece: Rejected) -> str:
    where = f"{piece.file}:{piece.line}" if piece.line else piece.file
    return f"{where}: {piece.reason}"


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size} bytes"
