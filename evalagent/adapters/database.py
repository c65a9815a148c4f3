"""A DuckDB file that many processes use in turn.

One process may write a DuckDB file, and while it does nobody else can even read it; so every use opens late behind a
file lock and closes early. The lock file names its holder, for the message of those who waited in vain.
"""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import duckdb
from filelock import FileLock, Timeout

from evalagent.errors import StoreBusy, Terminal, UsageError

WAIT_S = 120.0
"""How long a user waits for another one."""

_AGAIN_S = 0.2
DAMAGE = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)
"""What a file that is damaged shows as, beside the bare duckdb.Error; a wrong query shows as none of these."""
_NO_SPACE = ("No space left", "disk full", "not enough space", "max_temp_directory_size", "File too large")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OPEN_ELSEWHERE = ("Could not set lock", "being used by another process")
_ABOUT = "CREATE TABLE IF NOT EXISTS about (key VARCHAR PRIMARY KEY, value VARCHAR)"
Columns = tuple[tuple[str, str, str], ...]
"""Table, column and type of each column of a database, in order."""


class Database:
    """One DuckDB file with its schema; opened anew for each use.

    `schema`: name of the SQL file that makes its tables. `version`: its number, which the file says in the table
    `about` and which grows with each change of the schema. `later`, `mended`, `renewed`: what to do where it is busy,
    damaged, or of another version. `row_group`: rows that are compressed together in a new file; 0 is the database's
    own choice.
    """

    def __init__(
        self,
        path: Path,
        schema: str,
        version: int,
        *,
        later: str,
        mended: str,
        renewed: str,
        wait_s: float = WAIT_S,
        row_group: int = 0,
    ) -> None:
        self.path = path
        self.version, self._renewed = version, renewed
        self._row_group = row_group
        self._schema, self._later, self._mended, self._wait_s = schema, later, mended, wait_s
        self._lock = FileLock(path.with_suffix(".lock"), thread_local=False)
        self._holder = path.with_suffix(".holder")

    @contextlib.contextmanager
    def connection(self, *, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """The database with its schema, held alone until the block ends.

        StoreBusy if another process keeps it for longer than `wait_s`. Terminal if it is damaged, however late in the
        block that shows, or made by another version; UsageError if the disk is full.
        """
        deadline = time.monotonic() + self._wait_s
        with self.alone():
            connection = self._connect(read_only, deadline)
            try:
                if not self._known(connection) and not read_only:
                    self._make(connection)
                yield connection
            except (duckdb.BinderException, duckdb.CatalogException) as error:
                if self._differs(connection):
                    raise self._other_version("other tables") from error
                raise  # a wrong query of ours, not a wrong file
            except duckdb.ParserException:
                raise
            except duckdb.Error as error:
                raise self._damaged(error) from error
            except OSError as error:
                if error.errno in _FULL:
                    raise self._unwritten(error.strerror or str(error)) from error
                raise
            finally:
                with contextlib.suppress(duckdb.Error):  # a damaged one may fail again; it is told already
                    connection.close()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """The lock, until the block ends; it may be taken again inside."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=self._wait_s)
        except Timeout as error:
            raise StoreBusy(f"{self.path} is held by {self.holder()}; {self._later}") from error
        except OSError as error:
            if error.errno in _FULL:
                raise self._unwritten(error.strerror or str(error)) from error
            raise
        try:
            with contextlib.suppress(OSError):  # no room: then those who wait are told less
                self._holder.write_text(f"process {os.getpid()} on {socket.gethostname()} since {_now()}")
            yield
        finally:
            if self._lock.lock_counter == 1:  # whoever took it more than once still holds it
                with contextlib.suppress(OSError):
                    self._holder.unlink()
            self._lock.release()

    @contextlib.contextmanager
    def attached(self, connection: duckdb.DuckDBPyConnection, name: str) -> Iterator[None]:
        """The database readable under this name in another one's connection, held alone until the block ends."""
        with self.alone():
            try:
                connection.execute(f"ATTACH '{quoted(self.path)}' AS {name} (READ_ONLY)")
            except duckdb.Error as error:
                raise self._damaged(error) from error
            try:
                self._known(connection, name)
                yield
            finally:
                with contextlib.suppress(duckdb.Error):
                    connection.execute(f"DETACH {name}")

    def holder(self) -> str:
        """Who holds it."""
        try:
            return self._holder.read_text() or "another process"
        except OSError:
            return "another process"

    def remove(self) -> None:
        """Remove the file; the lock must be held."""
        for leftover in (self.path, Path(f"{self.path}.wal")):
            leftover.unlink(missing_ok=True)

    def _connect(self, read_only: bool, deadline: float) -> duckdb.DuckDBPyConnection:
        while True:
            try:
                return self._opened(read_only)
            except duckdb.Error as error:
                # a foreign program, such as the duckdb shell, does not know our lock file
                if not any(sign in str(error) for sign in _OPEN_ELSEWHERE):
                    raise self._damaged(error) from error
                if time.monotonic() >= deadline:
                    raise StoreBusy(f"{self.path} is open in another program; close it there, {self._later}") from error
            time.sleep(_AGAIN_S)

    def _opened(self, read_only: bool) -> duckdb.DuckDBPyConnection:
        if not self._row_group:
            return duckdb.connect(str(self.path), read_only=read_only, config=config())
        connection = duckdb.connect(config=config())
        try:
            how = "READ_ONLY" if read_only else f"ROW_GROUP_SIZE {self._row_group}"
            connection.execute(f"ATTACH '{quoted(self.path)}' AS store ({how})")
            connection.execute("USE store")
        except BaseException:
            connection.close()
            raise
        return connection

    def _known(self, connection: duckdb.DuckDBPyConnection, name: str = "") -> bool:
        """Whether the file says that it is of this version; Terminal if it is of another one."""
        found = columns(connection, name)
        prefix = f"{name}." if name else ""
        if any(table == "about" for table, _, _ in found):
            said = connection.execute(f"SELECT value FROM {prefix}about WHERE key = 'schema'").fetchone()  # noqa: S608
            if said is None or said[0] != str(self.version):
                raise self._other_version(str(said[0]) if said else "none")
            return True
        if found and self._differ(found):  # made before versions were said
            raise self._other_version("none")
        return False

    def _make(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("BEGIN")
        connection.execute(files("evalagent.adapters").joinpath(self._schema).read_text())
        connection.execute(_ABOUT)
        connection.execute("INSERT OR REPLACE INTO about VALUES ('schema', ?)", [str(self.version)])
        connection.execute("COMMIT")

    def _differs(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Whether its tables are not those of its version; False where that cannot be asked any more."""
        with contextlib.suppress(duckdb.Error):  # in a transaction that has failed nothing can be asked
            connection.execute("ROLLBACK")
        try:
            return self._differ(columns(connection))
        except duckdb.Error:
            return False

    def _differ(self, found: Columns) -> bool:
        expected = self.expected()
        tables = {table for table, _, _ in expected}
        return tuple(column for column in found if column[0] in tables) != expected

    def expected(self) -> Columns:
        """What this version's tables look like."""
        with duckdb.connect(config=config()) as fresh:
            fresh.execute(files("evalagent.adapters").joinpath(self._schema).read_text())
            return columns(fresh)

    def _other_version(self, found: str) -> Terminal:
        return Terminal(
            f"{self.path} was made by another version of evalagent (schema: {ascii(found[:40])[1:-1]}, this one needs "
            f"schema {self.version}); {self._renewed}"
        )

    def _damaged(self, error: duckdb.Error) -> Terminal:
        first = _first(error)
        if any(sign in str(first) for sign in _NO_SPACE):
            return self._unwritten(reason(first))
        if isinstance(first, duckdb.OutOfMemoryException):
            return Terminal(f"{self.path}: {reason(first)}; nothing of this is kept, the store is as it was before")
        return Terminal(f"{self.path} cannot be used ({reason(first)}); {self._mended}")

    def _unwritten(self, why: str) -> UsageError:
        return UsageError(f"cannot be written: {why}; make room and try again", file=str(self.path))


def columns(connection: duckdb.DuckDBPyConnection, name: str = "") -> Columns:
    """The columns of a database's lasting tables; of the attached one of that name, or else of the one in use."""
    return tuple(
        connection.execute(
            "SELECT c.table_name, c.column_name, c.data_type FROM duckdb_columns() c"
            " JOIN duckdb_tables() t USING (database_name, schema_name, table_name)"
            " WHERE c.database_name = coalesce(nullif(?, ''), current_database()) AND NOT t.temporary"
            " ORDER BY c.table_name, c.column_index",
            [name],
        ).fetchall()
    )


def _first(error: duckdb.Error) -> duckdb.Error:
    """What went wrong first: cleaning up after one error often fails with another, which says less."""
    first: duckdb.Error = error
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, duckdb.Error):
            first = at
        at = at.__cause__ or at.__context__
    return first


def config() -> dict[str, str | bool | int | float | list[str]]:
    """No extension is fetched: nothing here needs one, and offline the attempt takes seconds to fail."""
    return {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "threads": "2"}


def reason(error: duckdb.Error) -> str:
    """The first line of what went wrong."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def quoted(path: Path) -> str:
    """A path between the quotes of SQL."""
    return str(path).replace("'", "''")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
