"""How an agent is started: `command` or `callable` as an argument vector, its source and its environment."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evalagent.authoring import instrumenting
from evalagent.errors import UsageError
from evalagent.suites import Agent

HOOK = Path(__file__).parent / "hook"
LAUNCHER = Path(__file__).parent / "launcher"
PYTHONS = ("python", "python3")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a Python process is to run: a module, a file or a callable, with its further arguments."""

    how: Literal["module", "file", "callable"]
    target: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """An agent ready to be started."""

    argv: tuple[str, ...]
    python_path: tuple[str, ...]
    entry: Entry | None
    """None: not a Python program in a form that a warm process can run."""


def launch(agent: Agent, suite_dir: Path) -> Launch:
    """How to start an agent as a process; UsageError for one that a process cannot be.

    `python` (or `python3`) means the interpreter that runs EvalAgent. A script or program with a relative path is
    looked for in the agent's source, then beside the suite, since the working directory holds only the world.
    """
    if agent.callable is None and agent.command is None:
        kind, takes = (
            ("url", "nothing here: give a `command` that calls it") if agent.url else ("image", "--sandbox docker")
        )
        raise UsageError(f"the process sandbox cannot run this; it takes {takes}", key=f"agent.{kind}")
    source = source_dir(agent, suite_dir)
    hook = (str(HOOK),) if instrumenting.needs_hook(agent) else ()
    python_path = (*hook, str(source))
    if agent.callable is not None:
        if agent.callable.count(":") != 1:
            raise UsageError(f"expected `package.module:function`, got {agent.callable!r}", key="agent.callable")
        argv = (sys.executable, str(LAUNCHER / "evalagent_call.py"), agent.callable)
        return Launch(argv, python_path, Entry("callable", agent.callable))
    program, *arguments = agent.command or [""]
    if program in PYTHONS:
        entry, arguments = _python_entry(arguments, source, suite_dir)
        return Launch((sys.executable, *arguments), python_path, entry)
    return Launch((_program(program, source, suite_dir), *arguments), python_path, None)


def source_dir(agent: Agent, suite_dir: Path) -> Path:
    """The folder that goes on the agent's path: its source, or the folder of a source that is one file."""
    source = (suite_dir / agent.source).resolve()
    if not source.exists():
        raise UsageError(f"{agent.source} does not exist beside the suite", key="agent.source")
    return source.parent if source.is_file() else source


def environment(
    agent: Agent, ready: Launch, observed: Mapping[str, str], available: Mapping[str, str], home: Path, scratch: Path
) -> dict[str, str]:
    """All that the agent's process finds in its environment: little, so that trials do not depend on who runs them.

    Of `available` (the caller's environment) only PATH, LANG and the names in the suite's `env` come through.
    """
    passed = {name: available[name] for name in agent.env if name in available}
    python_path = [*ready.python_path, *filter(None, passed.pop("PYTHONPATH", "").split(":"))]
    folder = str(Path(sys.executable).parent)
    return {
        "PATH": f"{folder}:{available.get('PATH') or '/usr/local/bin:/usr/bin:/bin'}",
        "LANG": available.get("LANG", "C.UTF-8"),
        "HOME": str(home),
        "TMPDIR": str(scratch),
        "PYTHONPATH": ":".join(python_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        **passed,
        **observed,
    }


def _python_entry(arguments: list[str], source: Path, suite_dir: Path) -> tuple[Entry | None, list[str]]:
    if len(arguments) >= 2 and arguments[0] == "-m":
        return Entry("module", arguments[1], tuple(arguments[2:])), arguments
    if arguments and not arguments[0].startswith("-"):
        script = _beside(arguments[0], source, suite_dir)
        if script is None:
            raise UsageError(
                f"{arguments[0]} is neither in the agent's source nor beside the suite", key="agent.command"
            )
        return Entry("file", str(script), tuple(arguments[1:])), [str(script), *arguments[1:]]
    return None, arguments


def _program(program: str, source: Path, suite_dir: Path) -> str:
    found = _beside(program, source, suite_dir) if "/" in program else shutil.which(program)
    if found is None:
        raise UsageError(f"{program} is not on PATH, in the agent's source or beside the suite", key="agent.command")
    return str(found)


def _beside(path: str, source: Path, suite_dir: Path) -> Path | None:
    return next((folder / path for folder in (source, suite_dir.resolve()) if (folder / path).is_file()), None)
