"""What is said of traces does not depend on where they lie: in memory, in a store on the way, or in an older one."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evalagent.adapters import intake, loading, trace_sources
from evalagent.adapters.files import OUTPUTS, find_inputs
from evalagent.adapters.settings import Settings
from evalagent.adapters.trace_files import evaluate
from evalagent.adapters.trace_store import TraceStore
from evalagent.errors import UnreadableInput, UsageError
from evalagent.model import Json
from evalagent.traces.receipt import adds_up

TRACES = Path(__file__).parents[1] / "traces"


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Traces of many dialects and wire formats, spans that come twice, and lines that are none."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    for path in sorted(TRACES.rglob("*.json*")):
        if not path.name.endswith((".spans.json", ".expected.json", ".steps.json")):
            shutil.copy(path, folder / f"{path.parent.name}-{path.name}")
    first = sorted(folder.iterdir())[0]
    shutil.copy(first, folder / "again.jsonl")
    (folder / "bad.jsonl").write_text('{"resourceSpans": []}\nno json\n')
    return folder


def outputs(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in sorted(OUTPUTS) if (out / name).exists()}


def test_large_inputs_are_told_as_small_ones_are(mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate([str(mixed)], tmp_path / "small", Settings(), judge="rules")
    monkeypatch.setattr(trace_sources, "SPOOLED_ABOVE", -1)
    evaluate([str(mixed)], tmp_path / "large", Settings(), judge="rules")
    small, large = outputs(tmp_path / "small"), outputs(tmp_path / "large")
    assert small.keys() == large.keys() and len(small["steps.jsonl"].splitlines()) > 10
    for name, data in small.items():
        assert data == large[name], name
    assert adds_up(json.loads(large["receipt.json"]))
    assert {path.name for path in (tmp_path / "large").iterdir()} == set(large)


def test_a_trace_store_is_told_as_its_files_were(mixed: Path, tmp_path: Path) -> None:
    (mixed / "bad.jsonl").unlink()
    evaluate([str(mixed)], tmp_path / "files", Settings(), judge="rules")
    store = TraceStore(tmp_path / "home")
    intake.load(store, find_inputs([str(mixed)]), workers=0)
    record = evaluate([str(store.path)], tmp_path / "store", Settings(), judge="rules")
    files, stored = outputs(tmp_path / "files"), outputs(tmp_path / "store")
    for name in ("steps.jsonl", "verdicts.jsonl", "attributions.jsonl"):
        assert files[name] == stored[name], name
    receipt: Json = record.receipt
    assert adds_up(receipt)
    assert receipt["step_spans"] == json.loads(files["receipt.json"])["step_spans"]


def test_standard_input_may_be_of_any_size(mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = next(path for path in sorted(mixed.iterdir()) if path.suffix == ".jsonl").read_bytes()
    for name, above in (("small", 1 << 20), ("large", 100)):
        monkeypatch.setattr(trace_sources, "SPOOLED_ABOVE", above)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        evaluate(["-"], tmp_path / name, Settings(), judge="rules")
    assert outputs(tmp_path / "small") == outputs(tmp_path / "large")


def test_a_store_is_evaluated_by_itself(mixed: Path, tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "home")
    with store.connection():
        pass
    with pytest.raises(UsageError, match="by itself"):
        evaluate([str(store.path), str(mixed)], tmp_path / "out", Settings(), judge="rules")
    with pytest.raises(UnreadableInput):
        evaluate([str(store.path)], tmp_path / "out", Settings(), judge="rules")
    other = tmp_path / "other.duckdb"
    shutil.copy(store.path, other)
    with pytest.raises(UsageError, match="no trace store"):
        evaluate([str(other)], tmp_path / "out", Settings(), judge="rules")


def test_a_folder_may_hold_a_store_a_pipe_and_what_a_killed_evaluation_left(
    mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "work", tmp_path / "work" / "out"
    (folder / ".evalagent").mkdir(parents=True)
    shutil.copy(TRACES / "readers" / "renewal.otlp.jsonl", folder)
    store = TraceStore(folder / ".evalagent")
    intake.load(store, find_inputs([str(folder / "renewal.otlp.jsonl")]), workers=0)
    shutil.copy(store.path, folder / "traces.duckdb")
    os.mkfifo(folder / "pipe")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = out / f".traces-{dead.pid}-abc"
    left.mkdir(parents=True)
    shutil.copy(store.path, left)
    monkeypatch.setattr(trace_sources, "SPOOLED_ABOVE", -1)
    record = evaluate([str(folder)], out, Settings(), judge="rules", allow_rejected=True)
    assert len(record.traces) == 1
    assert [piece["reason"] for piece in record.receipt["rejected"]] == ["is a pipe, no file"]
    assert {Path(name).name for name in record.receipt["passed_over"]} == {".evalagent", "traces.duckdb", left.name}
    assert not left.exists()


def test_a_store_is_built_anew_from_its_spans_with_the_prices_of_a_suite_in_a_folder(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    (suite / "agent").mkdir(parents=True)
    (suite / "cases.jsonl").write_text('{"id": "a", "input": "hi"}\n')
    (suite / "prices.yaml").write_text("house-model: {input: 1000000, output: 0}\n")
    (suite / "suite.yaml").write_text(
        "name: desk\nagent: {source: agent, command: [python, x.py]}\ncases: cases.jsonl\nprices: prices.yaml\n"
    )
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "house-model"}
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in told.items()]
    pairs += [{"key": f"gen_ai.usage.{n}_tokens", "value": {"intValue": "3"}} for n in ("input", "output")]
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "chat", "startTimeUnixNano": "5", "endTimeUnixNano": "6"}
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": pairs}]}]}]}))

    def costs() -> list[float | None]:
        with TraceStore(tmp_path / "home").connection(read_only=True) as connection:
            return [cost for (cost,) in connection.execute("SELECT cost_usd FROM steps").fetchall()]

    loading.load_files([str(path)], tmp_path / "home")
    assert costs() == [None]
    assert loading.rebuild_all(tmp_path / "home", suite) == "trace store: 1 traces with 1 steps and 0 edges"
    assert costs() == [3.0]
    record = evaluate([str(path)], tmp_path / "out", Settings(), suite_file=suite, judge="rules")
    assert [step.cost_usd for trace in record.traces for step in trace.steps] == [3.0]
