"""Worlds are seeded the same each time and read whole, whatever an agent has done to them."""

import hashlib
import os
import resource
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalagent.adapters.folders import remove, scratch
from evalagent.adapters.worlds import WorldDamaged, prepare, snapshot
from evalagent.errors import UsageError
from evalagent.outcomes.diffing import diff
from evalagent.suites import World

DESK = World(kind="sqlite", path="data/desk.db", seed="seed.sql")
OUT = World(kind="files", path="out/")
SEED = """
CREATE TABLE parcels (id TEXT PRIMARY KEY, weight REAL, photo BLOB);
CREATE TABLE moves (parcel TEXT, day INTEGER, place TEXT, PRIMARY KEY (parcel, day));
CREATE TABLE log (line TEXT);
CREATE VIEW heavy AS SELECT * FROM parcels WHERE weight > 2;
INSERT INTO parcels VALUES ('P-1', 2.5, x'00ff'), ('P-2', 3, NULL);
INSERT INTO moves VALUES ('P-1', 1, 'Riga'), ('P-1', 2, 'Oslo');
INSERT INTO log VALUES ('opened'), ('closed');
"""


@pytest.fixture
def suite_dir(tmp_path: Path) -> Path:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "seed.sql").write_text(SEED)
    (tmp_path / "suite" / "papers" / "old").mkdir(parents=True)
    (tmp_path / "suite" / "papers" / "a.txt").write_text("alpha")
    (tmp_path / "suite" / "papers" / "old" / "b.bin").write_bytes(b"\xff\xfe")
    return tmp_path / "suite"


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def execute(work_dir: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(work_dir / "data" / "desk.db")) as connection, connection:
        connection.execute(statement, values)


def test_every_row_of_every_table_is_read_by_its_key(suite_dir: Path, work_dir: Path) -> None:
    prepare([DESK], suite_dir, work_dir)
    assert snapshot([DESK], work_dir) == {
        "log": {"1": {"line": "opened"}, "2": {"line": "closed"}},
        "moves": {
            '{"day":1,"parcel":"P-1"}': {"parcel": "P-1", "day": 1, "place": "Riga"},
            '{"day":2,"parcel":"P-1"}': {"parcel": "P-1", "day": 2, "place": "Oslo"},
        },
        "parcels": {
            '"P-1"': {
                "id": "P-1",
                "weight": 2.5,
                "photo": {"sha256": hashlib.sha256(b"\x00\xff").hexdigest(), "bytes": 2},
            },
            '"P-2"': {"id": "P-2", "weight": 3.0, "photo": None},
        },
    }


def test_files_are_rows_of_their_folder(suite_dir: Path, work_dir: Path) -> None:
    papers = World(kind="files", path="out/", seed="papers")
    prepare([papers], suite_dir, work_dir)
    rows = snapshot([papers], work_dir)["out/"]
    assert rows['"a.txt"'] == {"text": "alpha", "sha256": hashlib.sha256(b"alpha").hexdigest(), "bytes": 5}
    assert (rows['"old/b.bin"']["text"], rows['"old/b.bin"']["bytes"]) == (None, 2)
    assert list(rows) == ['"a.txt"', '"old/b.bin"']


def test_a_world_is_seeded_afresh_whatever_was_left(suite_dir: Path, work_dir: Path, tmp_path: Path) -> None:
    world = [DESK, World(kind="files", path="out/", seed="papers")]
    prepare(world, suite_dir, work_dir)
    first = snapshot(world, work_dir)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("keep me")
    execute(work_dir, "DELETE FROM parcels")
    (work_dir / "data" / "desk.db-wal").write_text("rubbish")
    (work_dir / "out" / "a.txt").unlink()
    (work_dir / "out" / "link").symlink_to(outside)
    prepare(world, suite_dir, work_dir)
    assert snapshot(world, work_dir) == first
    (work_dir / "data" / "desk.db").unlink()
    (work_dir / "data").rmdir()
    (work_dir / "data").symlink_to(outside)
    prepare(world, suite_dir, work_dir)
    assert snapshot(world, work_dir) == first
    assert [path.name for path in outside.iterdir()] == ["precious"]


def test_a_database_may_be_seeded_by_a_copy_and_a_world_may_start_empty(suite_dir: Path, work_dir: Path) -> None:
    prepare([DESK], suite_dir, work_dir)
    (suite_dir / "ready.db").write_bytes((work_dir / "data" / "desk.db").read_bytes())
    copied = World(kind="sqlite", path="copy.db", seed="ready.db")
    empty = World(kind="sqlite", path="none.db")
    prepare([copied, empty, OUT], suite_dir, work_dir)
    assert snapshot([copied], work_dir) == snapshot([DESK], work_dir)
    assert snapshot([empty, OUT], work_dir) == {"out/": {}}


@pytest.mark.parametrize(("seed", "says"), [("absent.sql", "does not exist"), ("bad.sql", "cannot be executed")])
def test_a_wrong_seed_is_the_suites_fault(suite_dir: Path, work_dir: Path, seed: str, says: str) -> None:
    (suite_dir / "bad.sql").write_text("CREATE TABLE a (b); INSERT INTO nowhere VALUES (1);")
    with pytest.raises(UsageError, match=says):
        prepare([World(kind="sqlite", path="x.db", seed=seed)], suite_dir, work_dir)


def test_what_an_agent_left_in_a_wal_is_read_and_the_world_is_not_touched(suite_dir: Path, work_dir: Path) -> None:
    prepare([DESK], suite_dir, work_dir)
    with closing(sqlite3.connect(work_dir / "data" / "desk.db")) as connection:  # still open: nothing is checkpointed
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE parcels SET weight = 9 WHERE id = 'P-2'")
        connection.commit()
        files = {path.name: path.read_bytes() for path in (work_dir / "data").iterdir()}
        assert "desk.db-wal" in files
        seen = snapshot([DESK], work_dir)
        assert {path.name: path.read_bytes() for path in (work_dir / "data").iterdir()} == files
    assert seen["parcels"]['"P-2"']["weight"] == 9.0


def test_a_write_that_was_never_finished_does_not_count(suite_dir: Path, work_dir: Path, tmp_path: Path) -> None:
    prepare([DESK], suite_dir, work_dir)
    before = snapshot([DESK], work_dir)
    program = (
        "import os, sqlite3\n"
        "c = sqlite3.connect('data/desk.db'); c.execute('PRAGMA cache_size = 1')\n"
        "c.execute('BEGIN'); c.execute(\"UPDATE log SET line = 'x'\")\n"
        "c.executemany('INSERT INTO log VALUES (?)', [('y' * 3000,)] * 200)\n"  # spills into the file before any commit
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=work_dir, check=False)
    assert (work_dir / "data" / "desk.db-journal").exists()
    assert snapshot([DESK], work_dir) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda db: db.write_bytes(b"no database" * 100),
        lambda db: db.write_bytes(db.read_bytes()[:5000]),
        lambda db: (db.unlink(), db.mkdir()),
        lambda db: (db.unlink(), db.symlink_to("/etc/passwd")),
        lambda db: (db.unlink(), os.mkfifo(db)),
        lambda db: (db.unlink(), db.parent.rmdir(), db.parent.symlink_to("/etc")),
        lambda db: (db.unlink(), db.parent.rmdir(), db.parent.write_text("a file")),
    ],
    ids=["overwritten", "cut", "a folder", "a link", "a pipe", "behind a link", "under a file"],
)
def test_a_damaged_database_is_told_as_damage(suite_dir: Path, work_dir: Path, damage) -> None:  # type: ignore[no-untyped-def]
    prepare([DESK], suite_dir, work_dir)
    damage(work_dir / "data" / "desk.db")
    with pytest.raises(WorldDamaged, match="data"):
        snapshot([DESK], work_dir)


def test_a_deleted_database_is_a_world_without_rows(suite_dir: Path, work_dir: Path) -> None:
    prepare([DESK], suite_dir, work_dir)
    before = snapshot([DESK], work_dir)
    (work_dir / "data" / "desk.db").unlink()
    changes = diff(before, snapshot([DESK], work_dir))
    assert len(changes) == 6 and {change.change for change in changes} == {"delete"}


def test_an_endless_view_or_expression_cannot_hold_the_reader(
    suite_dir: Path, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalagent.adapters.worlds.READING_S", 0.1)
    prepare([DESK], suite_dir, work_dir)
    execute(
        work_dir,
        "CREATE VIEW log2 AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    )
    assert "log2" not in snapshot([DESK], work_dir)  # a view holds nothing of its own
    execute(work_dir, "CREATE TABLE slow (a, b AS (length(hex(zeroblob(900000)) || a)))")
    execute(
        work_dir,
        "INSERT INTO slow (a)"
        " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 600) SELECT i FROM n",
    )
    began = time.monotonic()
    with pytest.raises(WorldDamaged, match=r"interrupted|took longer"):
        snapshot([DESK], work_dir)
    assert time.monotonic() - began < 10


ODD = """
CREATE TABLE "a ""b" (rowid TEXT, "drop table" TEXT);
INSERT INTO "a ""b" VALUES ('x', '1'), ('x', 1), ('x', 1e999), ('x', cast(x'ff41' AS TEXT));
CREATE TABLE loose (k PRIMARY KEY, v);
INSERT INTO loose VALUES (NULL, 1), (NULL, 2), (5, 'a'), ('5', 'b'), (6, 1e999);
CREATE TABLE strict_one (k INTEGER PRIMARY KEY, v ANY) STRICT;
INSERT INTO strict_one VALUES (1, '25'), (2, 25), (3, 25.5);
"""


def test_odd_names_types_and_texts_are_told_apart(work_dir: Path, suite_dir: Path) -> None:
    (suite_dir / "odd.sql").write_text(ODD)
    odd = World(kind="sqlite", path="odd.db", seed="odd.sql")
    prepare([odd], suite_dir, work_dir)
    seen = snapshot([odd], work_dir)
    assert [row["drop table"] for row in seen['a "b'].values()] == ["1", "1", "Inf", "\\xffA"]
    assert sorted(row["v"] for row in seen["loose"].values() if isinstance(row["v"], int)) == [1, 2]
    assert seen["loose"]["6"]["v"] == {"number": "Infinity"}
    assert (seen["loose"]["5"]["v"], seen["loose"]['"5"']["v"]) == ("a", "b")
    assert [row["v"] for row in seen["strict_one"].values()] == ["25", 25, 25.5]


def test_links_and_special_files_are_seen_and_not_followed(work_dir: Path, suite_dir: Path) -> None:
    prepare([OUT], suite_dir, work_dir)
    out = work_dir / "out"
    (out / "up").symlink_to("..")
    (out / "secret").symlink_to("/etc/passwd")
    os.mkfifo(out / "pipe")
    (out / "deep" / "er").mkdir(parents=True)
    (out / "deep" / "er" / "end.txt").write_text("end")
    rows = snapshot([OUT], work_dir)["out/"]
    assert set(rows) == {'"up"', '"secret"', '"pipe"', '"deep/er/end.txt"'}
    assert {rows[name]["text"] for name in ('"up"', '"secret"', '"pipe"')} == {None}
    before = rows['"up"']["sha256"]
    (out / "up").unlink()
    (out / "up").symlink_to("../..")
    assert snapshot([OUT], work_dir)["out/"]['"up"']["sha256"] != before


def test_a_folder_that_became_a_link_is_not_entered(work_dir: Path, suite_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "private.txt").write_text("private")
    prepare([OUT], suite_dir, work_dir)
    (work_dir / "out").rmdir()
    (work_dir / "out").symlink_to(tmp_path / "elsewhere")
    assert "private" not in str(snapshot([OUT], work_dir))


def test_file_names_of_any_bytes_and_long_texts_are_kept_readable(work_dir: Path, suite_dir: Path) -> None:
    prepare([OUT], suite_dir, work_dir)
    Path(os.fsdecode(os.fsencode(work_dir / "out") + b"/n\xffme")).write_text("odd")
    (work_dir / "out" / "long").write_text("x" * (256 << 10) + "y")
    (work_dir / "out" / "short").write_text("x" * (256 << 10))
    rows = snapshot([OUT], work_dir)["out/"]
    assert rows['"n\\\\xffme"']["text"] == "odd"
    assert (rows['"long"']["text"], rows['"long"']["bytes"]) == (None, (256 << 10) + 1)
    assert rows['"short"']["text"] == "x" * (256 << 10)


def test_two_databases_with_a_table_of_one_name_do_not_hide_each_other(work_dir: Path, suite_dir: Path) -> None:
    second = World(kind="sqlite", path="other.db", seed="seed.sql")
    prepare([DESK, second], suite_dir, work_dir)
    seen = snapshot([DESK, second], work_dir)
    assert seen["parcels"] == seen["other.db:parcels"]


@pytest.mark.parametrize("part", [DESK, OUT, World(kind="files", path=".")], ids=["sqlite", "files", "whole"])
@pytest.mark.parametrize("left", ["nothing", "a file", "a link"])
def test_a_working_directory_that_an_agent_removed_is_damage(
    suite_dir: Path, work_dir: Path, part: World, left: str
) -> None:
    prepare([part], suite_dir, work_dir)
    remove(work_dir)
    if left == "a file":
        work_dir.write_text("here was a folder")
    elif left == "a link":
        work_dir.symlink_to(suite_dir)
    with pytest.raises(WorldDamaged, match="working directory is gone"):
        snapshot([part], work_dir)


@pytest.fixture
def nest(tmp_path: Path) -> Iterator[Callable[[Path, int], None]]:
    """Makes folders in one another; what a failed test leaves of them would break pytest's own tidying up."""

    def made(folder: Path, levels: int) -> None:
        at = os.open(folder, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir("d", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(os.open("end.txt", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        os.close(at)

    yield made
    subprocess.run(["rm", "-rf", *tmp_path.iterdir()], check=True)


def test_folders_nested_beyond_any_stack_are_read_seeded_over_and_removed(
    suite_dir: Path, work_dir: Path, nest: Callable[[Path, int], None]
) -> None:
    prepare([OUT], suite_dir, work_dir)
    nest(work_dir / "out", 1500)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        rows = snapshot([OUT], work_dir)["out/"]
        assert list(rows) == [f'"{"d/" * 1500}end.txt"']
        prepare([OUT], suite_dir, work_dir)
        assert snapshot([OUT], work_dir) == {"out/": {}}
        with scratch("evalagent-test-") as place:
            nest(place, 1500)
        assert not place.exists()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_removing_follows_no_link_and_minds_no_permission(work_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "p.txt").write_text("keep me")
    deep = work_dir / "a" / "removed-0" / "removed-1"
    deep.mkdir(parents=True)
    (work_dir / "removed-0").mkdir()
    (work_dir / "removed-1" / "x").mkdir(parents=True)
    (deep / "f").write_text("x")
    (deep / "link").symlink_to(tmp_path / "precious")
    (work_dir / "link").symlink_to(tmp_path / "precious")
    deep.chmod(0)
    (work_dir / "a").chmod(0)
    remove(work_dir)
    assert not work_dir.exists()
    assert (tmp_path / "precious" / "p.txt").read_text() == "keep me"


def test_many_files_and_a_large_one_are_read_by_their_hash(
    suite_dir: Path, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare([OUT], suite_dir, work_dir)
    for n in range(3000):
        (work_dir / "out" / f"{n}.txt").touch()
    with (work_dir / "out" / "large").open("wb") as file:
        file.truncate(300 << 20)
    tracemalloc.start()
    rows = snapshot([OUT], work_dir)["out/"]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(rows), rows['"large"']["text"], rows['"large"']["bytes"]) == (3001, None, 300 << 20)
    assert most < 32 << 20
    with (work_dir / "out" / "endless").open("wb") as file:
        file.truncate(1 << 40)
    monkeypatch.setattr("evalagent.adapters.worlds.READING_S", 0.5)
    with pytest.raises(WorldDamaged, match=r"took longer than 0.5 s"):
        snapshot([OUT], work_dir)


def test_a_world_too_large_to_hold_is_damage(suite_dir: Path, work_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare([DESK, OUT], suite_dir, work_dir)
    monkeypatch.setattr("evalagent.adapters.worlds.MOST_HELD", 1 << 20)
    for n in range(5):
        (work_dir / "out" / str(n)).write_text("x" * (250 << 10))
    with pytest.raises(WorldDamaged, match="out/ holds more than 1 MiB"):
        snapshot([OUT], work_dir)
    with closing(sqlite3.connect(work_dir / "data" / "desk.db")) as connection, connection:
        connection.executemany("INSERT INTO log VALUES (?)", [("",)] * 6000)
    with pytest.raises(WorldDamaged, match=r"desk.db holds more than 1 MiB"):
        snapshot([DESK], work_dir)
    with (work_dir / "data" / "desk.db").open("r+b") as file:
        file.truncate((4 << 30) + 1)
    with pytest.raises(WorldDamaged, match="larger than 4 GiB"):
        snapshot([DESK], work_dir)


def test_a_seed_that_cannot_be_put_in_place_is_the_suites_fault(
    suite_dir: Path, work_dir: Path, nest: Callable[[Path, int], None]
) -> None:
    os.mkfifo(suite_dir / "papers" / "pipe")
    with pytest.raises(UsageError, match=r"'out/' cannot be made from its seed: .*pipe"):
        prepare([World(kind="files", path="out/", seed="papers")], suite_dir, work_dir)
    one = World(kind="files", path="one", seed="seed.sql")
    with pytest.raises(UsageError, match="'one/two' cannot be made from its seed"):
        prepare([one, World(kind="files", path="one/two")], suite_dir, work_dir)
    nest(suite_dir / "papers" / "old", 1500)
    (suite_dir / "papers" / "pipe").unlink()
    with pytest.raises(UsageError, match="cannot be made from its seed"):
        prepare([World(kind="files", path="out/", seed="papers")], suite_dir, work_dir)


VALUES = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(VALUES, VALUES), max_size=8), st.integers(0, 7), VALUES)
def test_one_changed_row_is_one_change_and_reading_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, object]], at: int, value: object
) -> None:
    work = tmp_path_factory.mktemp("work")
    world = [World(kind="sqlite", path="any.db")]
    prepare(world, work, work)
    with closing(sqlite3.connect(work / "any.db")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE t (a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [_storable(row) for row in rows])
        connection.commit()
        before = snapshot(world, work)
        assert len(before["t"]) == len(rows)
        assert snapshot(world, work) == before and diff(before, before) == ()
        connection.execute("INSERT INTO t VALUES (?, 'new')", _storable((value,)))
        connection.commit()
    (change,) = diff(before, snapshot(world, work))
    assert change.change == "insert" and (change.after or {})["b"] == "new"


def _storable(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in row)
