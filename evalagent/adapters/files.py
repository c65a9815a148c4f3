"""Files in and out: what is to be evaluated, suites, and output files that appear whole or not at all."""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from evalagent.errors import UsageError
from evalagent.suites import Case, Suite, parse_cases, parse_suite
from evalagent.traces.anyvalues import as_text
from evalagent.traces.masking import mask
from evalagent.traces.suite_prices import parse_prices
from evalagent.traces.suite_secrets import SuiteSecrets

STANDARD_INPUT = "-"
OUTPUTS = {
    *(f"{table}.jsonl" for table in ("steps", "findings", "verdicts", "trials", "attributions", "outcomes")),
    *("receipt.json", "summary.json", "report.html", "report.md", "report.json", "junit.xml"),
}
"""Names of the files that an evaluation writes."""
DEEPEST_WRITTEN = 200
"""Levels of nesting in an output file; the JSON writer takes 254."""
_DUMP = orjson.OPT_NON_STR_KEYS


def text_of(path: Path) -> str:
    """A text file's content; UsageError if there is none or it is no UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError("no such file", file=shown(path)) from error
    except IsADirectoryError as error:
        raise UsageError("is a folder; a file was expected", file=shown(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"is not UTF-8 text (byte {error.start})", file=shown(path)) from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", file=shown(path)) from error


def bytes_of(path: Path) -> bytes:
    """A file's content; UsageError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", file=shown(path)) from error


def suite_path(named: Path) -> Path:
    """The file of a suite that was named by it or by the folder that holds it."""
    return named / "suite.yaml" if named.is_dir() else named


def load_suite(path: Path) -> tuple[Suite, tuple[Case, ...]]:
    """A suite and its cases, with every file they name checked to be there."""
    path = suite_path(path)
    suite = parse_suite(text_of(path), shown(path))
    folder = path.parent
    for number, expression in enumerate(suite.secrets):
        try:
            SuiteSecrets([expression])
        except ValueError as error:
            raise UsageError(f"no regular expression: {error}", file=shown(path), key=f"secrets.{number}") from error
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
    return suite, parse_cases(text_of(cases), shown(cases))


def load_prices(suite: Suite, folder: Path) -> Mapping[str, Any] | None:
    """The suite's own price table; None where it names none and the public lists hold. UsageError for one that is none,
    with file, line and key."""
    if not suite.prices:
        return None
    path = folder / suite.prices
    return parse_prices(text_of(path), shown(path))


def _must_be(path: Path, suite: Path, key: str, *, folder_too: bool = False) -> None:
    if not path.exists():
        raise UsageError(f"there is no {shown(path)}", file=shown(suite), key=key)
    if path.is_dir() and not folder_too:
        raise UsageError(f"{shown(path)} is a folder; a file was expected", file=shown(suite), key=key)


NO_TRACES = frozenset(
    {".md", ".rst", ".html", ".css", ".js", ".ts", ".py", ".pyc", ".ipynb", ".sh", ".yaml", ".yml", ".toml", ".ini"}
    | {".cfg", ".lock", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf", ".sql", ".xml", ".duckdb", ".wal"}
)
"""Endings of files that a folder of traces may hold beside them."""
SCRATCH = ".traces-"
"""How the folder begins in which an evaluation lays out what is too large for memory."""
_NO_FOLDERS = frozenset({".evalagent", ".git", ".venv", "node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Input:
    """A file to be evaluated. `path` is None for standard input, and `begun` what was read of it already; `fault` says
    why it cannot be read, where that is known before; `named`: the user named this very file and not a folder that
    holds it."""

    name: str
    path: Path | None
    fault: str = ""
    named: bool = False
    begun: bytes = b""
    passed_over: bool = False
    """It lies in a folder that was named, and its name says that it is no trace."""


def find_inputs(paths: Sequence[str]) -> list[Input]:
    """Each file under the given paths, folders in order of name; `-` is standard input.

    Folders that links lead to are looked through too, each folder once. Files that an earlier evaluation wrote are
    passed over. What is no file (a pipe, a device, a link to nothing) is a fault in a folder and a UsageError where it
    is named itself, as is a path that does not exist.
    """
    found: list[Input] = []
    for name in paths:
        if name == STANDARD_INPUT:
            if any(one.path is None for one in found):
                raise UsageError("standard input is given twice", file=name)
            found.append(Input("<stdin>", None, named=True))
            continue
        path = Path(name)
        try:
            mode = path.stat().st_mode
        except FileNotFoundError as error:
            raise UsageError("no such file or folder", file=shown(path)) from error
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", file=shown(path)) from error
        if stat.S_ISDIR(mode):
            found += _under(path)
        elif stat.S_ISREG(mode):
            found.append(Input(name, path, named=True))
        else:
            raise UsageError(f"is {_kind(mode)}, no file; pipe it into `evalagent evaluate -`", file=shown(path))
    return found


def content(given: Input) -> bytes:
    """The bytes of an input; UsageError if it cannot be read."""
    if given.path is not None:
        return bytes_of(given.path)
    if sys.stdin is None:
        raise UsageError("standard input is closed", file=STANDARD_INPUT)
    try:
        return given.begun + sys.stdin.buffer.read()
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}", file=STANDARD_INPUT) from error


def _under(folder: Path) -> list[Input]:
    """The files of a folder and of all below it."""
    here = folder.resolve()
    above = {_identity(place.stat()) for place in here.parents}
    seen: set[tuple[int, int]] = set()
    found: dict[Path, str] = {}
    others: set[Path] = set()
    passed = 0
    todo = [folder]
    while todo:
        place = todo.pop()
        try:
            identity = _identity(place.stat())
            if identity in seen:
                continue
            if identity in above:
                found[place] = "is a link to a folder above; not followed"
                continue
            seen.add(identity)
            entries = sorted(place.iterdir(), reverse=True)
        except OSError as error:
            found[place] = f"cannot be read: {error.strerror}"
            continue
        own = wrote(place)
        for entry in entries:
            try:
                mode = entry.stat().st_mode
            except OSError as error:
                dangling = isinstance(error, FileNotFoundError) and entry.is_symlink()
                found[entry] = "is a link to nothing" if dangling else f"cannot be read: {error.strerror}"
                continue
            if stat.S_ISDIR(mode):
                if entry.name in _NO_FOLDERS or entry.name.startswith(SCRATCH):
                    found[entry] = ""
                    others.add(entry)
                else:
                    todo.append(entry)
            elif not stat.S_ISREG(mode):
                found[entry] = f"is {_kind(mode)}, no file"
            elif own and entry.name in OUTPUTS:
                passed += 1
            else:
                found[entry] = ""
                if entry.suffix.lower() in NO_TRACES:
                    others.add(entry)
    if not found.keys() - others:
        found[folder] = "the folder holds no file" + (" but those of an earlier evaluation" if passed else "")
    return [Input(str(path), path, found[path], passed_over=path in others) for path in sorted(found)]


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _kind(mode: int) -> str:
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def shown(path: Path | str) -> str:
    """A path as it may be shown: a secret in a name is masked."""
    return str(mask(str(path)))


def wrote(folder: Path) -> bool:
    """Whether an evaluation wrote its outputs here: summary.json comes last and says how it ended and what judged."""
    return {"exit_code", "versions"} <= read_object(folder / "summary.json").keys()


def read_object(path: Path) -> dict[str, Any]:
    """The object of a JSON file; an empty one where there is no such file, or something else in it."""
    try:
        told = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def must_not_overwrite(folder: Path, inputs: Iterable[Input]) -> None:
    """UsageError if writing outputs into the folder would overwrite an input."""
    targets: dict[tuple[int, int], Path] = {}
    for name in sorted(OUTPUTS):
        with contextlib.suppress(OSError):
            targets[_identity((folder / name).stat())] = folder / name
    for one in inputs:
        with contextlib.suppress(OSError):
            target = targets.get(_identity(one.path.stat())) if one.path and not one.fault else None
            if target:
                raise UsageError("is an input and would be overwritten; give another --out", file=shown(target))


def must_be_writable(folder: Path) -> None:
    """UsageError if files cannot be written into a folder that is there or is to be made; nothing is made yet."""
    for place in (folder, *folder.absolute().parents):
        try:
            mode = place.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise UsageError(f"cannot be written: {error.strerror}", file=shown(folder)) from error
        if not stat.S_ISDIR(mode):
            raise UsageError("is no folder; --out names the folder for the output files", file=shown(place))
        if not os.access(place, os.W_OK | os.X_OK):
            raise UsageError("cannot be written into: permission denied", file=shown(place))
        return


def write_bytes(path: Path, data: bytes) -> None:
    """As `write_parts`, in one piece."""
    write_parts(path, (data,))


def write_parts(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file whole: under another name first, then renamed, so that a reader or a crash never sees a half.

    UsageError with the system's reason where it cannot be written: no space, no permission, a file in a folder's place.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except FileExistsError as error:
        raise UsageError(f"cannot be written: {shown(path.parent)} is no folder", file=shown(path)) from error
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", file=shown(path)) from error


def write_json(path: Path, value: Any) -> None:
    write_bytes(path, dump(value, indent=True) + b"\n")


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON Lines, one object a line, in the order given."""
    write_parts(path, (dump(row) + b"\n" for row in rows))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()] if path.exists() else []


def dump(value: Any, *, indent: bool = False) -> bytes:
    """JSON bytes of any value. Text that UTF-8 cannot hold (lone surrogates) is written with replacement marks, what is
    nested deeper than `DEEPEST_WRITTEN` levels as text, and what JSON has no form for as its Python text."""
    options = _DUMP | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        return orjson.dumps(value, option=options)
    except TypeError:
        return orjson.dumps(_clean(value), option=options)


def _clean(value: Any) -> Any:
    """What orjson refuses, in a form that it takes."""
    whole: list[Any] = [None]
    todo: list[tuple[Any, Any, Any, int]] = [(value, whole, 0, 0)]
    while todo:
        old, holder, place, depth = todo.pop()
        if not isinstance(old, Mapping | list | tuple):
            holder[place] = _plain(old)
        elif depth >= DEEPEST_WRITTEN:
            holder[place] = _plain(as_text(old))
        elif isinstance(old, Mapping):
            named = {str(_plain(key)): inner for key, inner in old.items()}
            holder[place] = new = dict.fromkeys(named)
            todo.extend((inner, new, key, depth + 1) for key, inner in named.items())
        else:
            holder[place] = row = [None] * len(old)
            todo.extend((inner, row, number, depth + 1) for number, inner in enumerate(old))
    return whole[0]


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    return _plain(str(value))
