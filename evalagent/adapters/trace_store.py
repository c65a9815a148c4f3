"""The trace store: spans of any number of files in a DuckDB file, with the steps and edges that were built from them.

`intake.load` puts spans in, `rebuilding.rebuild` makes the steps of what is new, and everything can be asked by SQL.
It is a truth of its own: the files that it was loaded from may go.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from evalagent.adapters.arrow import Table, arrow
from evalagent.adapters.database import WAIT_S
from evalagent.adapters.files import SCRATCH
from evalagent.adapters.store import traces_database
from evalagent.model import Json

MEMORY = "200MB"
"""What the database may hold in memory; beyond it goes to files beside it."""
TABLES = ("spans", "steps", "edges", "traces", "findings", "fates", "log_records", "inputs", "stale", "ties")


class TraceStore:
    """The trace store of one home; opened anew for each use."""

    def __init__(self, home: Path, wait_s: float = WAIT_S, *, remembers: bool = True) -> None:
        self._database = traces_database(home, wait_s)
        self.path = self._database.path
        self.remembers = remembers
        """Whether a file that was loaded before is passed over."""

    @classmethod
    @contextlib.contextmanager
    def temporary(cls, folder: Path) -> Iterator["TraceStore"]:
        """A store below a folder that is there, removed when the block ends. It takes every file as if it were new."""
        with tempfile.TemporaryDirectory(dir=folder, prefix=f"{SCRATCH}{os.getpid()}-") as place:
            yield cls(Path(place), remembers=False)

    @contextlib.contextmanager
    def connection(self, *, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """The database, held alone until the block ends: see `Database.connection`."""
        with self._database.connection(read_only=read_only) as connection:
            connection.execute(f"SET memory_limit = '{MEMORY}'")
            yield connection

    def receipt(self) -> dict[str, Json]:
        """The numbers of design 5.2 over everything that was ever loaded and built; `spans_in` is the sum of the other
        counts of spans once nothing is stale."""
        with self.connection(read_only=True) as connection:
            return receipt_of(connection)

    def counts(self) -> dict[str, int]:
        """Rows of each table."""
        with self.connection(read_only=True) as connection:
            return {table: one(connection, f"SELECT count(*) FROM {table}") for table in TABLES}  # noqa: S608


def receipt_of(connection: duckdb.DuckDBPyConnection) -> dict[str, Json]:
    """The receipt of an open store."""
    files, size, lines, logs = connection.execute(
        "SELECT count(*), coalesce(sum(bytes), 0)::BIGINT, coalesce(sum(lines), 0)::BIGINT,"
        " coalesce(sum(log_records), 0)::BIGINT FROM inputs"
    ).fetchall()[0]
    rejected = connection.execute(
        "SELECT name, piece.line, piece.reason FROM (SELECT name, unnest(rejected) AS piece FROM inputs)"
    ).fetchall()
    spans, duplicates = connection.execute(
        "SELECT coalesce(sum(copies), 0)::BIGINT, coalesce(sum(copies - 1), 0)::BIGINT FROM spans"
    ).fetchall()[0]
    fates = dict(connection.execute("SELECT fate, count(*) FROM fates GROUP BY fate ORDER BY fate").fetchall())
    attached = one(
        connection,
        "SELECT count(*) FROM log_records l SEMI JOIN spans s USING (trace_id, span_id)",
    )
    return {
        "files": files,
        "bytes": size,
        "lines": {"in": lines, "rejected": len(rejected)},
        "spans_in": spans,
        "step_spans": fates.pop("step", 0),
        "virtual_steps": one(connection, "SELECT count(*) FROM steps WHERE virtual"),
        "containers": fates.pop("container", 0),
        "ignored": fates,
        "duplicates": duplicates,
        "log_records": {"in": logs, "attached": attached, "ignored": logs - attached},
        "rejected": [
            {"file": name, "line": line, "reason": why}
            for name, line, why in sorted(rejected, key=lambda piece: (piece[0], piece[1], piece[2]))
        ],
    }


def insert_rows(connection: duckdb.DuckDBPyConnection, table: str, rows: Table) -> None:
    """Add Arrow rows to a table, columns by name."""
    with _as_source(connection, rows) as source:
        connection.execute(f"INSERT INTO {table} BY NAME FROM {source}")


def temporary_table(connection: duckdb.DuckDBPyConnection, name: str, rows: Table) -> None:
    """Make a temporary table of Arrow rows."""
    with _as_source(connection, rows) as source:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM {source}")


@contextlib.contextmanager
def _as_source(connection: duckdb.DuckDBPyConnection, rows: Table) -> Iterator[str]:
    # a table that was registered, or its own reader, stays in memory until the connection is closed; this one does not
    connection.register("incoming", arrow().RecordBatchReader.from_batches(rows.schema, rows.to_batches()))
    try:
        yield "incoming"
    finally:
        with contextlib.suppress(duckdb.Error):  # it cannot be where the insert failed, of which is told already
            connection.unregister("incoming")


def one(connection: duckdb.DuckDBPyConnection, sql: str, parameters: list[Any] | None = None) -> Any:
    """The single value that a query gives."""
    return connection.execute(sql, parameters).fetchall()[0][0]
