"""What a worker process does with a piece of a file: reads it, masks it, and makes its rows."""

from dataclasses import replace
from typing import NamedTuple

from evalagent.adapters.arrow import Table
from evalagent.adapters.span_batches import distinct_spans, log_table, span_table
from evalagent.model import Rejected
from evalagent.traces.reading import PieceReader, Reading, read, read_messages
from evalagent.traces.splitting import Cutting


class Job(NamedTuple):
    """A piece of a file to be read; `whole`: it is all of it, as given."""

    text: bytes
    before: int
    whole: bool
    last: bool
    file: str
    format: str
    patterns: tuple[str, ...]
    parts: tuple[tuple[int, int], ...] = ()
    """Where the requests lie in a piece of a protobuf file; `before` counts requests then."""
    rest: bool = False
    """The piece goes on with the request of the one before it."""
    cuttings: tuple[Cutting, ...] = ()
    lines: int = 0
    apart: bool = False
    heading: bytes = b""
    """These as in `intake_documents.Piece`."""


class Yield(NamedTuple):
    """What a piece of a file held, ready for the database. `values`: how many stand in it; `blank`: it is white space.

    `open`: it ends in the middle of a value; `conversing`: it holds messages, of which one reader must see all. In both
    cases nothing else is told.
    """

    spans: Table | None = None
    logs: Table | None = None
    span_count: int = 0
    log_count: int = 0
    lines: int = 0
    formats: frozenset[str] = frozenset()
    rejected: tuple[Rejected, ...] = ()
    values: int = 0
    blank: bool = True
    open: bool = False
    since: int | None = None
    """Where the value begins that is not ended."""
    conversing: bool = False


def work(job: Job) -> Yield:
    """Read one piece, mask it, and make its rows."""
    if job.whole:
        return rows_of(read(job.text, job.file, job.format), job.patterns, values=1, blank=False)
    if job.parts:
        found = read_messages(job.text, job.parts, job.file, job.format, job.before)
        made = rows_of(found, job.patterns, values=1, blank=False)
        return made._replace(lines=0) if job.rest else made
    reader = PieceReader(job.file, job.format, job.before)
    reading = read_by(reader, job)
    if reading is None or reader.conversing:
        return Yield(open=reading is None, since=reader.since, conversing=reader.conversing)
    return rows_of(reading, job.patterns, values=reader.values, blank=reader.blank)


def read_by(reader: PieceReader, job: Job) -> Reading | None:
    """What a piece of a text held; None: it ends in the middle of a value."""
    if not job.apart:
        return reader.read(job.text, last=job.last, before=job.before)
    rows = job.heading
    reading = reader.read_rows(rows, job.text, job.before) if rows else reader.read_cuttings(job.cuttings)
    return replace(reading, lines_in=reading.lines_in + job.lines)


def rows_of(reading: Reading, patterns: tuple[str, ...], *, values: int = 0, blank: bool = True) -> Yield:
    """What was read, as rows with its secrets masked."""
    spans = distinct_spans(reading.spans, patterns)
    return Yield(
        span_table(spans) if spans else None,
        log_table(reading.logs, patterns) if reading.logs else None,
        len(reading.spans),
        len(reading.logs),
        reading.lines_in,
        frozenset(reading.format.split("+")) - {"unknown"},
        reading.rejected,
        values,
        blank,
    )
