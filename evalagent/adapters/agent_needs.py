"""What an agent needs of its Python: the distributions that its source imports, those that its requirements name, those
that instrument it, and everything that these require."""

import ast
import importlib.metadata
import importlib.util
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evalagent.errors import UsageError

INSTRUMENTING = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
INSTRUMENTORS = ("opentelemetry-instrumentation", "openinference-instrumentation")
"""Distributions whose name starts so come along: the hook switches them on."""

NOT_IN_SOURCE = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".evalagent", ".env"})
"""Of an agent's folder: neither history, environments, runs nor secrets."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What an agent needs of its Python."""

    present: tuple[str, ...]
    """Installed distributions to copy, with everything they require; normalised names, sorted."""
    absent: tuple[str, ...]
    """Requirement lines that nothing installed here satisfies: for pip."""


def needs(source: Path) -> Needs:
    """What the Python files and the requirements of an agent's folder ask for."""
    installed = {_normal(d.metadata["Name"]): d for d in importlib.metadata.distributions() if d.metadata["Name"]}
    roots: dict[str, frozenset[str]] = {name: frozenset() for name in INSTRUMENTING if name in installed}
    roots |= {name: frozenset() for name in installed if name.startswith(INSTRUMENTORS)}
    providers = importlib.metadata.packages_distributions()
    for module in imported(source):
        roots |= {_normal(name): frozenset[str]() for name in providers.get(module, ())}
    absent = []
    for line in requirement_lines(source):
        name, extras, fits = _requirement(line, installed)
        if fits:
            roots[name] = roots.get(name, frozenset()) | extras
        elif fits is not None:
            absent.append(line)
    return Needs(_closure(roots, installed), tuple(sorted(absent)))


def imported(source: Path) -> frozenset[str]:
    """The top-level modules that the Python files of a folder import, by any import statement or literal
    `import_module`; the folder's own excluded. A file that is not Python is passed over."""
    found: set[str] = set()
    own = {p.stem for p in source.iterdir()} if source.is_dir() else set()
    for file in source_files(source):
        if file.suffix != ".py":
            continue
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__") and node.args:
                name = node.args[0]
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found.add(name.value.partition(".")[0])
    return frozenset(found - own - sys.stdlib_module_names)


def requirement_lines(source: Path) -> tuple[str, ...]:
    """requirements.txt and the dependencies of pyproject.toml in an agent's folder. Options of pip are passed over."""
    lines: list[str] = []
    file = source / "requirements.txt"
    if file.is_file():
        lines += [re.split(r"\s#", line, maxsplit=1)[0].strip() for line in file.read_text("utf-8").splitlines()]
    project = source / "pyproject.toml"
    if project.is_file():
        try:
            declared = tomllib.loads(project.read_text("utf-8")).get("project", {}).get("dependencies", [])
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError) as error:
            raise UsageError(f"not valid TOML: {error}", file=str(project)) from error
        lines += [str(line) for line in declared]
    return tuple(line for line in lines if line and not line.startswith(("#", "-")))


def source_files(source: Path) -> Iterator[Path]:
    """The files of an agent's folder that go into its image, sorted; never one that a link takes from elsewhere."""
    home = source.resolve()
    for folder, folders, names in os.walk(home):
        folders[:] = sorted(f for f in folders if f not in NOT_IN_SOURCE and not (Path(folder) / f).is_symlink())
        for name in sorted(names):
            file = Path(folder) / name
            if name in NOT_IN_SOURCE or name.startswith(".env.") or name.endswith((".pyc", ".pyo")):
                continue
            if file.resolve().is_relative_to(home) and file.is_file():
                yield file


def provided(module: str) -> bool:
    """Whether this machine's environment could import a module, so that an image lacks it for our want of care."""
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirement(
    line: str, installed: Mapping[str, importlib.metadata.Distribution]
) -> tuple[str, frozenset[str], bool | None]:
    """Name, extras and whether it is installed as asked for (None: not for this machine)."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        asked = Requirement(line)
    except InvalidRequirement:
        return line, frozenset(), False
    if asked.marker and not asked.marker.evaluate({"extra": ""}):
        return _normal(asked.name), frozenset(), None
    found = installed.get(_normal(asked.name))
    fits = found is not None and not asked.url and asked.specifier.contains(found.version, prereleases=True)
    return _normal(asked.name), frozenset(asked.extras), fits


def _closure(
    roots: Mapping[str, frozenset[str]], installed: Mapping[str, importlib.metadata.Distribution]
) -> tuple[str, ...]:
    """The roots and everything installed that they require, extras as asked for."""
    from packaging.requirements import InvalidRequirement, Requirement

    reached: dict[str, frozenset[str]] = {}
    waiting = list(roots.items())
    while waiting:
        name, extras = waiting.pop()
        if name not in installed or (name in reached and extras <= reached[name]):
            continue
        reached[name] = reached.get(name, frozenset()) | extras
        for line in installed[name].requires or ():
            try:
                asked = Requirement(line)
            except InvalidRequirement:
                continue
            if asked.marker is None or any(asked.marker.evaluate({"extra": e}) for e in ("", *sorted(reached[name]))):
                waiting.append((_normal(asked.name), frozenset(asked.extras)))
    return tuple(sorted(reached))
