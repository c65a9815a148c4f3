"""Steps and edges from the spans of a trace store, batch by batch in worker processes.

Traces that may belong together are built together, all others each by itself, so that what is built depends on the
spans alone: not on the order in which they came, nor on how often it was built before.
"""

import contextlib
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import duckdb

from evalagent.adapters.arrow import arrow
from evalagent.adapters.batch_building import MOST_TOGETHER, Batch, Made, make
from evalagent.adapters.companies import join_traces, number_traces
from evalagent.adapters.span_batches import LOG_COLUMNS, SPAN_COLUMNS
from evalagent.adapters.step_rows import BUILT_TABLES, built_tables
from evalagent.adapters.trace_store import TraceStore, insert_rows, one
from evalagent.adapters.workers import DEFAULT, Workers
from evalagent.model import Json
from evalagent.traces.building import Built

T = TypeVar("T")
BATCH_SPANS = 2_500
"""Spans of a batch; a worker holds some 50 KB for each while it builds."""
ALONE_UP_TO = 5_000
"""Spans up to which no worker process is worth its start."""
_SPOOLED = 8 << 20
_ROUNDS = 4
"""Building tells which traces belong together after all; those are built once more, until nothing changes. Two rounds
suffice but where one joining brings another about."""

_HINTS = "SELECT DISTINCT trace_id, session FROM spans WHERE session IS NOT NULL"
_MOVED = """
CREATE OR REPLACE TEMP TABLE moved AS
SELECT DISTINCT batch FROM placed p JOIN companies c USING (trace_id) WHERE c.sign IS DISTINCT FROM p.sign OR $1
"""
_TO_BUILD = """
CREATE OR REPLACE TEMP TABLE wanted AS
SELECT trace_id FROM companies SEMI JOIN (
    SELECT c.company
    FROM companies c LEFT JOIN traces t USING (trace_id) LEFT JOIN stale s USING (trace_id)
    WHERE s.trace_id IS NOT NULL OR t.trace_id IS NULL OR t.company IS DISTINCT FROM c.sign
) USING (company)
"""
_NAMED = """
UPDATE traces SET company = c.sign FROM companies c WHERE traces.trace_id = c.trace_id AND c.sign IS NOT NULL
"""
_PLAN = """
CREATE OR REPLACE TEMP TABLE plan AS
WITH placed AS (
    SELECT c.*, sum(spans) OVER (ORDER BY company, no) - sum(spans) OVER (PARTITION BY company ORDER BY no) AS before
    FROM companies c SEMI JOIN wanted USING (trace_id)
)
SELECT trace_id, company, repeated, cut, low, high, min(company) OVER (PARTITION BY before // $1) AS batch FROM placed
"""


@dataclass(frozen=True, slots=True)
class RebuildReceipt:
    """Traces that were built anew, with their steps and edges."""

    traces: int
    steps: int
    edges: int


def map_built(
    store: TraceStore,
    work: Callable[[Built], T],
    *,
    workers: int | None = None,
    prices: Mapping[str, Json] | None = None,
    batch_spans: int = BATCH_SPANS,
) -> Iterator[T]:
    """The work done on all traces of the store, some at a time, in order of their start; nothing is kept in the store.

    Each `Built` holds whole companies with their duplicates and log records, some `batch_spans` spans (one company may
    be larger); a last one without traces counts the log records that name none of them. Where there are worker
    processes, the work and its result are pickled. `workers`: None is two, or none where there is little.
    """
    with store.connection() as connection:
        run = connection.execute
        spans = one(connection, "SELECT count(*) FROM spans")
        with (
            Workers[Batch, Made](partial(make, work), _processes(workers, spans)) as hands,
            _Spool[T](store) as spool,
        ):
            number_traces(connection)
            run(f"CREATE OR REPLACE TEMP TABLE said AS {_HINTS}")
            run("CREATE OR REPLACE TEMP TABLE ends AS SELECT * FROM ties WHERE false")
            run("CREATE OR REPLACE TEMP TABLE sessions (trace_id VARCHAR, session VARCHAR)")
            run("CREATE OR REPLACE TEMP TABLE placed (trace_id VARCHAR, sign VARCHAR, batch BIGINT)")
            run("CREATE OR REPLACE TEMP TABLE wanted AS SELECT trace_id FROM units")
            join_traces(connection, "ends", MOST_TOGETHER)
            stepped = True
            for turn in range(_ROUNDS):
                found_steps = False
                for number, made in _batches(connection, hands, prices, batch_spans, among_others=stepped):
                    spool.put(number, made.result)
                    _note(connection, made)
                    found_steps = found_steps or made.stepped
                run("INSERT INTO placed SELECT trace_id, sign, batch FROM plan JOIN companies USING (trace_id)")
                run("CREATE OR REPLACE TEMP TABLE said AS FROM sessions")
                join_traces(connection, "ends", MOST_TOGETHER)
                alone = turn == 0 and not found_steps
                run(_MOVED, [alone])
                moved = [batch for (batch,) in run("FROM moved").fetchall()]
                if not moved or turn == _ROUNDS - 1:
                    break
                stepped = not alone
                spool.drop(moved)
                run("CREATE OR REPLACE TEMP TABLE wanted AS SELECT trace_id FROM placed SEMI JOIN moved USING (batch)")
                for table in ("placed", "ends", "sessions"):
                    run(f"DELETE FROM {table} WHERE trace_id IN (SELECT trace_id FROM wanted)")  # noqa: S608
            yield from spool.results()
        lost = one(
            connection,
            "SELECT coalesce(sum(copies), 0)::BIGINT FROM log_records l ANTI JOIN spans s USING (trace_id)",
        )
    if lost:
        yield work(Built((), 0, 0, lost))


def rebuild(
    store: TraceStore,
    *,
    workers: int | None = None,
    prices: Mapping[str, Json] | None = None,
    everything: bool = False,
    batch_spans: int = BATCH_SPANS,
) -> RebuildReceipt:
    """Build the traces that are new or changed, and those that belong with them, and put their rows in place of the old
    ones; all traces if `everything`. All or nothing."""
    with store.connection() as connection:
        connection.execute("BEGIN")
        try:
            receipt = _rebuilt(connection, workers, prices, batch_spans, everything)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                connection.execute("ROLLBACK")
            raise
    return receipt


def _rebuilt(
    connection: duckdb.DuckDBPyConnection,
    workers: int | None,
    prices: Mapping[str, Json] | None,
    batch_spans: int,
    everything: bool,
) -> RebuildReceipt:
    run = connection.execute
    if everything:
        run("INSERT INTO stale SELECT DISTINCT trace_id FROM spans ANTI JOIN stale USING (trace_id)")
    if not one(connection, "SELECT count(*) FROM stale"):
        return RebuildReceipt(0, 0, 0)
    waiting = one(connection, "SELECT count(*) FROM spans SEMI JOIN stale USING (trace_id)")
    with Workers[Batch, Made](partial(make, built_tables), _processes(workers, waiting)) as hands:
        number_traces(connection)
        run("DELETE FROM ties WHERE trace_id IN (SELECT trace_id FROM stale)")
        run(
            "CREATE OR REPLACE TEMP TABLE said AS"
            " SELECT trace_id, session FROM traces ANTI JOIN stale USING (trace_id) WHERE session IS NOT NULL UNION"
            " SELECT trace_id, session FROM spans SEMI JOIN stale USING (trace_id) WHERE session IS NOT NULL"
        )
        run("CREATE OR REPLACE TEMP TABLE rebuilt (trace_id VARCHAR)")
        for _ in range(_ROUNDS):
            join_traces(connection, "ties", MOST_TOGETHER)
            run(_TO_BUILD)
            if not one(connection, "SELECT count(*) FROM wanted"):
                break
            for table in (*BUILT_TABLES, "ties"):
                run(f"DELETE FROM {table} WHERE trace_id IN (SELECT trace_id FROM wanted)")  # noqa: S608
            for _, made in _batches(connection, hands, prices, batch_spans, among_others=True):
                tables = made.result if made.ties is None else {**made.result, "ties": made.ties}
                for table, rows in tables.items():
                    insert_rows(connection, table, rows)
            run("INSERT INTO rebuilt FROM wanted")
            run(_NAMED)
            run("DELETE FROM stale")
            run("CREATE OR REPLACE TEMP TABLE said AS SELECT trace_id, session FROM traces WHERE session IS NOT NULL")
    severity = "info" if one(connection, "SELECT count(*) FROM (SELECT 1 FROM steps LIMIT 1)") else "error"
    run("UPDATE findings SET severity = $1 WHERE code = 'no_agent_steps' AND severity <> $1", [severity])
    counted = "SELECT count(*), coalesce(sum(steps), 0)::BIGINT, coalesce(sum(edges), 0)::BIGINT FROM traces"
    return RebuildReceipt(*run(f"{counted} SEMI JOIN rebuilt USING (trace_id)").fetchall()[0])


def _processes(workers: int | None, spans: int) -> int:
    return workers if workers is not None else 0 if spans <= ALONE_UP_TO else DEFAULT


def _note(connection: duckdb.DuckDBPyConnection, made: Made) -> None:
    """What building told of the ties between traces, for the next round."""
    pa = arrow()
    if made.sessions:
        ids, sessions = zip(*made.sessions, strict=True)
        table = pa.table({"trace_id": pa.array(ids, pa.string()), "session": pa.array(sessions, pa.string())})
        insert_rows(connection, "sessions", table)
    if made.ties is not None:
        insert_rows(connection, "ends", made.ties)


def _batches(
    connection: duckdb.DuckDBPyConnection,
    hands: Workers[Batch, Made],
    prices: Mapping[str, Json] | None,
    batch_spans: int,
    *,
    among_others: bool,
) -> Iterator[tuple[int, Made]]:
    """The traces in `wanted` by whole companies, and what each batch gave; a batch's number is that of its first
    trace."""
    connection.execute(_PLAN, [batch_spans])
    numbers = [number for (number,) in connection.execute("SELECT DISTINCT batch FROM plan ORDER BY batch").fetchall()]
    made = hands.map(_batch(connection, number, prices, among_others) for number in numbers)
    yield from zip(numbers, made, strict=True)


def _batch(
    connection: duckdb.DuckDBPyConnection, number: int, prices: Mapping[str, Json] | None, among_others: bool
) -> Batch:
    rows = connection.execute(
        "SELECT trace_id, company, repeated, cut, low, high FROM plan WHERE batch = ?", [number]
    ).fetchall()
    ours = "(SELECT trace_id FROM plan WHERE batch = $1)"
    spans = connection.sql(
        f"SELECT {', '.join(SPAN_COLUMNS)} FROM spans SEMI JOIN {ours} USING (trace_id) WHERE rowid BETWEEN $2 AND $3",  # noqa: S608
        params=[number, min(row[4] for row in rows), max(row[5] for row in rows)],
    ).to_arrow_table()
    logs = connection.sql(
        f"SELECT {', '.join(LOG_COLUMNS)}, copies FROM log_records SEMI JOIN {ours} USING (trace_id)",  # noqa: S608
        params=[number],
    ).to_arrow_table()
    traces = {trace: (company, repeated, cut) for trace, company, repeated, cut, _, _ in rows}
    return Batch(spans, logs if logs.num_rows else None, traces, prices, among_others)


class _Spool(Generic[T]):
    """Results by number, kept on disk where they are large, given in order of number."""

    def __init__(self, store: TraceStore) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_SPOOLED, dir=str(store.path.parent))  # noqa: SIM115 - closed in __exit__
        self._places: dict[int, int] = {}

    def __enter__(self) -> "_Spool[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def put(self, number: int, result: T) -> None:
        self._places[number] = self._file.seek(0, os.SEEK_END)
        pickle.dump(result, self._file, pickle.HIGHEST_PROTOCOL)

    def drop(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            del self._places[number]

    def results(self) -> Iterator[T]:
        for number in sorted(self._places):
            self._file.seek(self._places[number])
            yield pickle.load(self._file)  # noqa: S301 - our own, in a file without a name
