"""The program as a user calls it: exit codes, messages without tracebacks, help that answers at once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ASKED = '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'
SAID = '[{"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}]'
ATTRIBUTES = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": ASKED, "gen_ai.output.messages": SAID}
SPAN = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "b7ad6b7169203331",
    "name": "chat m",
    "startTimeUnixNano": "1760000000000000000",
    "endTimeUnixNano": "1760000001000000000",
    "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in ATTRIBUTES.items()],
}
GOOD = {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}


def call(*words: str, cwd: Path | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from evalagent.cli import main; main()"]
    return subprocess.run([*program, *words], capture_output=True, text=True, cwd=cwd, input=given, timeout=120)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(GOOD) + "\n")
    return path


def test_help_does_not_load_what_only_a_run_needs() -> None:
    heavy = "{'prefect', 'duckdb', 'anthropic', 'docker', 'deepeval', 'numpy'}"
    code = f"import sys, evalagent.cli; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert "exit codes" in call("--help").stdout.lower()


def test_evaluating_a_file_never_loads_prefect(traces: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom evalagent.cli import app\n"
        f"sys.argv = ['evalagent', 'evaluate', {str(traces)!r}, '--out', {str(tmp_path / 'out')!r}]\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "sys.exit(bool({'prefect', 'deepeval', 'docker'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_a_good_file_is_0_and_every_output_is_there(traces: Path, tmp_path: Path) -> None:
    done = call("evaluate", str(traces), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    names = {p.name for p in (tmp_path / "out").iterdir()}
    tables = {"steps", "findings", "verdicts", "trials", "attributions", "outcomes"}
    assert names == {f"{t}.jsonl" for t in tables} | {
        "receipt.json",
        "summary.json",
        "report.html",
        "report.md",
        "report.json",
        "junit.xml",
    }


def test_standard_input_is_read(tmp_path: Path) -> None:
    done = call("evaluate", "-", "--out", str(tmp_path / "out"), given=json.dumps(GOOD))
    assert done.returncode == 0, done.stderr


def test_an_earlier_output_folder_is_not_read_as_input(traces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("evaluate", str(tmp_path), "--out", str(out)).returncode == 0
    first = (out / "steps.jsonl").read_bytes()
    assert call("evaluate", str(tmp_path), "--out", str(out)).returncode == 0
    assert (out / "steps.jsonl").read_bytes() == first


def test_a_bad_line_is_3_and_named_and_0_if_allowed(traces: Path, tmp_path: Path) -> None:
    traces.write_text(traces.read_text() + "{broken\n")
    out = tmp_path / "out"
    assert call("evaluate", str(traces), "--out", str(out)).returncode == 3
    assert json.loads((out / "receipt.json").read_text())["rejected"][0]["line"] == 2
    assert call("evaluate", str(traces), "--out", str(out), "--allow-rejected").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate", "nowhere.jsonl", "--out", "out"], "nowhere.jsonl: no such file or folder"),
        (["evaluate", "empty", "--out", "out"], "the folder holds no file"),
        (["evaluate", "text.txt", "--out", "out"], "no span could be read: text.txt:1"),
        (["evaluate", "text.txt", "--out", "out", "--format", "xml"], "'xml' is not one of auto, otlp"),
        (["evaluate", "text.txt", "--out", "out", "--judge", "crystal"], "crystal"),
        (["evaluate", "text.txt", "--out", "out", "--suite", "suite.yaml"], "suite.yaml:2: `agnt`: unknown key"),
        (["run", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["run", "suite.yaml"], "suite.yaml:2: `agnt`: unknown key; did you mean `agent`?"),
        (["report", "latest", "--home", "empty"], "no run 'latest'"),
        (["compare", "a", "b", "--home", "empty"], "no run 'a'"),
        (["frobnicate"], "No such command"),
    ],
)
def test_wrong_use_is_2_and_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("just some text\n")
    (tmp_path / "suite.yaml").write_text("name: desk\nagnt: {source: ., command: [python]}\ncases: cases.jsonl\n")
    done = call(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_the_report_is_printed_in_each_form(traces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call("evaluate", str(traces), "--out", str(out))
    for form, start in {"md": "#", "json": "{", "junit": "<?xml", "html": "<!"}.items():
        assert call("report", str(out), "--format", form).stdout.lstrip().startswith(start)
    target = tmp_path / "sub" / "page.html"
    assert call("report", str(out), "--format", "html", "--out", str(target)).returncode == 0
    assert target.read_bytes() == (out / "report.html").read_bytes()


def test_a_fault_of_ours_is_70_and_leaves_a_file_to_send(tmp_path: Path) -> None:
    code = (
        "import evalagent.adapters.trace_files as t\n"
        "def broken(*a, **k): raise ZeroDivisionError('planted')\n"
        "t.evaluate = broken\nfrom evalagent.cli import main\nimport sys\n"
        "sys.argv = ['evalagent', 'evaluate', 'x', '--out', 'out']\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 70
    assert "a fault of ours" in done.stderr
    assert "Traceback" not in done.stderr


def test_hostile_text_does_not_steer_the_terminal(tmp_path: Path) -> None:
    hostile = json.loads(json.dumps(GOOD).replace("hello", "\\\\u001b[31mred\\\\u0007"))
    path = tmp_path / "\x1b[31mred.jsonl"
    path.write_text(json.dumps(hostile))
    done = call("evaluate", str(path), "--out", str(tmp_path / "out"))
    assert "\x1b[31m" not in done.stdout.replace(str(tmp_path), "")
    assert "\x07" not in done.stdout


def test_who_does_not_read_the_output_does_not_change_the_exit_code(traces: Path, tmp_path: Path) -> None:
    program = f"{sys.executable} -c 'from evalagent.cli import main; main()'"
    for reader in ("| true", "> /dev/full"):
        line = f"{program} evaluate {traces} --out {tmp_path / 'out'} {reader}; exit ${{PIPESTATUS[0]}}"
        assert subprocess.run(["bash", "-c", line], capture_output=True).returncode == 0, reader


def test_an_error_does_not_steer_the_terminal_either(tmp_path: Path) -> None:
    done = call("evaluate", "\x1b]0;title\x07\u202enowhere.jsonl", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert not any(ord(c) < 32 and c != "\n" for c in done.stderr)
    assert "\u202e" not in done.stderr
