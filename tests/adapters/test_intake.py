"""Files into the trace store: what a load finds is what reading finds, however large, packed or broken the file is."""

import gzip
import io
import json
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from google.protobuf import json_format
from google.protobuf.internal.encoder import _VarintBytes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evalagent.adapters import intake, rebuilding
from evalagent.adapters.files import Input
from evalagent.adapters.intake import load
from evalagent.adapters.trace_store import TraceStore
from evalagent.errors import UsageError
from evalagent.model import Rejected
from evalagent.traces.building import Built, build
from evalagent.traces.masking import mask_log, mask_span
from evalagent.traces.reading import Reading, read
from evalagent.traces.receipt import adds_up, receipt
from tests.adapters.otlp_files import inputs, line
from tests.traces.loans import DIALECTS, OPENAI
from tests.traces.spans import chat, said, tool

GOOD = line([chat(1, None, 0, 5, [said("héllo", "user")], said("yes")), tool(2, 1, "look", 1, 2, "c1", {}, "found")])
TRANSCRIPT = json.dumps({"messages": OPENAI}).encode() + b"\n"
PARTS = [
    GOOD,
    line([tool(3, 1, "look", 3, 4, "c2", {"a": 1}, "x" * 300)]),
    GOOD[:-1] + GOOD,  # two requests on one line
    json.dumps(json.loads(GOOD), indent=1).encode() + b"\n",
    GOOD[: len(GOOD) // 2] + b"\n",  # cut within a text
    b'{"resourceSpans": [{"scopeSpans": [\n',  # cut between values
    b'{"a": {"b": 1\n',
    b"]}\n",
    b'  "spans": [{"spanId": "1"}]\n',
    b"no JSON\n",
    b"\n",
    b"\x1e \r\n",
    b"42\n",
    b"\0\0\n",
    b"\xff\xfe\xfd\n",
    TRANSCRIPT,
    json.dumps(OPENAI[1]).encode() + b"\n",
    json.dumps(OPENAI, indent=1).encode() + b"\n",
    b'[{"traceId": "ab", "spanId": "1", "name": "flat"}, {"spanId": 3.5, "traceId": 12345678901234567890123}]\n',
    b'{"traceId": 1.5, "spanId": 2}\n',
]


def in_memory(files: list[tuple[str, bytes]], patterns: tuple[str, ...] = ()) -> tuple[list[Reading], Built]:
    readings = [read(data, name) for name, data in files]
    spans = [mask_span(span, patterns) for reading in readings for span in reading.spans]
    logs = [mask_log(log, patterns) for reading in readings for log in reading.logs]
    return readings, build(spans, logs)


def whole(built: Built) -> Built:
    return built


def unplaced(piece: Rejected) -> tuple[str, int, str]:
    """A rejected piece, without the byte at which a message is damaged: it is counted from where reading began."""
    return piece.file, piece.line, re.sub(r"at byte \d+", "at a byte", piece.reason)


def agrees(store: TraceStore, files: list[tuple[str, bytes]], found: list[Input]) -> None:
    """The store's receipt and traces are those of reading everything into memory."""
    came = load(store, found, workers=0)
    readings, built = in_memory(files)
    told = receipt(readings, built)
    for reading, one in zip(readings, came.files, strict=True):
        assert (one.file, one.format, one.bytes, one.lines) == (
            reading.file, reading.format, reading.bytes, reading.lines_in,
        )  # fmt: skip
        assert (one.spans, one.log_records) == (len(reading.spans), len(reading.logs))
        assert Counter(map(unplaced, one.rejected)) == Counter(map(unplaced, reading.rejected))
    parts = list(rebuilding.map_built(store, whole, workers=0))
    assert [t for part in parts for t in part.traces] == list(built.traces)
    for count in ("duplicates", "log_attached", "log_ignored"):
        assert sum(getattr(part, count) for part in parts) == getattr(built, count)
    rebuilding.rebuild(store, workers=0)
    stored = store.receipt()
    assert adds_up(stored)
    assert {**stored, "rejected": [unplaced(Rejected(**piece)) for piece in stored["rejected"]]} == {
        **told,
        "rejected": [unplaced(Rejected(**piece)) for piece in told["rejected"]],
    }


def packed(data: bytes, packing: str) -> bytes:
    if packing == "gzip":
        return gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :])
    if packing == "zstd":
        return zstandard.compress(data)
    if packing == "utf-16":
        return data.decode("utf-8", "replace").encode("utf-16")
    if packing == "cut gzip":
        return gzip.compress(data)[:-9]
    if packing == "more after gzip":
        return gzip.compress(data) + b"\0\0rest\0"
    if packing == "marked":
        return b"\xef\xbb\xbf" + data
    return data


@given(
    st.lists(st.sampled_from(PARTS), max_size=9),
    st.sampled_from(["", "", "", "gzip", "zstd", "utf-16", "cut gzip", "more after gzip", "marked"]),
    st.sampled_from([1, 40, 700, 1500, 4000]),
    st.booleans(),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_read_in_pieces_gives_what_it_gives_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[bytes], packing: str, size: int, ended: bool
) -> None:
    monkeypatch.setattr(intake, "PIECE", size)
    text = b"".join(parts)
    data = packed(text if ended else text[:-1], packing)
    with TraceStore.temporary(tmp_path) as store:
        agrees(store, [("000.jsonl", data)], inputs(tmp_path, [data]))


def request(number: int) -> bytes:
    spans = [chat(10 * number + n, None, n, n + 5, [said("hi", "user")], said("x" * 40)) for n in range(3)]
    return json_format.Parse(line(spans), ExportTraceServiceRequest(), ignore_unknown_fields=True).SerializeToString()


@pytest.mark.parametrize("framing", ["one", "wide", "varint"])
@pytest.mark.parametrize("size", [1, 300, 1000, 5000])
def test_a_protobuf_file_read_in_parts_gives_what_it_gives_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, framing: str, size: int
) -> None:
    monkeypatch.setattr(intake, "PIECE", size)
    requests = [request(number) for number in range(5)]
    if framing == "one":
        data = b"".join(requests)
    elif framing == "wide":
        requests[2] = b"\xff" * 50  # a damaged one costs itself alone
        data = b"".join(len(one).to_bytes(4, "big") + one for one in requests)[:-20]
    else:
        data = b"".join(_VarintBytes(len(one)) + one for one in requests)[:-20]
    with TraceStore.temporary(tmp_path) as store:
        agrees(store, [("000.jsonl", data)], inputs(tmp_path, [data]))


def test_many_files_of_all_kinds_are_received_as_if_they_were_read_into_memory(tmp_path: Path) -> None:
    folder = Path(__file__).parent.parent / "traces" / "readers"
    files = [(path.name, path.read_bytes()) for path in sorted(folder.iterdir()) if ".spans." not in path.name]
    with TraceStore.temporary(tmp_path) as store:
        agrees(store, files, [Input(name, folder / name) for name, _ in files])


def test_worker_processes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "PIECE", 2000)
    found = inputs(tmp_path, [b"".join(PARTS[:5] * 3), GOOD, b"".join(PARTS[4:])])
    told = []
    for workers in (0, 2):
        with TraceStore.temporary(tmp_path) as store:
            came = load(store, found, workers=workers)
            built = list(rebuilding.map_built(store, whole, workers=workers))
            told.append((came, built, rebuilding.rebuild(store, workers=workers), store.receipt()))
    assert told[0] == told[1]


def test_a_file_that_was_loaded_before_changes_nothing(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "home")
    found = inputs(tmp_path, [GOOD, GOOD])
    first = load(store, found[:1])
    rebuilding.rebuild(store)
    before = (store.counts(), store.receipt())
    again = load(store, found)
    assert [one.known for one in again.files] == [True, True]
    assert again.files[0].spans == first.files[0].spans == 2
    assert rebuilding.rebuild(store).traces == 0
    assert (store.counts(), store.receipt()) == before


def test_the_same_file_twice_in_one_load_counts_once_in_a_store_that_remembers(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "home")
    came = load(store, inputs(tmp_path, [GOOD, PARTS[1], GOOD]))
    assert [one.known for one in came.files] == [False, False, True]
    assert store.receipt()["duplicates"] == 0


def test_standard_input_is_known_again_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = TraceStore(tmp_path / "home")
    for known in (False, True):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
        (came,) = load(store, [Input("<stdin>", None, named=True)], workers=0).files
        assert (came.known, came.spans) == (known, 2)
    assert store.receipt()["spans_in"] == 2


def test_another_format_or_other_secrets_make_another_load_of_the_same_bytes(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "home")
    found = inputs(tmp_path, [GOOD])
    assert not load(store, found, format="jaeger").files[0].known
    assert not load(store, found, format="messages").files[0].known
    assert not load(store, found, patterns=["h.llo"]).files[0].known
    assert load(store, found, format="jaeger").files[0].known


def test_secrets_reach_neither_the_database_nor_what_lies_beside_it(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "Ab3" * 20
    store = TraceStore(tmp_path / "home")
    data = line([tool(1, None, "look", 0, 1, "c", {"password": "hunter-2-hunter"}, f"key {secret} ACME-12345678")])
    load(store, inputs(tmp_path, [data]), patterns=["ACME-[0-9]{8}"])
    rebuilding.rebuild(store)
    with store.connection(read_only=True) as connection:
        (payload,) = connection.execute("SELECT payload FROM spans").fetchall()[0]
        (output,) = connection.execute("SELECT output FROM steps").fetchall()[0]
    for text in (payload, output):
        assert "[masked:" in text
        assert not any(hidden in text for hidden in (secret, "hunter", "ACME-1"))
    assert not any(secret.encode() in path.read_bytes() for path in (tmp_path / "home").iterdir())


def test_the_bytes_as_received_are_kept_under_their_hash_only_if_that_is_wished(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "home")
    load(store, inputs(tmp_path, [gzip.compress(GOOD)]))
    assert not (tmp_path / "raw").exists()
    load(store, inputs(tmp_path, [gzip.compress(PARTS[1])]), raw=tmp_path / "raw")
    (kept,) = (tmp_path / "raw").iterdir()
    assert gzip.decompress(kept.read_bytes()) == PARTS[1]


@pytest.mark.parametrize("packing", ["gzip", "framed zstd"])
def test_a_bomb_leaves_nothing_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: str) -> None:
    monkeypatch.setattr("evalagent.traces.unpacking.UNSUSPECTED", 5000)
    monkeypatch.setattr("evalagent.adapters.intake.PIECE", 5000)
    text = GOOD + b" " * 5_000_000
    packed = zstandard.ZstdCompressor().compress(text)
    data = gzip.compress(text) if packing == "gzip" else len(packed).to_bytes(4, "big") + packed
    with TraceStore.temporary(tmp_path) as store:
        came = load(store, inputs(tmp_path, [data, PARTS[1]]))
        assert "nothing of it was read" in came.files[0].rejected[0].reason
        assert (came.files[0].spans, came.spans_in, store.receipt()["spans_in"]) == (0, 1, 1)


def test_a_named_file_that_cannot_be_read_ends_the_load_and_what_came_before_is_not_half_there(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "home")
    found = inputs(tmp_path, [GOOD, PARTS[1]])
    (tmp_path / "001.jsonl").unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        load(store, found)
    counts = store.counts()
    assert (counts["spans"], counts["inputs"], counts["stale"]) in ((0, 0, 0), (2, 1, 1))
    folder = [found[0], Input("001.jsonl", tmp_path / "001.jsonl"), Input("x", None, "is a pipe, no file")]
    came = load(store, folder)
    assert [len(one.rejected) for one in came.files] == [0, 1, 1]


def test_a_fault_in_the_middle_of_a_load_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = TraceStore(tmp_path / "home")
    load(store, inputs(tmp_path, [PARTS[1]]))
    before = (store.counts(), store.receipt())

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("evalagent.adapters.span_tables.SpanTables.finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            load(store, inputs(tmp_path, [GOOD]))
    assert (store.counts(), store.receipt()) == before
    assert not load(store, inputs(tmp_path, [GOOD])).files[0].known
    assert store.receipt()["spans_in"] == 3


def test_a_run_told_in_any_dialect_is_built_the_same_from_the_store(tmp_path: Path) -> None:
    told = []
    for number, dialect in enumerate(sorted(DIALECTS)):
        spans, logs = DIALECTS[dialect]()
        trace = f"{number + 1:032x}"  # each in a trace of its own
        spans = [replace(span, trace_id=trace) for span in spans]
        logs = [replace(log, trace_id=trace) for log in logs]
        told.append(b"".join(line([s], [log for log in logs if log.span_id == s.span_id]) for s in spans))
    with TraceStore.temporary(tmp_path) as store:
        agrees(store, [(f"{n:03}.jsonl", data) for n, data in enumerate(told)], inputs(tmp_path, told))
