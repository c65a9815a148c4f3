"""Spans and log records into the tables of an open trace store: each id once, the fuller of two, all or nothing."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from evalagent.adapters.arrow import Table, arrow
from evalagent.adapters.span_batches import SPAN_COLUMNS, spans_in
from evalagent.adapters.trace_store import insert_rows, one, temporary_table
from evalagent.model import Rejected
from evalagent.traces.building import fullness

_AT_ONCE = 2000
"""Ids whose spans are compared at a time."""


@dataclass(frozen=True, slots=True)
class FileReceipt:
    """What became of one file. `known`: it was loaded before, and nothing was done; the numbers are those of then."""

    file: str
    format: str
    bytes: int
    lines: int
    spans: int
    log_records: int
    rejected: tuple[Rejected, ...] = ()
    known: bool = False


class SpanTables:
    """The tables of spans, while a load writes to them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.last: int = one(connection, "SELECT coalesce(max(number), 0) FROM inputs")
        """Number of the last input that is committed."""
        self._sizes = {size for (size,) in connection.execute("SELECT bytes FROM inputs").fetchall()}

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction, begun anew by each `commit`; what was not committed is undone if the block fails."""
        self.connection.execute("BEGIN")
        try:
            yield
            self._settle()
            self.connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                self.connection.execute("ROLLBACK")
            raise

    def commit(self) -> None:
        """Make what was added since the last time lasting."""
        self._settle()
        self.connection.execute("COMMIT")
        self.last = one(self.connection, "SELECT coalesce(max(number), 0) FROM inputs")
        self.connection.execute("BEGIN")

    def add(self, number: int, spans: Table | None, logs: Table | None) -> None:
        """Rows of one input."""
        for table, rows in (("spans", spans), ("log_records", logs)):
            if rows is not None:
                numbers = arrow().array([number] * rows.num_rows, "int64")
                insert_rows(self.connection, table, rows.append_column("input", numbers))

    def discard(self, number: int) -> None:
        """Take back the rows of one input, of which `finish` was not called."""
        for table in ("spans", "log_records"):
            self.connection.execute(f"DELETE FROM {table} WHERE input = ?", [number])  # noqa: S608

    def finish(self, number: int, identity: str, receipt: FileReceipt) -> None:
        """An input is whole."""
        self.connection.execute(
            "INSERT INTO inputs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                number, identity, receipt.file, receipt.bytes, receipt.format, receipt.lines, receipt.spans,
                receipt.log_records, [{"line": piece.line, "reason": piece.reason} for piece in receipt.rejected],
            ],
        )  # fmt: skip
        self._sizes.add(receipt.bytes)

    def known(self, identity: str) -> bool:
        """Whether an input was loaded before."""
        return bool(one(self.connection, "SELECT count(*) FROM inputs WHERE identity = ?", [identity]))

    def holds_size(self, size: int) -> bool:
        """Whether an input of so many bytes was loaded before."""
        return size in self._sizes

    def receipt_of(self, identity: str, name: str) -> FileReceipt:
        """What became of an input when it was loaded first."""
        format, size, lines, spans, logs, rejected = self.connection.execute(
            "SELECT format, bytes, lines, spans, log_records, rejected FROM inputs WHERE identity = ? LIMIT 1",
            [identity],
        ).fetchall()[0]
        pieces = tuple(Rejected(name, piece["line"], piece["reason"]) for piece in rejected)
        return FileReceipt(name, format, size, lines, spans, logs, pieces, known=True)

    def _settle(self) -> None:
        """Of the rows of one id keep one, and mark the traces of what is new."""
        run, new = self.connection.execute, [self.last]
        run(
            "INSERT INTO stale SELECT DISTINCT trace_id FROM"
            " (SELECT trace_id FROM spans WHERE input > $1 UNION ALL SELECT trace_id FROM log_records WHERE input > $1)"
            " ANTI JOIN stale USING (trace_id)",
            new,
        )
        run(
            "CREATE OR REPLACE TEMP TABLE rivals AS SELECT trace_id, span_id FROM spans"
            " SEMI JOIN (SELECT DISTINCT trace_id FROM spans WHERE input > $1) USING (trace_id)"
            " GROUP BY ALL HAVING count(*) > 1",
            new,
        )
        if one(self.connection, "SELECT count(*) FROM rivals"):
            self._choose()
        run(
            "CREATE OR REPLACE TEMP TABLE copied AS"
            " SELECT min(rowid) AS kept, sum(copies) AS copies, list(rowid) AS rows FROM log_records"
            " SEMI JOIN (SELECT DISTINCT digest FROM log_records WHERE input > $1) USING (digest)"
            " GROUP BY trace_id, span_id, digest HAVING count(*) > 1",
            new,
        )
        self._merge("log_records")

    def _choose(self) -> None:
        """Of the rows of each rival id the fullest; of equal ones that which came first."""
        run = self.connection.execute
        run(  # the long texts are hashed where they stand: two thousand of them in another value are out of bounds
            "CREATE OR REPLACE TEMP TABLE entries AS"
            " SELECT s.rowid AS row, trace_id, span_id, copies, said, coalesce(end_ns, 0) AS ended,"
            " sha256(to_json([parent_id, name, scope, scope_version, start_ns::VARCHAR, end_ns::VARCHAR, status,"
            " sha256(resource::VARCHAR), sha256(payload::VARCHAR)])::VARCHAR) AS digest"
            " FROM spans s SEMI JOIN rivals USING (trace_id, span_id)"
        )
        run(
            "CREATE OR REPLACE TEMP TABLE best AS SELECT trace_id, span_id, row, digest FROM entries"
            " QUALIFY rank() OVER (PARTITION BY trace_id, span_id ORDER BY said DESC, ended DESC) = 1"
        )
        undecided = run(
            "SELECT trace_id, span_id FROM best GROUP BY ALL HAVING count(DISTINCT digest) > 1 ORDER BY ALL"
        ).fetchall()
        for at in range(0, len(undecided), _AT_ONCE):
            self._compare(undecided[at : at + _AT_ONCE])
        run(
            "CREATE OR REPLACE TEMP TABLE copied AS SELECT kept, copies, rows FROM"
            " (SELECT trace_id, span_id, min(row) AS kept FROM best GROUP BY ALL) JOIN"
            " (SELECT trace_id, span_id, sum(copies) AS copies, list(row) AS rows FROM entries GROUP BY ALL)"
            " USING (trace_id, span_id)"
        )
        self._merge("spans")

    def _compare(self, ids: list[tuple[Any, ...]]) -> None:
        """Leave in `best` only the greatest by bytes of each of these ids."""
        pa = arrow()
        columns = ", ".join(f"s.{name}" for name in SPAN_COLUMNS)
        undecided = pa.table({"trace_id": [i[0] for i in ids], "span_id": [i[1] for i in ids]})
        temporary_table(self.connection, "undecided", undecided)
        table = self.connection.sql(
            f"SELECT b.row, {columns} FROM best b SEMI JOIN undecided USING (trace_id, span_id)"  # noqa: S608
            " JOIN spans s ON s.rowid = b.row ORDER BY s.input, b.row"
        ).to_arrow_table()
        winners: dict[tuple[str, str], tuple[Any, int]] = {}
        losers: list[int] = []
        for span, row in zip(spans_in(table), table.column("row").to_pylist(), strict=True):
            key, rank = (span.trace_id, span.span_id), fullness(span)
            known = winners.get(key)
            if known is not None:
                losers.append(known[1] if rank > known[0] else row)
            if known is None or rank > known[0]:
                winners[key] = (rank, row)
        temporary_table(self.connection, "losers", pa.table({"row": pa.array(losers, "int64")}))
        self.connection.execute("DELETE FROM best WHERE row IN (SELECT row FROM losers)")

    def _merge(self, table: str) -> None:
        """Keep the chosen row of each group in `copied`, with the sum of the copies."""
        run = self.connection.execute
        run(f"UPDATE {table} SET copies = c.copies FROM copied c WHERE {table}.rowid = c.kept")  # noqa: S608
        run(
            f"DELETE FROM {table} WHERE rowid IN"  # noqa: S608
            " (SELECT row FROM (SELECT kept, unnest(rows) AS row FROM copied) WHERE row <> kept)"
        )
