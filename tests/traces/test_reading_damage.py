"""What becomes of bad content: it is named, what is around it is read, and nothing raises or takes long."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import zstandard

from evalagent.model import Json
from evalagent.traces.harvest import Harvest
from evalagent.traces.reading import Reading, read
from evalagent.traces.unpacking import unpack

HERE = Path(__file__).parent / "readers"
RUN = (HERE / "renewal.otlp.jsonl").read_bytes()
REQUESTS = [json.loads(line) for line in RUN.splitlines()]
GOLDEN = json.loads((HERE / "renewal.spans.json").read_text())


def told(reading: Reading) -> list[Json]:
    """Spans as the golden file holds them, in the order of their ids."""
    spans = sorted(reading.spans, key=lambda span: (span.trace_id, span.span_id))
    return json.loads(json.dumps([asdict(span) for span in spans]))


def test_a_bad_line_is_named_and_the_rest_is_read() -> None:
    one, two = RUN.splitlines()
    for bad in (
        b"not json",
        b'{"resourceSpans":[{"resource":{"attr',
        b'{"resourceSpans":[{}',
        b"{",
        b"]",
        b'{"a":1}',
        b"7",
    ):
        reading = read(one + b"\n\n" + bad + b"\n" + two + b"\n", "f")
        assert told(reading) == GOLDEN
        assert [piece.line for piece in reading.rejected] == [3], bad
        assert reading.rejected[0].file == "f"
        assert reading.lines_in == 3


def test_a_cut_tail_costs_the_cut_line_alone() -> None:
    one, two = RUN.splitlines()
    for cut in (len(two) // 2, len(two) - 1):
        reading = read(one + b"\n" + two[:cut], "f")
        assert len(reading.spans) == 2
        assert [piece.line for piece in reading.rejected] == [2]


def test_a_cut_pretty_printed_request_costs_one_rejection_and_its_whole_spans_are_kept() -> None:
    cut = json.dumps(REQUESTS[0], indent=1).encode()[:-400]
    reading = read(cut + b"\nnot json\n" + RUN, "f")
    assert [piece.line for piece in reading.rejected] == [1, cut.count(b"\n") + 2]
    assert told(replace(reading, spans=reading.spans[-4:])) == GOLDEN
    (kept,) = reading.spans[:-4]
    assert (kept.name, kept.attributes["gen_ai.usage.input_tokens"]) == ("chat tiny-1", 42)


def test_a_bad_span_costs_itself_alone() -> None:
    requests = json.loads(json.dumps(REQUESTS))
    requests[1]["resourceSpans"][0]["scopeSpans"][0]["spans"].insert(0, "no span")
    requests[1]["resourceSpans"].append(7)
    reading = read("\n".join(map(json.dumps, requests)).encode(), "f")
    assert told(reading) == GOLDEN
    assert [piece.line for piece in reading.rejected] == [2, 2]
    assert "spans[0]" in reading.rejected[0].reason


@pytest.mark.parametrize(
    "data",
    [b"", b" \r\n \n", b"\xef\xbb\xbf", gzip.compress(b""), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"PAR1\0\0", bytes(50)],
)
def test_an_empty_or_foreign_file_is_rejected_whole(data: bytes) -> None:
    reading = read(data, "f")
    assert [(piece.file, piece.line) for piece in reading.rejected] == [("f", 0)]
    assert reading.spans == ()
    assert reading.format == "unknown"


def test_of_a_damaged_archive_what_could_be_unpacked_is_read() -> None:
    packed = gzip.compress(RUN + b"\n" * 5000, mtime=0)
    reading = read(packed[:-12], "f")
    assert len(reading.spans) == 4
    assert [piece.line for piece in reading.rejected] == [0]


def test_an_archive_that_unpacks_without_end_is_stopped() -> None:
    for packed in (gzip.compress(bytes(1 << 24)), zstandard.compress(bytes(1 << 20)) * 64):
        harvest = Harvest("bomb")
        assert len(unpack(packed, harvest, most=1 << 20)) <= 1 << 22
        assert "more than" in harvest.rejected[0].reason


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_bomb_is_refused_whole_and_large_traces_are_not(pack: Callable[[bytes], bytes]) -> None:
    bomb, traces = pack(RUN + bytes(1 << 22)), pack(RUN * 1000)
    harvest = Harvest("bomb")
    assert unpack(bomb, harvest, ratio=200, unsuspected=1 << 20) == b""
    assert [piece.line for piece in harvest.rejected] == [0]
    assert "over 200 times its size: nothing of it was read" in harvest.rejected[0].reason
    for limits in ({"ratio": 200, "unsuspected": 1 << 23}, {"ratio": 1 << 23, "unsuspected": 1}):
        harvest = Harvest("no bomb")
        assert unpack(bomb, harvest, **limits).startswith(RUN)
        assert harvest.rejected == []
    harvest = Harvest("traces")
    assert unpack(traces, harvest, ratio=len(RUN) * 1000 // len(traces) + 1, unsuspected=1) == RUN * 1000


def test_unpacking_holds_what_it_unpacks_once() -> None:
    packed = gzip.compress(RUN + b" " * (1 << 26))
    tracemalloc.start()
    try:
        content = unpack(packed, Harvest("f"))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1.4 * len(content)


def test_what_was_packed_up_to_three_times_is_read() -> None:
    packed = RUN
    for pack in (gzip.compress, zstandard.compress, gzip.compress):
        packed = pack(packed)
        reading = read(packed, "f")
        assert told(reading) == GOLDEN
        assert reading.rejected == ()
    reading = read(gzip.compress(packed), "f")
    assert [(piece.line, piece.reason) for piece in reading.rejected] == [(0, "packed more than 3 times")]


@pytest.mark.parametrize("bad", [None, 7, "text", [], {}, {"role": "user"}, {"role": 5, "content": "x"}])
@pytest.mark.parametrize("held", [True, False])
def test_a_bad_message_costs_itself_alone(bad: Json, held: bool) -> None:
    messages = [{"role": role, "content": f"{number}"} for number in range(3) for role in ("user", "assistant")]

    def reading(given: list[Json]) -> Reading:
        return read(json.dumps({"messages": given} if held else given).encode(), "f")

    found, clean = reading([*messages[:2], bad, *messages[2:]]), reading(messages)
    assert len(clean.spans) == 4
    assert clean.rejected == ()
    assert found.spans == clean.spans
    assert [piece.line for piece in found.rejected] == ([] if bad == {} and not held else [1])


def test_a_bad_message_in_one_transcript_a_line_does_not_join_the_lines() -> None:
    line = json.dumps([{"role": "user", "content": "a"}, None, {"role": "assistant", "content": "b"}])
    reading = read(f"{line}\n{line}\n".encode(), "f")
    assert len({span.trace_id for span in reading.spans}) == 2
    assert [piece.line for piece in reading.rejected] == [1, 2]
    assert reading.rejected[0].reason == "messages[1] is no message"


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"resourceSpans":['])
def test_endless_nesting_is_rejected_and_the_next_line_read(opening: bytes) -> None:
    reading = read(opening * 100_000 + b"\n" + RUN, "f")
    assert len(reading.spans) == 4
    assert [piece.line for piece in reading.rejected] == [1]


def test_many_values_without_an_end_take_linear_time() -> None:
    reading = read(b'{"a": [\n' * 40_000 + RUN, "f")
    assert len(reading.spans) == 4
    assert len(reading.rejected) == 40_000


def test_an_empty_request_and_metrics_are_no_fault() -> None:
    reading = read(b'{}\n{"resourceSpans":[]}\n{"resourceMetrics":[{"scopeMetrics":[]}]}\n', "f")
    assert (reading.rejected, reading.spans, reading.lines_in) == ((), (), 3)


def test_a_shape_that_was_not_asked_for_is_rejected() -> None:
    reading = read((HERE / "chat.openai.json").read_bytes(), "f", "otlp")
    assert reading.spans == ()
    assert reading.rejected[0].reason == (
        "this is messages, which --format otlp does not take: use --format messages or --format auto"
    )
    with pytest.raises(ValueError, match="unknown format 'avro'"):
        read(b"", "f", "avro")


def test_the_reason_of_a_rejection_shows_no_secret() -> None:
    reading = read(json.dumps({"sk-ant-api03-abcdefgh12345678": 1}).encode(), "f")
    assert "abcdefgh" not in reading.rejected[0].reason
    assert "[masked:" in reading.rejected[0].reason


def test_an_endless_transcript_takes_linear_space() -> None:
    messages = [{"role": role, "content": f"{number}"} for number in range(10_000) for role in ("user", "assistant")]
    reading = read(json.dumps(messages).encode(), "f")
    inputs = [span.attributes["gen_ai.input.messages"] for span in reading.spans if span.name == "chat"]
    assert len(inputs) == 10_000
    assert max(map(len, inputs)) <= 101
    assert inputs[-1][0]["parts"][0]["content"] == "0"
    assert inputs[-1][-1]["parts"][0]["content"] == "9999"
