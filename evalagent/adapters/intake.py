"""Files of traces into the trace store: read and masked in worker processes, put into the database by this one.

Memory is bounded whatever the size of a file: text is read some megabytes at a time. What a piece gives is what
reading the whole file gives. A load that is killed leaves nothing behind of the files that were under way.
"""

import contextlib
import hashlib
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

from evalagent.adapters.files import Input
from evalagent.adapters.intake_documents import LARGE, Feed
from evalagent.adapters.intake_messages import framing_of, messages
from evalagent.adapters.intake_pieces import Job, Yield, read_by, rows_of, work
from evalagent.adapters.intake_streams import PIECE, Given, Raw, digest_of
from evalagent.adapters.span_tables import FileReceipt, SpanTables
from evalagent.adapters.trace_store import TraceStore
from evalagent.adapters.workers import DEFAULT, Workers
from evalagent.errors import UsageError
from evalagent.model import Rejected
from evalagent.traces import cloudwatch
from evalagent.traces.masking import mask
from evalagent.traces.reading import EMPTY_FILE, TOLD_BY, PieceReader, Reading, why_no_text
from evalagent.traces.unpacking import Bomb

ALONE_UP_TO = 24 << 20
"""Bytes of input up to which no worker process is worth its start."""
TOGETHER = 64 << 20
"""Bytes of small files that are put into the database in one transaction."""
AGAIN = b"again"
"""In place of the text of a piece: the file is read again from its start."""
_Kind = Literal["piece", "apart", "again", "end"]
"""What waits: a piece, one that has nothing to do with those around it, the news that the file is read again from its
start, or that it has ended."""


@dataclass(frozen=True, slots=True)
class IntakeReceipt:
    """What became of all files of a load, in the order given."""

    files: tuple[FileReceipt, ...]

    @property
    def spans_in(self) -> int:
        return sum(one.spans for one in self.files)

    @property
    def logs_in(self) -> int:
        return sum(one.log_records for one in self.files)

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        return tuple(piece for one in self.files for piece in one.rejected)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The files as readings without their spans; counts are in the fields of this receipt."""
        return tuple(Reading(f.file, f.format, f.bytes, f.lines, (), (), f.rejected) for f in self.files)


def load(
    store: TraceStore,
    inputs: Sequence[Input],
    *,
    format: str = "auto",
    patterns: Sequence[str] = (),
    raw: Path | None = None,
    workers: int | None = None,
) -> IntakeReceipt:
    """Put the spans and log records of files into the store, secrets masked; `rebuilding.rebuild` is the next call.

    `patterns`: the suite's own expressions for secrets. `raw`: a folder that gets the bytes as received, unmasked.
    `workers`: processes; None: two, or none where the input is small. UsageError for a file that was named and cannot
    be read; StoreBusy and Terminal as the store has them.
    """
    processes = workers if workers is not None else 0 if _size(inputs) <= ALONE_UP_TO else DEFAULT
    with store.connection() as connection, Workers(work, processes) as reading:
        loading = _Load(SpanTables(connection), reading, format, tuple(patterns), raw, store.remembers)
        return IntakeReceipt(tuple(loading.files(inputs)))


def _size(inputs: Sequence[Input]) -> int:
    total = 0
    for one in inputs:
        if one.path is None:
            return ALONE_UP_TO + 1
        with contextlib.suppress(OSError):
            total += one.path.stat().st_size
    return total


@dataclass(slots=True)
class _File:
    """A file under way."""

    given: Input
    name: str
    number: int
    raw: Raw | None = None
    bytes: int = 0
    lines: int = 0
    spans: int = 0
    log_records: int = 0
    formats: set[str] = field(default_factory=set)
    rejected: list[Rejected] = field(default_factory=list)
    values: int = 0
    blank: bool = True
    reader: PieceReader | None = None
    """Where messages were met: what reads all pieces from there."""
    feed: Feed | None = None
    """Where the pieces of its text come from."""
    faults: list[str] = field(default_factory=list)
    """What was wrong with how it is packed."""
    void: str = ""
    """Why nothing of it counts."""
    identity: str = ""
    known: bool = False

    def begin(self) -> None:
        """Forget what was read."""
        self.lines = self.spans = self.log_records = self.values = 0
        self.formats.clear()
        self.rejected.clear()
        self.blank, self.reader = True, None


class _Load:
    """One call of `load`."""

    def __init__(
        self,
        tables: SpanTables,
        reading: Workers[Job, Yield],
        format: str,
        patterns: tuple[str, ...],
        raw: Path | None,
        remembers: bool,
    ) -> None:
        self.tables, self.reading, self.remembers = tables, reading, remembers
        self.format, self.patterns, self.raw = format, patterns, raw
        self.queue: deque[tuple[_File, _Kind]] = deque()
        """Files whose pieces wait, in order."""
        self.waiting = 0
        """Bytes put into the database and not yet committed."""
        self.sizes: Counter[int] = Counter()
        """How many inputs have this size: only of these the hash is worth knowing beforehand."""

    def files(self, inputs: Sequence[Input]) -> Iterator[FileReceipt]:
        """Load all; a receipt for each that is done."""
        for one in inputs:
            if one.path is not None:
                with contextlib.suppress(OSError):
                    self.sizes[one.path.stat().st_size] += 1
        source = self._pieces(inputs)
        with self.tables.writing():
            for file, job in source:
                self._put(file, job)
                while self.reading.full:
                    yield from self._step(source)
            while self.queue:
                yield from self._step(source)

    def _put(self, file: _File, job: Job | None) -> None:
        if job is None:
            self.queue.append((file, "end"))
        elif job.text is AGAIN:
            self.queue.append((file, "again"))
        else:
            self.reading.put(job)
            self.queue.append((file, "apart" if job.apart else "piece"))

    def _step(self, source: Iterator[tuple[_File, Job | None]]) -> Iterator[FileReceipt]:
        file, kind = self.queue.popleft()
        if kind == "end":
            yield self._finished(file)
        elif kind == "again":
            self.tables.discard(file.number)
            file.begin()
        elif file.reader is None:
            job, found = self.reading.take()
            while found.open and not job.last:
                job = self._handed_back(file, job, found.since) or self._longer(job, source)
                found = self.reading.done(job)
            if found.conversing:
                file.reader = PieceReader(job.file, job.format, job.before)
                self._read_here(file, file.reader, job, source)
            else:
                self._add(file, found)
        else:
            self._read_here(file, file.reader, self.reading.recall(), source)

    def _read_here(
        self, file: _File, reader: PieceReader, job: Job, source: Iterator[tuple[_File, Job | None]]
    ) -> None:
        """Read a piece in this process: where messages were met, one reader reads all."""
        while (found := read_by(reader, job)) is None:
            job = self._handed_back(file, job, reader.since) or self._longer(job, source)
        self._add(file, rows_of(found, self.patterns, values=reader.values, blank=reader.blank))

    def _handed_back(self, file: _File, job: Job, since: int | None) -> Job | None:
        """A piece up to the value that it does not end, if that is large; the rest goes back to where it came from."""
        feed = file.feed
        if feed is None or feed.ended or since is None or len(job.text) < LARGE:
            return None
        if any(kind != "piece" for _, kind in self.queue):
            return None
        text = cloudwatch.unstamped(job.text)
        before, rest = text[:since], [text[since:]]
        rest += [self.reading.recall().text for _ in self.queue]
        self.queue.clear()
        stands = before[before.rfind(b"\n") + 1 :]
        feed.give_back(b"".join(rest), job.before + before.count(b"\n"), counted=bool(stands.strip()))
        return job._replace(text=before, last=True)

    def _longer(self, job: Job, source: Iterator[tuple[_File, Job | None]]) -> Job:
        """The piece with what follows it in its file, so that it is about twice as long."""
        parts, last, size = [job.text], job.last, len(job.text)
        while not last and size < 2 * len(job.text):
            if not self.queue:
                self._put(*next(source))
            if self.queue[0][1] != "piece":  # the file broke off
                last = True
                break
            self.queue.popleft()
            following = self.reading.recall()
            parts.append(following.text)
            size, last = size + len(following.text), following.last
        return job._replace(text=b"".join(parts), last=last)

    def _add(self, file: _File, found: Yield) -> None:
        file.spans += found.span_count
        file.log_records += found.log_count
        file.lines += found.lines
        file.formats |= found.formats
        file.rejected += found.rejected
        file.values += found.values
        file.blank = file.blank and found.blank
        self.tables.add(file.number, found.spans, found.logs)

    def _finished(self, file: _File) -> FileReceipt:
        """The end of a file: its receipt, and its row in the store."""
        if file.reader is not None:
            self._add(file, rows_of(file.reader.close(), self.patterns))
        if file.raw is not None:
            file.bytes = file.raw.size
            file.identity = self._identity(file.raw.digest)
        if self.remembers and not file.known and file.identity and self.tables.known(file.identity):
            file.known = True
        if file.known:
            self.tables.discard(file.number)
            return self.tables.receipt_of(file.identity, file.name)
        file.rejected += [Rejected(file.name, 0, fault) for fault in file.faults]
        if file.void:
            self.tables.discard(file.number)
            file.spans = file.log_records = file.lines = 0
            file.formats.clear()
            file.rejected = [Rejected(file.name, 0, file.void)]
        elif not file.values:
            file.lines = 0 if file.blank else file.lines
            if not file.rejected:
                file.rejected.append(Rejected(file.name, 0, EMPTY_FILE))
        receipt = FileReceipt(
            file.name,
            "+".join(sorted(file.formats)) or "unknown",
            file.bytes,
            file.lines,
            file.spans,
            file.log_records,
            tuple(file.rejected),
        )
        self.tables.finish(file.number, file.identity, receipt)
        self.waiting += file.bytes
        if self.waiting >= TOGETHER:
            self.tables.commit()
            self.waiting = 0
        return receipt

    def _identity(self, digest: str) -> str:
        """What tells a load from others: bytes, format and patterns."""
        told = hashlib.blake2b(repr((digest, self.format, self.patterns)).encode("utf-8", "replace"), digest_size=16)
        return told.hexdigest()

    def _pieces(self, inputs: Sequence[Input]) -> Iterator[tuple[_File, Job | None]]:
        """All pieces of all files in order; None where a file ends."""
        number = self.tables.last
        for given in inputs:
            number += 1
            file = _File(given, str(mask(given.name, self.patterns)), number)
            if given.fault:
                file.void = given.fault
            elif not self._is_known(file):
                with self._kept(file):
                    try:
                        yield from ((file, job) for job in self._jobs(file))
                    except Bomb as bomb:
                        file.void = str(bomb)
                    except UsageError as error:
                        if given.named:
                            raise
                        file.void = error.message
            yield file, None

    def _is_known(self, file: _File) -> bool:
        """Whether a file was loaded before, found out before it is read where it may be."""
        if not self.remembers or file.given.path is None:
            return False
        with contextlib.suppress(OSError):
            size = file.given.path.stat().st_size
            if self.sizes[size] > 1 or self.tables.holds_size(size):
                file.identity = self._identity(digest_of(file.given.path))
                file.known = self.tables.known(file.identity)
        return file.known

    @contextlib.contextmanager
    def _kept(self, file: _File) -> Iterator[None]:
        """The bytes of a file kept as received, if that is wished, under their hash."""
        if self.raw is None:
            file.raw = Raw(file.given)
            yield
            return
        self.raw.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.raw, prefix=".") as place:
            copy = Path(place) / "bytes"
            file.raw = Raw(file.given, copy)
            yield
            if copy.exists():
                copy.replace(self.raw / file.raw.digest)

    @staticmethod
    def _size(file: _File) -> int | None:
        """Bytes of the file; None where that is not known beforehand."""
        try:
            return file.given.path.stat().st_size if file.given.path is not None else None
        except OSError:
            return None

    def _jobs(self, file: _File) -> Iterator[Job]:
        """The pieces of one file, or all of it where it is small."""
        raw = file.raw
        assert raw is not None
        common = (file.name, self.format, self.patterns)
        given = Given(raw, self._size(file))
        blocks = given.unpacking.blocks()
        head, have = [], 0
        for block in blocks:
            head.append(block)
            have += len(block)
            if have > max(PIECE, TOLD_BY):
                break
        else:
            yield Job(b"".join(given.kept or ()), 0, True, True, *common)
            return
        given.forget()
        first = b"".join(head)
        framing = framing_of(first)
        no_text = "" if framing else why_no_text(first)
        if framing:
            for part in messages(chain([first], blocks), framing, PIECE):
                yield Job(part.data, part.before, False, True, *common, part.places, part.rest)
        elif no_text:
            file.lines, file.blank = 1, False
            file.rejected.append(Rejected(file.name, 0, no_text))
            for _ in blocks:
                pass
        else:
            yield from self._text_jobs(file, chain([first], blocks))
        file.faults += given.unpacking.faults

    def _text_jobs(self, file: _File, blocks: Iterator[bytes]) -> Iterator[Job]:
        """The pieces of a text; of one that says things too late all once more."""
        common = (file.name, self.format, self.patterns)
        told: Mapping[int, Mapping[str, bytes]] | None = None
        while True:
            file.feed = feed = Feed(blocks, PIECE, told)
            for piece in feed.pieces():
                yield Job(
                    piece.text, piece.before, False, piece.last, *common,
                    cuttings=piece.cuttings, lines=piece.lines, apart=piece.apart, heading=piece.heading,
                )  # fmt: skip
            if not feed.late:
                return
            if file.given.path is None or told is not None:
                file.void = (
                    f"{feed.late} in a value of more than {LARGE >> 20} MiB, which takes a second look: give a file"
                    " instead of standard input. Nothing of it was read"
                )
                return
            told = feed.told
            yield Job(AGAIN, 0, False, True, *common)
            again = Given(Raw(file.given), self._size(file))
            again.forget()
            blocks = again.unpacking.blocks()
