"""The world of a trial: seeded afresh before it, read whole before and after it.

What an agent left is not trusted: links in it are not followed, its database is opened as a copy, and what cannot be
read is `WorldDamaged`, which is the agent's failure and not the machine's.
"""

import contextlib
import hashlib
import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from evalagent.adapters.folders import FOLDER, descended, remove
from evalagent.errors import Terminal, UsageError
from evalagent.model import Json
from evalagent.outcomes.snapshots import Snapshot, key_text
from evalagent.suites import World

MOST_TEXT = 256 << 10
"""Bytes up to which a file's text is kept; of a longer one only size and hash are."""
READING_S = 60.0
"""Reading one part of a world is stopped after this: a database may hold expressions that never end, a folder files
that are terabytes of nothing."""
MOST_VALUE = 256 << 20
"""Bytes of the largest value in a database that is read."""
MOST_DATABASE = 4 << 30
"""Bytes of the largest database that is copied to be read."""
MOST_HELD = 512 << 20
"""Bytes of a part of a world that are held in memory."""
_ROW = 200
"""About what a row takes beside its text."""

_SEED_FAULTS = (
    *(FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError),
    *(shutil.Error, RecursionError),
)

_Rows = dict[str, dict[str, Json]]


class WorldDamaged(Terminal):
    """The trial left a world that cannot be read; the message says what and why. Counts as a failed outcome."""


def prepare(world: Sequence[World], suite_dir: Path, work_dir: Path) -> None:
    """Put the world's first state into `work_dir`, whatever was there before.

    sqlite: from a `.sql` seed that is executed, or any other file that is copied; without a seed there is no database
    yet. files: a copy of the seed folder (or file); without a seed an empty folder. UsageError: a seed is wrong.
    """
    for part in world:
        try:
            _prepare(part, suite_dir, work_dir)
        except _SEED_FAULTS as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
            raise UsageError(f"{part.path!r} cannot be made from its seed: {why[:500]}", key="world.seed") from error


def snapshot(world: Sequence[World], work_dir: Path) -> Snapshot:
    """Everything that the world holds: every row of every table, every file. Sorted, so equal worlds give equal bytes.

    A row without a primary key is keyed by its rowid, a blob is {"sha256", "bytes"}. A link or a special file is a row
    whose text is None and whose hash is that of what it is. If two databases have a table of one name, the later one's
    is called `path:table`. WorldDamaged: it cannot be read.
    """
    tables: dict[str, Mapping[str, Mapping[str, Json]]] = {}
    for part in world:
        found = _database(work_dir, part.path) if part.kind == "sqlite" else {part.path: _files(work_dir, part.path)}
        for name, rows in found.items():
            tables[f"{part.path}:{name}" if name in tables else name] = dict(sorted(rows.items()))
    return dict(sorted(tables.items()))


# --- seeding -------------------------------------------------------------------------------------


def _prepare(part: World, suite_dir: Path, work_dir: Path) -> None:
    target = _cleared(work_dir, part.path)
    seed = suite_dir / part.seed if part.seed is not None else None
    if seed is not None and not seed.exists():
        raise UsageError(f"{part.seed} does not exist beside the suite", key="world.seed")
    if part.kind == "files" and seed is None:
        target.mkdir(parents=True, exist_ok=True)
    elif part.kind == "files" and seed is not None and seed.is_dir():
        shutil.copytree(seed, target, symlinks=True, dirs_exist_ok=True)
    elif seed is not None and part.kind == "sqlite" and seed.suffix == ".sql":
        target.parent.mkdir(parents=True, exist_ok=True)
        _execute(seed, target)
    elif seed is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(seed, target)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)


def _cleared(work_dir: Path, path: str) -> Path:
    """The place for a part of the world, empty; links on the way to it are removed and not followed."""
    place = work_dir
    for name in PurePosixPath(path).parts:
        place = place / name
        if place.is_symlink():
            place.unlink()
    if place == work_dir:
        for inside in work_dir.iterdir():
            remove(inside)
        return place
    remove(place)
    for suffix in ("-wal", "-shm", "-journal"):
        remove(place.with_name(place.name + suffix))
    return place


def _execute(seed: Path, target: Path) -> None:
    connection = sqlite3.connect(target)
    try:
        connection.execute("PRAGMA synchronous = OFF")  # it is new: there is nothing to lose
        connection.executescript(seed.read_text(encoding="utf-8"))
        connection.commit()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise UsageError(f"the seed cannot be executed: {error}", file=str(seed), key="world.seed") from error
    finally:
        connection.close()


# --- limits --------------------------------------------------------------------------------------


class _Limits:
    """How long reading one part of a world may take and how much of it may be held."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._deadline = time.monotonic() + READING_S
        self._left = MOST_HELD

    def late(self) -> bool:
        return time.monotonic() > self._deadline

    def hold(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise WorldDamaged(f"{self.path} holds more than {MOST_HELD >> 20} MiB of rows and texts")
        if self.late():
            raise WorldDamaged(f"{self.path} took longer than {READING_S:g} s to read")


# --- databases -----------------------------------------------------------------------------------


def _database(work_dir: Path, path: str) -> dict[str, _Rows]:
    """Every user table. Read from a copy: opening a database that has a journal or a WAL changes it."""
    with tempfile.TemporaryDirectory(prefix="evalagent-world-") as folder:
        copy = Path(folder) / "world.db"
        if not _copied(work_dir, path, copy):
            return {}
        for suffix in ("-wal", "-journal"):
            _copied(work_dir, path + suffix, copy.with_name(copy.name + suffix))
        try:
            with contextlib.closing(sqlite3.connect(copy)) as connection:
                return _tables(connection, _Limits(path))
        except (sqlite3.Error, OverflowError, MemoryError) as error:
            raise WorldDamaged(f"{path} is damaged: {error}") from error


def _tables(connection: sqlite3.Connection, limits: _Limits) -> dict[str, _Rows]:
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE)
    connection.set_progress_handler(limits.late, 1000)
    names = [
        name
        for schema, name, kind, *_ in connection.execute("PRAGMA table_list").fetchall()
        if schema == "main" and kind in ("table", "virtual") and not name.startswith("sqlite_")
    ]
    return {name: _rows(connection, name, limits) for name in names}


def _rows(connection: sqlite3.Connection, table: str, limits: _Limits) -> _Rows:
    described = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    columns = [column[1] for column in described if column[6] != 1]  # 1: hidden in a virtual table
    primary = [column[1] for column in sorted(described, key=lambda column: column[5]) if column[5]]
    rowid = None if primary else next(name for name in ("rowid", "_rowid_", "oid", "") if name not in columns)
    wanted = [*([rowid] if rowid else []), *map(_quoted, columns)]
    rows: _Rows = {}
    for values in connection.execute(f"SELECT {', '.join(wanted)} FROM {_quoted(table)}"):  # noqa: S608 quoted names
        limits.hold(_ROW + sum(len(value) for value in values if isinstance(value, str)))
        row = dict(zip(columns, map(_plain, values[1:] if rowid else values), strict=True))
        if rowid:
            key: Json = values[0]
        else:
            key = row[primary[0]] if len(primary) == 1 else {name: row[name] for name in primary}
        text = key_text(key)
        # Only NULLs in a primary key repeat (SQLite allows them); such rows are told apart by their order.
        rows[text if text not in rows else key_text({"key": key, "again": len(rows)})] = row
    return rows


def _plain(value: object) -> Json:
    if isinstance(value, bytes):
        return {"sha256": hashlib.sha256(value).hexdigest(), "bytes": len(value)}
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return {"number": "Infinity" if value > 0 else "-Infinity"}
    return value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- files ---------------------------------------------------------------------------------------


def _files(work_dir: Path, path: str) -> _Rows:
    rows: _Rows = {}
    limits = _Limits(path)
    with _folder(work_dir, PurePosixPath(path).parent) as parent:
        name = PurePosixPath(path).name or "."
        if parent is None:
            return rows
        try:
            kind = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return rows
        if not stat.S_ISDIR(kind):
            return {key_text(name): _file(name, parent, kind, limits)}
        try:
            for inside, inside_kind, at in _walked(name, parent, limits):
                rows[key_text(_shown(inside))] = _file(inside.rpartition("/")[2], at, inside_kind, limits)
                limits.hold(len(inside))
        except OSError as error:
            raise WorldDamaged(f"{path} cannot be read: {error}") from error
    return rows


def _walked(name: str, parent: int, limits: _Limits) -> Iterator[tuple[str, int, int]]:
    """(path inside, mode, descriptor of its folder) of all that is no folder; one folder is open at a time."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with descended(parent, [name, *filter(None, inside.split("/"))]) as at:
            for entry in sorted(os.listdir(at)):  # noqa: PTH208 a descriptor has no Path
                path, kind = f"{inside}/{entry}".lstrip("/"), os.stat(entry, dir_fd=at, follow_symlinks=False).st_mode
                if stat.S_ISDIR(kind):
                    waiting.append(path)
                    limits.hold(_ROW + len(path))
                else:
                    yield path, kind, at


def _shown(path: str) -> str:
    """A path as valid Unicode, whatever bytes the agent named its file with."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _file(name: str, parent: int, kind: int, limits: _Limits) -> dict[str, Json]:
    if not stat.S_ISREG(kind):
        what = f"link\0{os.readlink(name, dir_fd=parent)}" if stat.S_ISLNK(kind) else f"special\0{stat.S_IFMT(kind)}"
        return {"text": None, "sha256": hashlib.sha256(os.fsencode(what)).hexdigest(), "bytes": 0}
    digest, kept, size = hashlib.sha256(), b"", 0
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
        with os.fdopen(descriptor, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
                size += len(chunk)
                kept = kept + chunk if size <= MOST_TEXT else b""
                limits.hold(0)
    except OSError as error:
        raise WorldDamaged(f"{limits.path}: {_shown(name)} cannot be read: {error.strerror}") from error
    limits.hold(_ROW + len(kept))
    text = None
    with contextlib.suppress(UnicodeDecodeError):
        text = kept.decode() if size <= MOST_TEXT else None
    return {"text": text, "sha256": digest.hexdigest(), "bytes": size}


def _copied(work_dir: Path, path: str, target: Path) -> bool:
    """Copy one regular file of the world without following links; False if there is none."""
    with _folder(work_dir, PurePosixPath(path).parent) as parent:
        if parent is None:
            return False
        name = PurePosixPath(path).name
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                raise WorldDamaged(f"{path} is no longer a regular file")
            if found.st_size > MOST_DATABASE:
                raise WorldDamaged(f"{path} is larger than {MOST_DATABASE >> 30} GiB")
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise WorldDamaged(f"{path} cannot be read: {error}") from error
        with os.fdopen(descriptor, "rb") as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    return True


@contextlib.contextmanager
def _folder(work_dir: Path, path: PurePosixPath) -> Iterator[int | None]:
    """A descriptor of a folder of the world, reached without following links; None if it is not there."""
    with contextlib.ExitStack() as stack:
        try:
            at = os.open(work_dir, FOLDER)
        except OSError as error:
            raise WorldDamaged(f"the agent's working directory is gone: {error.strerror}") from error
        stack.callback(os.close, at)
        found = True
        for name in path.parts:
            try:
                at = os.open(name, FOLDER, dir_fd=at)
            except FileNotFoundError:
                found = False
                break
            except OSError as error:
                raise WorldDamaged(f"{path} is no longer a folder: {error.strerror}") from error
            stack.callback(os.close, at)
        yield at if found else None
