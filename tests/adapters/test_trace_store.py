"""The trace store as a user has it: loaded by a command, asked by SQL, clear about what is wrong."""

import gzip
import json
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalagent.adapters.intake import load
from evalagent.adapters.rebuilding import rebuild
from evalagent.adapters.store import Store
from evalagent.adapters.trace_store import TABLES, TraceStore
from evalagent.errors import StoreBusy, Terminal, UsageError
from tests.adapters.otlp_files import inputs, line
from tests.traces.spans import chat, said, tool

GOOD = line([chat(1, None, 0, 5, [said("hi", "user")], said("yes")), tool(2, 1, "look", 1, 2, "c1", {}, "found")])


def command(*arguments: str, given: bytes = b"") -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from evalagent.cli import main; main()", "store", *arguments],
        input=given,
        capture_output=True,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_the_command_loads_tells_and_can_be_asked(tmp_path: Path) -> None:
    home = ["--home", str(tmp_path / "home")]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(GOOD))
    code, told, _ = command("load", str(tmp_path / "a.jsonl.gz"), *home)
    assert code == 0
    assert "2 spans" in told
    assert "1 traces with 2 steps" in told
    code, told, _ = command("load", str(tmp_path / "a.jsonl.gz"), *home)
    assert (code, "known: 1 files" in told) == (0, True)
    code, told, _ = command("load", "-", *home, given=GOOD[:40] + b"\n" + GOOD)
    assert code == 3
    assert "rejected: <stdin>:1: " in told
    assert "2 spans came again" in told
    assert command("load", "-", "--allow-rejected", *home, given=GOOD[:41] + b"\n" + GOOD)[0] == 0
    code, told, _ = command("query", "SELECT kind, copies FROM traces.steps JOIN traces.spans ON span_id = step_id "
                            "ORDER BY kind", "--format", "jsonl", *home)  # fmt: skip
    assert [json.loads(row) for row in told.splitlines()] == [
        {"kind": "llm", "copies": 3},
        {"kind": "tool", "copies": 3},
    ]


def test_the_command_says_when_nothing_could_be_read(tmp_path: Path) -> None:
    code, _, told = command("load", "-", "--home", str(tmp_path), given=b"nothing\n")
    assert code == 2
    assert "no span could be read: <stdin>:1" in told


def test_every_table_can_be_asked_beside_the_warehouse_and_without_it(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    load(store, inputs(tmp_path, [GOOD]))
    rebuild(store)
    for table in TABLES:
        assert len(Store(tmp_path).query(f"SELECT * FROM traces.{table}")[0]) > 0
    with Store(tmp_path).connection():
        pass
    assert Store(tmp_path).query("SELECT count(*) FROM traces.spans, (SELECT count(*) FROM runs)")[1] == [(2,)]
    with pytest.raises(UsageError, match=r"traces\.spans"):
        Store(tmp_path).query("SELECT nothing FROM traces.spans")
    with pytest.raises(UsageError):
        Store(tmp_path).query("DELETE FROM traces.spans")


def test_a_damaged_store_is_told_with_the_way_out(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    store.path.write_bytes(b"this is no database" * 1000)
    with pytest.raises(Terminal, match="move it away and load the files again"):
        load(store, inputs(tmp_path, [GOOD]))
    with pytest.raises(Terminal, match="move it away and load the files again"):
        Store(tmp_path).query("SELECT 1")


def _hold(home: Path, held: "multiprocessing.synchronize.Event") -> None:
    with TraceStore(home).connection():
        held.set()
        time.sleep(60)


def test_a_store_that_another_process_holds_is_busy_and_says_who(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, held))
    holder.start()
    try:
        assert held.wait(60)
        with pytest.raises(StoreBusy, match=f"held by process {holder.pid}"):
            load(TraceStore(tmp_path, wait_s=0.1), inputs(tmp_path, [GOOD]))
    finally:
        holder.kill()
        holder.join()


def test_a_load_that_is_killed_leaves_nothing_and_can_be_done_again(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    load(store, inputs(tmp_path, [line([tool(9, None, "first", 0, 1)])]))
    before = store.counts()
    (tmp_path / "big.jsonl").write_bytes(
        b"".join(line([tool(n, None, "look", n, n + 1, f"c{n}", {}, "x" * 3000)]) for n in range(10, 4000))
    )
    (tmp_path / "killed.py").write_text(
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from evalagent.adapters import files, span_tables\n"
        "from evalagent.adapters.intake import load\n"
        "from evalagent.adapters.trace_store import TraceStore\n"
        "span_tables.SpanTables.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "load(TraceStore(Path(sys.argv[1])), files.find_inputs([sys.argv[1] + '/big.jsonl']), workers=0)\n"
    )
    done = subprocess.run([sys.executable, str(tmp_path / "killed.py"), str(tmp_path)], capture_output=True)
    assert done.returncode == -9, done.stderr
    assert store.counts() == before
    load(store, inputs(tmp_path, [(tmp_path / "big.jsonl").read_bytes()]))
    assert store.receipt()["spans_in"] == 3991


def test_a_temporary_store_goes_away_and_takes_the_same_file_twice(tmp_path: Path) -> None:
    with TraceStore.temporary(tmp_path) as store:
        load(store, inputs(tmp_path, [GOOD, GOOD]))
        assert store.receipt()["duplicates"] == 2
        assert store.path.exists()
    assert not store.path.parent.exists()


def test_loading_and_asking_never_imports_pandas(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(GOOD)
    script = (
        "import sys; sys.argv = ['evalagent', 'store', 'load', sys.argv[1], '--home', sys.argv[2]]\n"
        "from evalagent.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'duckdb' in sys.modules and 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.jsonl"), str(tmp_path)], check=True)


def test_a_disk_that_is_full_is_told_as_that_and_the_store_works_again_when_there_is_room(tmp_path: Path) -> None:
    spans = [chat(n, None, n, n + 1, [said(f"{n} {'question' * 9}", "user")], f"yes {n}") for n in range(1, 1500)]
    (tmp_path / "a.jsonl").write_bytes(line(spans))
    home = tmp_path / "home"
    program = (
        "import resource, sys; from evalagent.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), -1)); main()"
    )

    def loaded(room: int) -> tuple[int, str]:
        command = [sys.executable, "-c", program, str(room), "store", "load", str(tmp_path / "a.jsonl")]
        done = subprocess.run([*command, "--home", str(home)], capture_output=True)
        return done.returncode, done.stderr.decode()

    told = [loaded(room) for room in (1 << 18, 1 << 19, 3 << 18, 1 << 20)]
    for code, said_of_it in told:
        assert code == 0 or (code == 2 and "cannot be written" in said_of_it and "make room" in said_of_it), said_of_it
    assert told[0][0] == 2
    assert loaded(1 << 30)[0] == 0
    assert TraceStore(home).counts()["steps"] == len(spans)


def test_a_store_of_another_version_is_told_with_the_way_out(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    load(store, inputs(tmp_path, [GOOD]))
    with store.connection() as connection:
        connection.execute("UPDATE about SET value = '7'")
    with pytest.raises(Terminal, match=r"another version of evalagent \(schema: 7, this one needs schema 1\); move"):
        load(store, inputs(tmp_path, [GOOD]))
    with pytest.raises(Terminal, match="schema: 7"):
        store.counts()
    with pytest.raises(Terminal, match="load the files again"):
        Store(tmp_path).query("SELECT 1")


def test_a_store_without_a_version_is_taken_for_this_one_if_its_columns_are_right(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    load(store, inputs(tmp_path, [GOOD]))
    with store.connection() as connection:
        connection.execute("DROP TABLE about")
    assert store.counts()["spans"] == 2
    assert Store(tmp_path).query("SELECT count(*) FROM traces.spans")[1] == [(2,)]
    rebuild(store)
    with store.connection() as connection:
        assert connection.execute("FROM about").fetchall() == [("schema", "1")]
        connection.execute("DROP TABLE about")
        connection.execute("ALTER TABLE steps DROP COLUMN model")
    for use in (store.counts, lambda: rebuild(store), lambda: Store(tmp_path).query("SELECT 1")):
        with pytest.raises(Terminal, match=r"another version of evalagent \(schema: none"):
            use()


def test_many_long_spans_that_come_again_stay_within_the_stores_memory(tmp_path: Path) -> None:
    spans = [chat(n, None, n, n + 1, [said(f"{n} {'words and ' * 1200}", "user")], "yes") for n in range(1, 2500)]
    store = TraceStore(tmp_path)
    load(store, inputs(tmp_path, [line(spans) * 3]))
    with store.connection(read_only=True) as connection:
        assert connection.execute("SELECT count(*), sum(copies)::BIGINT FROM spans").fetchall() == [(2499, 7497)]
