"""The warehouse: loading twice changes nothing, one writer at a time, and the holder is named."""

import multiprocessing
import time
from pathlib import Path

import duckdb
import pytest

from evalagent.adapters.files import write_json, write_lines
from evalagent.adapters.store import Store, write_parquet
from evalagent.errors import StoreBusy, Terminal, UsageError


def a_run(home: Path, run_id: str = "desk-1", steps: int = 2) -> Path:
    folder = home / "runs" / run_id
    told = {"run_id": run_id, "suite": "desk", "started": "2026-01-02T03:04:05+00:00", "finished": None, "trials": 1}
    write_json(folder / "run.json", told | {"judge": "rules", "sandbox": "process", "fingerprint": "f"})
    write_json(folder / "summary.json", {"exit_code": 1, "verdict": "fail"})
    rows = [
        {
            "trace_id": "t",
            "step_id": f"s{n}",
            "span_ids": [f"s{n}"],
            "kind": "tool",
            "name": "refund",
            "start_ns": 1_760_000_000_000_000_000 + n,
            "end_ns": None,
            "parents": [{"step_id": f"s{n - 1}", "via": "call", "confidence": 1.0}] if n else [],
            "tokens": {"input": None, "output": 3},
            "input": {"text": "quote ' and \u0000 nul, é", "big": 2**63},
            "output": "plain text",
        }
        for n in range(steps)
    ]
    write_lines(folder / "steps.jsonl", rows)
    write_lines(folder / "findings.jsonl", [{"trace_id": "t", "step_id": None, "code": "loop", "severity": "warning"}])
    write_parquet(folder, [{"trace_id": "t", "span_id": "s0", "name": "refund", "payload": {"attributes": {"a": 1}}}])
    return folder


def test_loading_a_run_twice_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = a_run(tmp_path)
    first = store.load(folder)
    assert first == store.load(folder)
    assert first["steps"] == 2
    assert first["edges"] == 1
    _, rows = store.query("SELECT output_tokens, input_tokens, input ->> 'big', start_ns FROM steps ORDER BY position")
    assert rows[0] == (3, None, str(2**63), 1_760_000_000_000_000_000)


def test_a_run_made_again_replaces_its_rows(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.load(a_run(tmp_path, steps=5))
    store.load(a_run(tmp_path, steps=2))
    assert store.query("SELECT count(*) FROM steps")[1] == [(2,)]


def test_the_warehouse_is_rebuilt_from_the_run_folders(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("desk-1", "desk-2"):
        store.load(a_run(tmp_path, name))
    before = store.query("SELECT * FROM steps ORDER BY ALL")
    (tmp_path / "warehouse.duckdb").write_bytes(b"not a database at all, but long enough to be taken for one")
    with pytest.raises(Terminal, match="store rebuild"):
        store.query("SELECT 1")
    assert set(store.rebuild(tmp_path)) == {"desk-1", "desk-2"}
    assert store.query("SELECT * FROM steps ORDER BY ALL") == before


def _hold(home: Path, ready: object, seconds: float) -> None:
    with Store(home).connection():
        ready.set()  # type: ignore[attr-defined]
        time.sleep(seconds)


def test_a_second_process_waits_and_then_says_who_holds_the_store(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, ready, 2.0))
    holder.start()
    try:
        assert ready.wait(30)
        with pytest.raises(StoreBusy, match=f"process {holder.pid} on"):
            Store(tmp_path, wait_s=0.2).query("SELECT 1")
        assert Store(tmp_path, wait_s=30).query("SELECT 1")[1] == [(1,)]
    finally:
        holder.join()


def test_a_killed_writer_leaves_no_lock_and_no_half_run(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    folder = a_run(tmp_path)
    holder = context.Process(target=_hold, args=(tmp_path, ready, 60.0))
    holder.start()
    assert ready.wait(30)
    holder.kill()
    holder.join()
    assert Store(tmp_path, wait_s=5).load(folder)["steps"] == 2


def test_a_database_open_in_another_program_is_busy_and_not_broken(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.load(a_run(tmp_path))
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    foreign = context.Process(target=_open, args=(str(store.path), ready))
    foreign.start()
    try:
        assert ready.wait(30)
        with pytest.raises(StoreBusy, match="another program"):
            store.query("SELECT 1")
    finally:
        foreign.kill()
        foreign.join()


def _open(path: str, ready: object) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("SELECT 1")
        ready.set()  # type: ignore[attr-defined]
        time.sleep(60)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE steps",
        "CREATE TABLE mine AS SELECT 1",
        "COPY steps TO '{folder}/out.csv'",
        "SELECT * FROM nope",
        "selec 1",
    ],
)
def test_a_query_can_change_nothing_and_its_mistakes_are_the_users(tmp_path: Path, sql: str) -> None:
    store = Store(tmp_path)
    store.load(a_run(tmp_path))
    with pytest.raises(UsageError, match="the tables are runs, trials"):
        store.query(sql.format(folder=tmp_path))
    assert not (tmp_path / "out.csv").exists()
    assert store.query("SELECT count(*) FROM steps")[1] == [(2,)]


def test_asking_where_no_store_is_makes_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no store here"):
        Store(tmp_path / "typo").query("SELECT 1")
    assert not (tmp_path / "typo").exists()
