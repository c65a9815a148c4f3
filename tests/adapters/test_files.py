"""What is read and what is written: nothing is passed over in silence, nothing of the user's is overwritten."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalagent.adapters.files import (
    Input,
    content,
    dump,
    find_inputs,
    must_be_writable,
    must_not_overwrite,
    write_bytes,
)
from evalagent.errors import UsageError
from evalagent.model import Json


def told(inputs: list[Input], folder: Path) -> dict[str, str]:
    return {str(Path(one.name).relative_to(folder)): one.fault for one in inputs}


def test_what_is_no_file_in_a_folder_is_named_and_the_files_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.json").touch()
    (folder / "b.json").touch()
    (folder / "gone.json").symlink_to(tmp_path / "nowhere")
    (folder / "self.json").symlink_to("self.json")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
    (folder / "null").symlink_to("/dev/null")
    assert told(find_inputs([str(folder)]), folder) == {
        "b.json": "",
        "gone.json": "is a link to nothing",
        "null": "is a device, no file",
        "pipe": "is a pipe, no file",
        "self.json": "cannot be read: Too many levels of symbolic links",
        "socket": "is a socket, no file",
        "sub/a.json": "",
    }


def test_folders_behind_links_are_looked_through_once_and_loops_end(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "traces", tmp_path / "elsewhere"
    for place in (folder, elsewhere):
        place.mkdir()
    (elsewhere / "far.json").touch()
    (folder / "near.json").touch()
    (folder / "link").symlink_to(elsewhere)
    (folder / "link_again").symlink_to(elsewhere)
    (folder / "loop").symlink_to(".")
    (elsewhere / "back").symlink_to(folder)
    assert told(find_inputs([str(folder)]), folder) == {"near.json": "", "link/far.json": ""}
    (folder / "up").symlink_to("..")
    assert told(find_inputs([str(folder)]), folder)["up"] == "is a link to a folder above; not followed"


def test_the_same_folder_gives_the_same_order(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c/d.json", "c.json", "a/z.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = list(told(find_inputs([str(tmp_path)]), tmp_path))
    assert found == ["a/z.json", "a.json", "b.json", "c/d.json", "c.json"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/dev/zero", "is a device, no file"),
        ("pipe", "is a pipe, no file"),
        ("nowhere", "no such file or folder"),
        ("n" * 300, "cannot be read: File name too long"),
        ("file/below", "cannot be read: Not a directory"),
    ],
)
def test_what_is_named_itself_must_be_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("file").touch()
    with pytest.raises(UsageError, match=said):
        find_inputs([name])


def test_standard_input_must_be_open_and_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="given twice"):
        find_inputs(["-", "-"])
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        content(find_inputs(["-"])[0])


def test_only_beside_a_summary_of_ours_are_outputs_passed_over(tmp_path: Path) -> None:
    for name in ("traces.jsonl", "steps.jsonl", "receipt.json"):
        (tmp_path / name).touch()
    for foreign in ("", "no json", "[]", '{"exit_code": 0}', '{"versions": {}}'):
        (tmp_path / "summary.json").write_text(foreign)
        assert len(find_inputs([str(tmp_path)])) == 4
    (tmp_path / "summary.json").write_text('{"exit_code": 0, "versions": {}}')
    assert told(find_inputs([str(tmp_path)]), tmp_path) == {"traces.jsonl": ""}


def test_an_input_is_never_overwritten_under_whatever_name_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "steps.jsonl").touch()
    (tmp_path / "link.jsonl").symlink_to("steps.jsonl")
    (tmp_path / "hard.jsonl").hardlink_to(tmp_path / "steps.jsonl")
    for name in ("steps.jsonl", "link.jsonl", "hard.jsonl"):
        with pytest.raises(UsageError, match=r"steps\.jsonl: is an input and would be overwritten"):
            must_not_overwrite(tmp_path, find_inputs([str(tmp_path / name)]))
    must_not_overwrite(tmp_path / "out", find_inputs([str(tmp_path)]))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("file", "file: is no folder"),
        ("file/below/that", "file: is no folder"),
        ("n" * 300, "File name too long"),
        ("self/out", "Too many levels of symbolic links"),
    ],
)
def test_a_folder_that_cannot_be_written_is_told_before_and_when_writing(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "self").symlink_to("self")
    with pytest.raises(UsageError, match=said):
        must_be_writable(tmp_path / name)
    with pytest.raises(UsageError, match="cannot be written") as caught:
        write_bytes(tmp_path / name / "steps.jsonl", b"x")
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    must_be_writable(tmp_path / "new" / "below")
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="the system administrator may write everywhere")
def test_a_folder_without_permission_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="permission denied"):
        must_be_writable(tmp_path / "out")
    with pytest.raises(UsageError, match="Permission denied"):
        write_bytes(tmp_path / "steps.jsonl", b"x")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "steps.jsonl").mkdir()
    with pytest.raises(UsageError, match=r"steps\.jsonl: cannot be written: Is a directory"):
        write_bytes(tmp_path / "steps.jsonl", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["steps.jsonl"]


def test_a_file_is_written_under_the_longest_name_that_the_system_takes(tmp_path: Path) -> None:
    write_bytes(tmp_path / ("n" * 255), b"x")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"x"


def nested(levels: int, kind: str) -> Json:
    value: Json = "\ud800 end"
    for _ in range(levels):
        value = {"list": [value], "object": {"a": value}}[kind]
    return value


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("levels", [1, 199, 200, 201, 260, 5000, 100_000])
def test_a_value_nested_without_end_is_written_and_its_end_is_there(levels: int, kind: str) -> None:
    written = dump({"deep": nested(levels, kind), "beside": 2**70}, indent=True)
    assert json.loads(written)["beside"] == str(2**70)
    assert b"? end" in written


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_json_can_say_is_written_as_it_is_also_beside_what_it_cannot(value: Json) -> None:
    assert json.loads(dump(value)) == value
    assert json.loads(dump([value, "\ud800"])) == [value, "?"]
