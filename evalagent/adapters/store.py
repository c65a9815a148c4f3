"""The DuckDB warehouse over all run folders of a home."""

import contextlib
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import orjson

from evalagent.adapters.database import DAMAGE, WAIT_S, Database, config, quoted, reason
from evalagent.adapters.files import dump, read_lines
from evalagent.adapters.runs import read_run
from evalagent.errors import Terminal, UsageError

TABLES = ("runs", "trials", "spans", "steps", "edges", "findings", "verdicts", "attributions", "outcomes")
TRACES = "traces.duckdb"
"""The file of the trace store, beside the warehouse."""
WAREHOUSE_SCHEMA = 1
"""Number of schema.sql: a change of its tables or views is a new number."""
TRACES_SCHEMA = 1
"""Number of trace_schema.sql, likewise."""


class Store:
    """The warehouse of one home; opened anew for each use."""

    def __init__(self, home: Path, wait_s: float = WAIT_S) -> None:
        self.database = Database(
            home / "warehouse.duckdb",
            "schema.sql",
            WAREHOUSE_SCHEMA,
            later="then try again; `evalagent store rebuild` loads the runs that are missing",
            mended="move it away and `evalagent store rebuild`",
            renewed="`evalagent store rebuild` makes it anew from the run folders",
            wait_s=wait_s,
        )
        self.path = self.database.path
        self._traces = traces_database(home, wait_s)

    def connection(self, *, read_only: bool = False) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """The database with its schema, held alone until the block ends: see `Database.connection`."""
        return self.database.connection(read_only=read_only)

    def load(self, folder: Path) -> dict[str, int]:
        """Put a run folder's rows in place of whatever the store holds of that run; rows per table."""
        parquet = folder / "parquet"
        run_id = read_run(folder)["run_id"]
        counts: dict[str, int] = {}
        with self.connection() as connection:
            connection.execute("BEGIN")
            for table in TABLES:
                source = parquet / f"{table}.parquet"
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", [run_id])  # noqa: S608 - our own names
                if not source.exists():
                    continue
                insert = f"INSERT OR REPLACE INTO {table} BY NAME SELECT * FROM read_parquet(?)"  # noqa: S608
                try:
                    connection.execute(insert, [str(source)])
                except duckdb.Error as error:
                    if _readable(source):
                        raise
                    raise Terminal(f"{source} is damaged, so that the run cannot be loaded: {reason(error)}") from error
                row = connection.execute(f"SELECT count(*) FROM {table} WHERE run_id = ?", [run_id]).fetchone()  # noqa: S608
                counts[table] = row[0] if row else 0
            connection.execute("COMMIT")
        return counts

    def rebuild(self, home: Path) -> dict[str, int]:
        """Make the warehouse anew from the run folders; rows per run id loaded. Terminal, when all others are loaded,
        for those that cannot be."""
        loaded: dict[str, int] = {}
        failed: list[str] = []
        with self.database.alone():
            self.database.remove()
            for told in sorted((home / "runs").glob("*/run.json")):
                try:
                    loaded[told.parent.name] = sum(self.load(told.parent).values())
                except (Terminal, OSError, ValueError, KeyError) as error:
                    failed.append(f"{told.parent.name}: {error}")
        if failed:
            raise Terminal(f"{len(loaded)} runs are loaded, but not {'; '.join(failed)}")
        return loaded

    def query(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of one query, which can change nothing, neither here nor in a file. The trace store's
        tables are there as `traces.spans` and so on. UsageError for a store that does not exist and for SQL that is
        wrong."""
        if not self.path.exists() and not self._traces.path.exists():
            raise UsageError("no store here; name the folder of the runs with --home", file=str(self.path))
        with contextlib.ExitStack() as stack:
            if self.path.exists():
                connection = stack.enter_context(self.connection(read_only=True))
            else:
                connection = stack.enter_context(duckdb.connect(config=config()))
            if self._traces.path.exists():
                stack.enter_context(self._traces.attached(connection, "traces"))
            connection.execute("SET enable_external_access = false")
            try:
                cursor = connection.execute(sql)
                return [column[0] for column in cursor.description or ()], cursor.fetchall()
            except duckdb.Error as error:
                if type(error) is duckdb.Error or isinstance(error, DAMAGE):
                    raise
                known = (
                    f"the tables are {', '.join(TABLES)}, failing_steps, and traces.spans, traces.steps, traces.edges"
                )
                raise UsageError(f"{reason(error)}; {known}, ...", key="SQL") from error


def traces_database(home: Path, wait_s: float = WAIT_S) -> Database:
    """The file of the trace store of a home."""
    return Database(
        home / TRACES,
        "trace_schema.sql",
        TRACES_SCHEMA,
        row_group=8192,  # rows of some kilobytes: what is held in memory at once
        later="then try again",
        mended="move it away and load the files again",
        renewed="move it away and load the files again",
        wait_s=wait_s,
    )


def _readable(parquet: Path) -> bool:
    try:
        with duckdb.connect(config=config()) as connection:
            connection.execute("SELECT * FROM read_parquet(?)", [str(parquet)]).fetchmany(1)
    except duckdb.Error:
        return False
    return True


def write_parquet(folder: Path, span_rows: Iterable[Mapping[str, Any]] | None = None) -> None:
    """Write `parquet/` of a run folder from its JSON Lines; spans are given, since they have no file of their own.

    Columns and types are those of schema.sql, so that the two cannot drift apart.
    """
    told = read_run(folder)
    run_id = told["run_id"]
    tables: dict[str, list[dict[str, Any]]] = {
        "runs": [_run_row(folder, told)],
        "trials": read_lines(folder / "trials.jsonl"),
        "findings": read_lines(folder / "findings.jsonl"),
        "verdicts": read_lines(folder / "verdicts.jsonl"),
        "attributions": read_lines(folder / "attributions.jsonl"),
        "outcomes": read_lines(folder / "outcomes.jsonl"),
    }
    tables["steps"], tables["edges"] = _steps_and_edges(read_lines(folder / "steps.jsonl"))
    if span_rows is not None:
        tables["spans"] = [dict(row) for row in span_rows]
    out = folder / "parquet"
    out.mkdir(exist_ok=True)
    with duckdb.connect(config=config()) as connection:
        connection.execute(files("evalagent.adapters").joinpath("schema.sql").read_text())
        for table, rows in tables.items():
            numbered = [{"number": n, **row, "run_id": run_id} for n, row in enumerate(rows)]
            _copy(connection, table, numbered, out / f"{table}.parquet")


def _run_row(folder: Path, told: Mapping[str, Any]) -> dict[str, Any]:
    summary = folder / "summary.json"
    text = summary.read_text() if summary.exists() else None
    whole = orjson.loads(text) if text else {}
    return {
        "suite": told.get("suite"),
        "started": told.get("started"),
        "finished": told.get("finished") or told.get("ended"),
        "exit_code": whole.get("exit_code"),
        "verdict": whole.get("verdict"),
        "judge": told.get("judge"),
        "sandbox": told.get("sandbox"),
        "trials": told.get("trials"),
        "fingerprint": told.get("fingerprint"),
        "summary": whole or None,
    }


def _steps_and_edges(steps: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    edges: list[dict[str, Any]] = []
    positions: dict[str, int] = {}
    for step in steps:
        trace = step["trace_id"]
        step["position"] = positions[trace] = positions.get(trace, -1) + 1
        tokens = step.pop("tokens") or {}
        step["input_tokens"], step["output_tokens"] = tokens.get("input"), tokens.get("output")
        edges += [
            {
                "trace_id": trace,
                "child": step["step_id"],
                "parent": edge["step_id"],
                "parent_trace_id": edge.get("trace_id") or trace,
                "via": edge["via"],
                "confidence": edge["confidence"],
            }
            for edge in step.pop("parents")
        ]
    return steps, edges


def _copy(connection: duckdb.DuckDBPyConnection, table: str, rows: list[dict[str, Any]], target: Path) -> None:
    """Rows → one Parquet file with the table's columns and types, by way of a JSON file that DuckDB reads itself."""
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    columns = {name: kind for name, kind, *_ in described}
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        lines = Path(scratch) / f"{table}.jsonl"
        lines.write_bytes(b"".join(dump({name: row.get(name) for name in columns}) + b"\n" for row in rows))
        whole = Path(scratch) / target.name
        shape = ", ".join(f"{name!r}: {kind!r}" for name, kind in columns.items())
        connection.execute(
            f"COPY (SELECT * FROM read_json(?, format = 'newline_delimited', columns = {{{shape}}}, "  # noqa: S608
            f"maximum_object_size = 268435456)) TO '{quoted(whole)}' (FORMAT parquet, COMPRESSION zstd)",
            [str(lines)],
        )
        whole.replace(target)
