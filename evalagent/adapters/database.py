"""A DuckDB file that many processes use in turn.

One process may write a DuckDB file, and while it does nobody else can even read it; so every use opens late behind a
file lock and closes early. The lock file names its holder, for the message of those who waited in vain.
"""

import contextlib
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


class Database:
    """One DuckDB file with its schema; opened anew for each use.

    `schema`: name of the SQL file that makes its tables. `later`, `mended`: what to do where it is busy, or damaged.
    `row_group`: rows that are compressed together in a new file; 0 is the database's own choice.
    """

    def __init__(
        self, path: Path, schema: str, *, later: str, mended: str, wait_s: float = WAIT_S, row_group: int = 0
    ) -> None:
        self.path = path
        self._row_group = row_group
        self._schema, self._later, self._mended, self._wait_s = schema, later, mended, wait_s
        self._lock = FileLock(path.with_suffix(".lock"), thread_local=False)
        self._holder = path.with_suffix(".holder")

    @contextlib.contextmanager
    def connection(self, *, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """The database with its schema, held alone until the block ends.

        StoreBusy if another process keeps it for longer than `wait_s`. Terminal if it is damaged, however late in the
        block that shows, or UsageError if the disk is full.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + self._wait_s
        with self.alone():
            connection = self._connect(read_only, deadline)
            try:
                if not read_only:
                    connection.execute(files("evalagent.adapters").joinpath(self._schema).read_text())
                yield connection
            except (duckdb.BinderException, duckdb.ParserException):
                raise  # a wrong query of ours, not a wrong file
            except duckdb.Error as error:
                raise self._damaged(error) from error
            finally:
                with contextlib.suppress(duckdb.Error):  # a damaged one may fail again; it is told already
                    connection.close()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """The lock, until the block ends; it may be taken again inside."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=self._wait_s)
        except Timeout as error:
            raise StoreBusy(f"{self.path} is held by {self.holder()}; {self._later}") from error
        try:
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
                if not isinstance(error, duckdb.IOException) or "lock" not in str(error).lower():
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

    def _damaged(self, error: duckdb.Error) -> Terminal:
        if any(sign in str(error) for sign in _NO_SPACE):
            return UsageError(f"cannot be written: {reason(error)}; make room and try again", file=str(self.path))
        return Terminal(f"{self.path} cannot be used ({reason(error)}); {self._mended}")


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
