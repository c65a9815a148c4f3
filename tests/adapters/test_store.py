"""The warehouse: loading twice changes nothing, one writer at a time, and the holder is named."""

import hashlib
import multiprocessing
import time
from pathlib import Path

import duckdb
import pytest

from evalagent.adapters.files import write_json, write_lines
from evalagent.adapters.store import Store, traces_database, write_parquet
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
        with pytest.raises(StoreBusy, match=r"another program.*store rebuild"):
            Store(tmp_path, wait_s=0.5).query("SELECT 1")
    finally:
        foreign.kill()
        foreign.join()


def test_a_database_that_another_program_lets_go_of_is_loaded_after_all(tmp_path: Path) -> None:
    store = Store(tmp_path, wait_s=30)
    folder = a_run(tmp_path)
    store.load(folder)
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    foreign = context.Process(target=_open, args=(str(store.path), ready, 1.0))
    foreign.start()
    try:
        assert ready.wait(30)
        assert store.load(folder)["steps"] == 2
    finally:
        foreign.kill()
        foreign.join()


def _open(path: str, ready: object, seconds: float = 60) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("SELECT 1")
        ready.set()  # type: ignore[attr-defined]
        time.sleep(seconds)


@pytest.mark.parametrize("damage", ["body", "cut", "metadata"])
def test_a_damaged_warehouse_is_told_with_the_way_out_and_never_as_a_wrong_query(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    folder = a_run(tmp_path, steps=300)
    store.load(folder)
    whole = store.path.read_bytes()
    assert len(whole) > 20_000
    broken = {
        "body": whole[:12288] + b"\xa5" * (len(whole) - 12288),
        "cut": whole[: len(whole) // 2],
        "metadata": whole[:4096] + bytes(8192) + whole[12288:],
    }
    store.path.write_bytes(broken[damage])
    for use in (lambda: store.query("SELECT max(input::VARCHAR) FROM steps"), lambda: store.load(folder)):
        with pytest.raises(Terminal, match=r"cannot be used .*store rebuild") as caught:
            use()
        assert not isinstance(caught.value, UsageError)
    assert store.rebuild(tmp_path) == {"desk-1": sum(store.load(folder).values())}


def test_a_run_that_cannot_be_loaded_keeps_no_other_from_a_rebuild(tmp_path: Path) -> None:
    store = Store(tmp_path)
    broken, _, torn = a_run(tmp_path, "desk-1"), a_run(tmp_path, "desk-2"), a_run(tmp_path, "desk-3")
    (broken / "parquet/steps.parquet").write_bytes(b"PAR1 no parquet at all PAR1")
    (torn / "run.json").write_text('{"run_id": ')
    with pytest.raises(Terminal, match=r"1 runs are loaded, but not desk-1: .*steps\.parquet is damaged.*desk-3"):
        store.rebuild(tmp_path)
    assert store.query("SELECT run_id, count(*) FROM steps GROUP BY ALL")[1] == [("desk-2", 2)]


def test_a_rebuild_too_waits_for_the_holder_and_names_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, ready, 60.0))
    holder.start()
    try:
        assert ready.wait(30)
        with pytest.raises(StoreBusy, match=f"process {holder.pid} on .*store rebuild"):
            Store(tmp_path, wait_s=0.2).rebuild(tmp_path)
    finally:
        holder.kill()
        holder.join()


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


def test_a_warehouse_of_another_version_is_made_anew_by_a_rebuild(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = a_run(tmp_path)
    store.load(folder)
    with store.connection() as connection:
        connection.execute("UPDATE about SET value = '0'")
    for use in (lambda: store.load(folder), lambda: store.query("SELECT 1")):
        with pytest.raises(Terminal, match=r"another version of evalagent \(schema: 0.*`evalagent store rebuild`"):
            use()
    store.rebuild(tmp_path)
    assert store.query("SELECT count(*) FROM runs")[1] == [(1,)]


def test_a_column_that_is_missing_all_the_same_is_another_version_and_no_fault_of_ours(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = a_run(tmp_path)
    store.load(folder)
    with store.connection() as connection:
        connection.execute("ALTER TABLE trials DROP COLUMN cost_usd")
        connection.execute("ALTER TABLE runs DROP COLUMN judge")
    with pytest.raises(Terminal, match="another version"):
        store.load(folder)


def test_a_changed_schema_has_a_new_number(tmp_path: Path) -> None:
    # what differs here needs a new WAREHOUSE_SCHEMA or TRACES_SCHEMA, and then its digest here
    digests = {}
    for name, database in (("warehouse", Store(tmp_path).database), ("traces", traces_database(tmp_path))):
        digests[name] = (database.version, hashlib.sha256(repr(database.expected()).encode()).hexdigest()[:16])
    assert digests == {"warehouse": (1, "3c9a2ded92fabe8a"), "traces": (1, "5933c11d21db26b2")}
