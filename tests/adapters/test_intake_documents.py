"""Values that are too large to be held: read part by part they give what they give as a whole."""

import io
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalagent.adapters import intake, intake_documents, intake_streams
from evalagent.adapters.files import Input
from evalagent.adapters.intake import load
from evalagent.adapters.intake_pieces import rows_of
from evalagent.adapters.span_batches import LOG_COLUMNS, SPAN_COLUMNS
from evalagent.adapters.span_tables import FileReceipt
from evalagent.adapters.trace_store import TraceStore
from evalagent.model import Json, Rejected
from evalagent.traces.reading import read
from tests.adapters.otlp_files import inputs
from tests.adapters.test_intake import PARTS
from tests.traces.exports import EXPORTS
from tests.traces.test_reading_wrappings import RUNS
from tests.traces.wrappings import LAYOUTS, SPELLINGS

READERS = Path(__file__).parent.parent / "traces" / "readers"
JAEGER = json.loads((READERS / "renewal.jaeger.json").read_text())
REQUEST = RUNS[sorted(RUNS)[3]][0]


def limit(monkeypatch: pytest.MonkeyPatch, large: int, piece: int) -> None:
    """So many bytes are large, and so many are read at a time."""
    monkeypatch.setattr(intake, "LARGE", large)
    monkeypatch.setattr(intake_documents, "LARGE", large)
    monkeypatch.setattr(intake, "PIECE", piece)
    monkeypatch.setattr(intake, "TOLD_BY", 1)  # these files are small
    monkeypatch.setattr(intake_streams, "_BLOCK", max(piece // 3, 1))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 300, 200)


Stored = tuple[FileReceipt, set[tuple[Json, ...]], set[tuple[Json, ...]]]


def stored(tmp_path: Path, files: list[bytes], workers: int = 0) -> list[Stored]:
    """What a store holds of each file: its receipt, its spans and its log records."""
    found: list[Stored] = []
    with TraceStore.temporary(tmp_path) as store:
        for data in files:
            (one,) = load(store, inputs(tmp_path, [data]), workers=workers).files
            with store.connection() as connection:
                spans, logs = (
                    set(connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall())
                    for table, columns in (("spans", SPAN_COLUMNS), ("log_records", LOG_COLUMNS))
                )
                connection.execute("DELETE FROM spans; DELETE FROM log_records; DELETE FROM inputs")
            found.append((one, spans, logs))
    return found


def same(tmp_path: Path, files: list[bytes]) -> list[tuple[Rejected, ...]]:
    """Loaded and read files hold the same spans, records, counts and reasons; what was rejected, as loaded."""
    came = stored(tmp_path, files)
    for data, (one, spans, logs) in zip(files, came, strict=True):
        reading = read(data, "000.jsonl")
        rows = rows_of(reading, ())
        told = [
            {tuple(row[name] for name in columns) for row in table.to_pylist()} if table is not None else set()
            for table, columns in ((rows.spans, SPAN_COLUMNS), (rows.logs, LOG_COLUMNS))
        ]
        assert (one.format, one.bytes, one.lines, one.spans, one.log_records) == (
            reading.format, reading.bytes, reading.lines_in, len(reading.spans), len(reading.logs),
        )  # fmt: skip
        assert told[0] <= spans
        assert {row[:2] for row in told[0]} == {row[:2] for row in spans}
        assert told[1] == logs
        assert Counter(piece.reason for piece in one.rejected) == Counter(piece.reason for piece in reading.rejected)
    return [one.rejected for one, _, _ in came]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_requests_in_any_spelling_and_layout(tmp_path: Path, tiny: None, layout: str) -> None:
    place = sorted(LAYOUTS).index(layout)
    spelled = list(SPELLINGS.values())[place % 4 :: 4]
    same(tmp_path, [LAYOUTS[layout]([spell(one) for one in RUNS[sorted(RUNS)[place]]]) for spell in spelled])


SIZES = [(1, 1), (300, 200), (3000, 700), (9000, 4000)]


@pytest.mark.parametrize(("large", "piece"), SIZES)
def test_files_of_every_reader_and_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int, piece: int
) -> None:
    limit(monkeypatch, large, piece)
    files = [path.read_bytes() for path in sorted(READERS.iterdir()) if ".spans." not in path.name]
    files += [tell() for tell in EXPORTS.values()]
    files += [json.dumps(json.loads(data)).encode() for data in files if one(data)]
    assert not any(same(tmp_path, files[SIZES.index((large, piece)) :: len(SIZES)]))


def one(data: bytes) -> bool:
    """Whether a file is a single value."""
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


# --- what is said too late ------------------------------------------------------------------------


def turned(value: Json) -> Json:
    """The value with the members of each object in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(inner) for key, inner in reversed(value.items())}
    return [turned(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("indent", [None, 1])
def test_what_stands_after_a_large_list_counts_for_its_items(tmp_path: Path, tiny: None, indent: int | None) -> None:
    files = [tell() for tell in EXPORTS.values() if one(tell())][bool(indent) :: 2]
    files += [json.dumps(value).encode() for value in (JAEGER, REQUEST, [REQUEST, JAEGER])]
    good = json.dumps(RUNS[sorted(RUNS)[1]][0]).encode()
    same(tmp_path, [b"\n".join([good, json.dumps(turned(json.loads(f)), indent=indent).encode(), good]) for f in files])


def test_standard_input_that_says_something_too_late_is_refused_with_the_way_out(
    tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, spans in ((REQUEST, 3), (turned(REQUEST), 0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(value).encode())))
        with TraceStore.temporary(tmp_path) as store:
            (one,) = load(store, [Input("<stdin>", None, named=True)], workers=0).files
        assert one.spans == spans
        assert [piece.line for piece in one.rejected] == [0] * (spans == 0)
    assert "`scope` stands after `spans`" in one.rejected[0].reason
    assert "give a file instead of standard input" in one.rejected[0].reason


# --- what is broken -------------------------------------------------------------------------------


def many(count: int) -> list[Json]:
    return [
        {"traceId": f"{1:032x}", "spanId": f"{n + 1:016x}", "name": f"s{n}", "startTimeUnixNano": str(n)}
        for n in range(count)
    ]


def nested(spans: list[Json]) -> Json:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}


@pytest.mark.parametrize("indent", [None, 1])
def test_a_large_value_that_is_cut_off_keeps_what_is_complete_and_says_where(
    tmp_path: Path, tiny: None, indent: int | None
) -> None:
    text = json.dumps(nested(many(20)), indent=indent).encode()
    place = text.index(b'"s12"')
    good = json.dumps(nested([{**many(1)[0], "spanId": "ff" * 8}]), indent=indent).encode()
    for data, spans in ((text[:place], 12), (text[:place] + b"\n" + good, 13)):
        ((receipt, rows, _),) = stored(tmp_path, [data])
        assert (receipt.spans, len(rows)) == (spans, spans)
        (piece,) = receipt.rejected
        assert piece.reason.startswith("the value is cut off")
        line = data[:place].count(b"\n") + 1
        assert line - 5 < piece.line <= line


def test_a_bad_item_of_a_large_list_costs_itself_alone_and_has_its_number_and_line(tmp_path: Path, tiny: None) -> None:
    spans = many(20)
    spans[7] = {**spans[7], "spanId": 1.5}
    spans[13] = 42
    text = json.dumps(nested(spans), indent=1).encode()
    (pieces,) = same(tmp_path, [text])
    assert [piece.reason.split(" ")[0] for piece in pieces] == ["spans[7]", "spans[13]"]
    lines = text.decode().split("\n")
    assert [lines[piece.line - 1].strip() for piece in pieces] == ["{", "42,"]
    assert '"s7"' in lines[pieces[0].line + 2]
    # and what is no JSON, where a whole value would be lost
    for damage in (b'"s9', b'"s9" 1', b'"s9\n"'):
        ((receipt, _, _),) = stored(tmp_path, [text.replace(b'"s9"', damage)])
        assert receipt.spans == 17
        assert len(receipt.rejected) == 3


def test_a_value_that_cannot_be_cut_is_read_whole_up_to_a_limit_and_then_passed_over(
    tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = {**many(1)[0], "attributes": [{"key": "k", "value": {"stringValue": "x" * 5000}}]}
    talk = [{"role": "user", "content": "hi " * 300}, {"role": "assistant", "content": "yes " * 300}]
    files = [json.dumps(v).encode() for v in (big, nested([big, *many(3)[1:]]), {"messages": talk}, talk, [talk, talk])]
    same(tmp_path, files)
    monkeypatch.setattr(intake_documents, "MOST", 1000)
    came = stored(tmp_path, files)
    assert [receipt.spans for receipt, _, _ in came] == [0, 2, 0, 0, 0]
    for receipt, _, _ in came:
        assert all("cannot be read in parts" in piece.reason for piece in receipt.rejected)
        assert receipt.rejected


# --- laws -----------------------------------------------------------------------------------------

LISTS = [
    "resourceSpans",
    "scopeSpans",
    "spans",
    "data",
    "traces",
    "result",
    "batches",
    "observations",
    "logs",
    "events",
]
SMALL = [
    *many(2),
    {"messages": []},
    {},
    1,
    None,
    "x",
    [],
    {"resource": {"attributes": []}},
    {"traceID": "1", "spanID": "2"},
]
VALUES = st.recursive(
    st.sampled_from(SMALL),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*LISTS, "resource", "scope", "traceID", "processes", "info", "id"]), inner, max_size=3
        )
    ),
    max_leaves=20,
)


@given(
    st.lists(st.sampled_from(PARTS), max_size=6),
    st.sampled_from([(1, 1), (40, 30), (400, 100), (2000, 700)]),
    st.booleans(),
)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_stands_around_it_no_whole_value_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[bytes], sizes: tuple[int, int], pretty: bool
) -> None:
    limit(monkeypatch, *sizes)
    whole = json.dumps(nested(many(9)), indent=2 if pretty else None).encode() + b"\n"
    cut = [part for part in parts if part.endswith(b"}\n") and one(part)]
    same(tmp_path, [b"".join([*cut, whole, *cut, whole])])


@given(VALUES, st.sampled_from([None, 0, 1]), st.sampled_from([(1, 1), (60, 20), (200, 100)]))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_senseless_values_break_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Json, indent: int | None, sizes: tuple[int, int]
) -> None:
    limit(monkeypatch, *sizes)
    text = json.dumps(value, indent=indent).encode()
    for data in (text, text[: len(text) * 2 // 3], text.replace(b'"', b"", 1)):
        ((receipt, _, _),) = stored(tmp_path, [data + b"\n" + json.dumps(nested(many(3))).encode()])
        assert receipt.spans >= 3 or receipt.rejected


def test_worker_processes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 3000, 700)
    files = [json.dumps(turned(nested(many(90))), indent=1).encode(), json.dumps([talk for talk in many(99)]).encode()]
    assert stored(tmp_path, files) == stored(tmp_path, files, workers=2)
