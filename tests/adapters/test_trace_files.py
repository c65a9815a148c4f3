"""Judging traces from files: what is written tells the newest story, whatever came in."""

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from evalagent.adapters.files import OUTPUTS
from evalagent.adapters.outputs import discard
from evalagent.adapters.settings import Settings
from evalagent.adapters.trace_files import evaluate
from evalagent.errors import UnreadableInput, UsageError
from evalagent.model import Finding, Json, Verdict
from evalagent.records import RunRecord

SECRET = "sk-ant-api03-" + "A1b2C3d4E5" * 5


def request(*numbers: int, said: Json = "hello", spans: int = 1) -> str:
    """One line of OTLP: a trace for each number, with chat spans that say this."""
    output = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": said}]}])
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}])
    told = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked, "gen_ai.output.messages": output}
    found = [
        {
            "traceId": f"{number:032x}",
            "spanId": f"{span:016x}",
            "name": "chat m",
            "startTimeUnixNano": str(10**18 + span),
            "endTimeUnixNano": str(10**18 + span + 1),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in told.items()],
        }
        for number in numbers
        for span in range(1, spans + 1)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": found}]}]}) + "\n"


def judged(*paths: Path, out: Path, **options: Json) -> RunRecord:
    return evaluate([str(path) for path in paths], out, Settings(), judge="rules", **options)


def receipt_of(out: Path) -> Json:
    return json.loads((out / "receipt.json").read_text())


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.jsonl"
    path.write_text(request(1))
    return path


def test_nothing_of_an_earlier_evaluation_outlives_one_that_could_read_nothing(good: Path, tmp_path: Path) -> None:
    out, bad = tmp_path / "out", tmp_path / "bad.txt"
    bad.write_text("no trace\n")
    judged(good, out=out)
    (out / "notes.txt").write_text("the user's own")
    with pytest.raises(UnreadableInput, match="no span could be read"):
        judged(bad, out=out)
    assert {path.name for path in out.iterdir()} == {*OUTPUTS, "notes.txt"}
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["exit_code"], summary["verdict"]) == (2, "not_judged")
    assert "bad.txt:1" in summary["reasons"][0]
    assert receipt_of(out)["rejected"][0]["file"] == str(bad)
    assert (out / "steps.jsonl").read_text() == ""
    assert 'errors="1"' in (out / "junit.xml").read_text()
    for name in ("report.html", "report.md", "report.json"):
        assert "no span could be read" in (out / name).read_text(), name


def test_only_what_is_known_to_be_ours_is_removed(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("steps.jsonl", "summary.json", "receipt.json"):
        (out / name).write_text('{"total": 5}\n')
    discard(out)
    assert len(list(out.iterdir())) == 3
    judged(good, out=out)
    (out / "notes.txt").write_text("the user's own")
    discard(out)
    assert [path.name for path in out.iterdir()] == ["notes.txt"]


def test_a_folder_of_traces_may_take_the_outputs_and_be_evaluated_again(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "run.jsonl").write_text("no trace\n")
    with pytest.raises(UnreadableInput):
        judged(folder, out=folder)
    (folder / "run.jsonl").write_text(request(1))
    assert len(judged(folder, out=folder).traces) == 1
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(judged(folder, out=folder).traces) == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first


@pytest.mark.parametrize("name", ["steps.jsonl", "trials.jsonl", "summary.json", "report.json"])
def test_traces_of_the_user_under_a_name_of_ours_are_read_and_never_overwritten(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / name).write_text(request(1))
    with pytest.raises(UsageError, match=f"{name}: is an input and would be overwritten"):
        judged(folder, out=folder)
    assert (folder / name).read_text() == request(1)
    assert len(judged(folder, out=tmp_path / "out").traces) == 1


def test_what_is_no_file_in_a_folder_stands_in_the_receipt(tmp_path: Path) -> None:
    folder, out = tmp_path / "traces", tmp_path / "out"
    folder.mkdir()
    (folder / "good.jsonl").write_text(request(1))
    (folder / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    record = judged(folder, out=out)
    assert receipt_of(out)["rejected"] == [
        {"file": str(folder / "gone.jsonl"), "line": 0, "reason": "is a link to nothing"}
    ]
    assert record.exit_code == 3


def test_a_folder_without_files_hides_no_other_input_and_alone_is_unreadable(good: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert len(judged(good, tmp_path / "empty", out=tmp_path / "out").traces) == 1
    assert receipt_of(tmp_path / "out")["rejected"][0]["reason"] == "the folder holds no file"
    with pytest.raises(UnreadableInput, match="empty: the folder holds no file"):
        judged(tmp_path / "empty", out=tmp_path / "out")


def test_an_out_that_is_a_file_is_told_before_anything_is_read(good: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"good\.jsonl: is no folder"):
        judged(good, out=good / "below")
    with pytest.raises(UsageError, match=r"good\.jsonl: is no folder"):
        judged(good, out=good)
    assert good.read_text() == request(1)


@pytest.mark.skipif(sys.platform != "linux", reason="the full device is Linux's")
def test_a_disk_without_space_is_wrong_use_and_no_fault_of_ours(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, made = tmp_path / "out", tempfile.mkstemp
    judged(good, out=out)

    def full(dir: Path, prefix: str) -> tuple[int, str]:
        if prefix == ".junit.xml.":
            return os.open("/dev/full", os.O_WRONLY), str(tmp_path / "part")
        return made(dir=dir, prefix=prefix)

    monkeypatch.setattr("tempfile.mkstemp", full)
    with pytest.raises(UsageError, match=r"out/junit\.xml: cannot be written: No space left on device"):
        judged(good, out=out)
    assert list(out.iterdir()) == []


def test_a_secret_in_a_file_name_is_shown_nowhere(tmp_path: Path) -> None:
    folder, out = tmp_path / "traces", tmp_path / "out"
    folder.mkdir()
    (folder / f"{SECRET}.jsonl").write_text(request(1) + "broken\n")
    (folder / f"{SECRET}-gone.jsonl").symlink_to("nowhere")
    judged(folder, folder / f"{SECRET}.jsonl", out=out)
    for path in out.iterdir():
        assert SECRET not in path.read_text(), path.name
    assert "[masked:" in receipt_of(out)["rejected"][0]["file"]
    (folder / f"{SECRET}.jsonl").write_text("broken\n")
    for paths in ([folder], [folder / f"{SECRET}.jsonl"], [folder / f"{SECRET}-gone.jsonl"]):
        with pytest.raises((UnreadableInput, UsageError)) as caught:
            judged(*paths, out=out)
        assert SECRET not in str(caught.value)
        assert "[masked:" in str(caught.value)


def test_the_suites_own_secrets_are_masked_in_file_names(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "name: desk\nagent: {source: ., command: [python, agent.py]}\ncases: cases.jsonl\nsecrets: ['desk-[0-9]+']\n"
    )
    (tmp_path / "cases.jsonl").write_text('{"id": "c", "input": "hi", "expected": {"no_tools": true}}\n')
    (tmp_path / "desk-4711.jsonl").write_text(request(1) + "broken\n")
    judged(tmp_path / "desk-4711.jsonl", out=tmp_path / "out", suite_file=suite)
    assert "desk-4711" not in (tmp_path / "out" / "receipt.json").read_text()


@pytest.mark.parametrize("levels", [100, 300, 800, 5000])
@pytest.mark.parametrize("place", ["arguments", "result", "message"])
def test_a_trace_nested_without_end_sinks_no_other(good: Path, tmp_path: Path, levels: int, place: str) -> None:
    deep = "[" * levels + '"the end"' + "]" * levels
    call = {"type": "tool_call", "id": "c", "name": "f", "arguments": deep if place == "arguments" else "{}"}
    answer = {"type": "tool_call_response", "id": "c", "result": deep if place == "result" else "ok"}
    said = deep if place == "message" else "hello"
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": said}]}, {"role": "tool", "parts": [answer]}]
        ),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call]}]),
    }
    span = json.loads(request(2))
    span["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = [
        {"key": key, "value": {"stringValue": value}} for key, value in told.items()
    ]
    path = tmp_path / "deep.jsonl"
    path.write_text(json.dumps(span) + "\n")
    record = judged(good, path, out=tmp_path / "out")
    assert len(record.traces) == 2
    assert receipt_of(tmp_path / "out")["spans_in"] == 2
    assert "the end" in (tmp_path / "out" / "steps.jsonl").read_text()


def test_many_traces_take_work_in_proportion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Counter[int]()

    def counting(kind: type) -> property:
        own = kind.__dict__["trace_id"]

        def look(value: object) -> str:
            looks[traces] += 1
            return str(own.__get__(value))

        return property(look, own.__set__)

    for kind in (Verdict, Finding):
        monkeypatch.setattr(kind, "trace_id", counting(kind))
    for traces in (40, 160):
        path = tmp_path / f"{traces}.jsonl"
        path.write_text("".join(request(number) for number in range(1, traces + 1)))
        assert len(judged(path, out=tmp_path / "out").traces) == traces
    assert 0 < looks[160] < 5 * looks[40]


def test_traces_of_the_services_around_take_no_part_in_the_result(good: Path, tmp_path: Path) -> None:
    """A health check beside an agent's run lowers neither quality nor coverage, and its tokens are not missed."""
    alone = judged(good, out=tmp_path / "alone")
    around = tmp_path / "around.jsonl"
    spans = [
        {"traceId": f"{n:032x}", "spanId": "ab" * 8, "name": "GET /healthz", "startTimeUnixNano": "5",
         "endTimeUnixNano": "6", "attributes": [{"key": "http.request.method", "value": {"stringValue": "GET"}}]}
        for n in (7, 8, 9)
    ]  # fmt: skip
    around.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    both = judged(good, around, out=tmp_path / "both")
    assert (both.exit_code, both.verdict) == (alone.exit_code, alone.verdict)
    told = [json.loads((tmp_path / name / "summary.json").read_text()) for name in ("alone", "both")]
    for key in ("trace_quality", "scorecard", "coverage"):
        assert told[0][key] == told[1][key], key
    assert both.receipt["ignored"] == {"plumbing": 3} and both.receipt["spans_in"] == 4
    nothing_else = judged(around, out=tmp_path / "around")
    assert nothing_else.exit_code == 3  # by itself such an input is an agent that nobody instrumented


def test_a_trace_of_tools_alone_is_no_passed_run(tmp_path: Path) -> None:
    path = tmp_path / "tool.jsonl"
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find", "gen_ai.tool.call.result": "12 C"}
    span = {
        "traceId": "1" * 32, "spanId": "2" * 16, "name": "execute_tool find", "startTimeUnixNano": "5",
        "endTimeUnixNano": "6",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in told.items()],
    }  # fmt: skip
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    [whole] = [verdict for verdict in judged(path, out=tmp_path / "out").verdicts if verdict.step_id is None]
    assert whole.verdict == "not_judged" and "no model call" in whole.reason


def test_files_that_are_no_traces_by_their_names_are_passed_over_and_told(good: Path, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    good.rename(folder / "run.jsonl")
    (folder / "README.md").write_text("# How these came about\n")
    record = judged(folder, out=tmp_path / "out")
    assert record.exit_code == 0
    assert receipt_of(tmp_path / "out")["passed_over"] == [str(folder / "README.md")]
    named = judged(folder / "run.jsonl", folder / "README.md", out=tmp_path / "out")
    assert named.exit_code == 3 and "passed_over" not in named.receipt  # who names a file means it


def test_a_floor_makes_too_little_judged_a_3(good: Path, tmp_path: Path) -> None:
    assert judged(good, out=tmp_path / "out").exit_code == 0
    record = judged(good, out=tmp_path / "out", floor=0.5)
    assert record.exit_code == 3 and "under the floor 0.5" in record.reasons[0]
