"""Files in and out: what is to be evaluated, suites, and output files that appear whole or not at all."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from evalagent.errors import UsageError
from evalagent.suites import Case, Suite, parse_cases, parse_suite

STANDARD_INPUT = "-"
_OURS = {
    *(f"{table}.jsonl" for table in ("steps", "findings", "verdicts", "trials", "attributions", "outcomes")),
    *("receipt.json", "summary.json", "report.html", "report.md", "report.json", "junit.xml"),
}
_DUMP = orjson.OPT_NON_STR_KEYS


def text_of(path: Path) -> str:
    """A text file's content; UsageError if there is none or it is no UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError("no such file", file=str(path)) from error
    except IsADirectoryError as error:
        raise UsageError("is a folder; a file was expected", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"is not UTF-8 text (byte {error.start})", file=str(path)) from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", file=str(path)) from error


def bytes_of(path: Path) -> bytes:
    """A file's content; UsageError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", file=str(path)) from error


def load_suite(path: Path) -> tuple[Suite, tuple[Case, ...]]:
    """A suite and its cases, with every file they name checked to be there."""
    if path.is_dir():
        path = path / "suite.yaml"
    suite = parse_suite(text_of(path), str(path))
    folder = path.parent
    _must_be(folder / suite.agent.source, path, "agent.source", folder_too=True)
    for number, world in enumerate(suite.world):
        if world.seed:
            _must_be(folder / world.seed, path, f"world.{number}.seed", folder_too=world.kind == "files")
    for key in ("requirements", "prices"):
        named = getattr(suite, key)
        if named:
            _must_be(folder / named, path, key)
    if suite.rubrics:
        _must_be(folder / suite.rubrics, path, "rubrics", folder_too=True)
    _must_be(folder / suite.cases, path, "cases")
    cases = folder / suite.cases
    return suite, parse_cases(text_of(cases), str(cases))


def load_prices(suite: Suite, folder: Path) -> Mapping[str, Any] | None:
    """The suite's own price table; None where it names none and the built-in one holds."""
    if not suite.prices:
        return None
    path = folder / suite.prices
    try:
        table = yaml.safe_load(text_of(path))
    except yaml.YAMLError as error:
        raise UsageError(f"not valid YAML: {error}", file=str(path)) from error
    if not isinstance(table, dict):
        raise UsageError("expected model names with their prices", file=str(path), line=1)
    return table


def _must_be(path: Path, suite: Path, key: str, *, folder_too: bool = False) -> None:
    if not path.exists():
        raise UsageError(f"there is no {path}", file=str(suite), key=key)
    if path.is_dir() and not folder_too:
        raise UsageError(f"{path} is a folder; a file was expected", file=str(suite), key=key)


def input_files(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file under the given paths, folders in order of name; `-` is standard input.

    Files that an earlier evaluation wrote are passed over. UsageError for a path that does not exist.
    """
    for name in paths:
        if name == STANDARD_INPUT:
            yield "<stdin>", sys.stdin.buffer.read()
            continue
        path = Path(name)
        if not path.exists():
            raise UsageError("no such file or folder", file=name)
        files = sorted(p for p in path.rglob("*") if p.is_file() and not _output(p)) if path.is_dir() else [path]
        if not files:
            raise UsageError("the folder holds no file", file=name)
        for file in files:
            try:
                yield str(file), file.read_bytes()
            except OSError as error:
                raise UsageError(f"cannot be read: {error.strerror}", file=str(file)) from error


def _output(path: Path) -> bool:
    """Whether an earlier evaluation wrote it."""
    return path.name in _OURS and (path.parent / "receipt.json").exists()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file whole: under another name first, then renamed, so that a reader or a crash never sees a half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def write_json(path: Path, value: Any) -> None:
    write_bytes(path, dump(value, indent=True) + b"\n")


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON Lines, one object a line, in the order given."""
    write_bytes(path, b"".join(dump(row) + b"\n" for row in rows))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()] if path.exists() else []


def dump(value: Any, *, indent: bool = False) -> bytes:
    """JSON bytes; text that UTF-8 cannot hold (lone surrogates) is written with replacement marks."""
    options = _DUMP | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        return orjson.dumps(value, option=options)
    except TypeError:
        return orjson.dumps(_clean(value), option=options)


def _clean(value: Any) -> Any:
    """What orjson refuses, in a form that it takes: surrogates replaced, integers beyond 64 bits as text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, Mapping):
        return {str(_clean(k)): _clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(v) for v in value]
    return str(value)
