"""`evalagent run`: the checkout's flow, started in this process.

Prefect is imported here and nowhere else in the library, when a run starts: importing it takes seconds.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalagent.adapters import runs, settings
from evalagent.adapters.files import load_suite, suite_path
from evalagent.adapters.suite_checks import check_suite
from evalagent.errors import EvalAgentError, UsageError
from evalagent.suites import Suite

DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # The first start of an ephemeral server takes 17 to 58 s on two cores; Prefect gives up after 20.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    # Six times cheaper per task (docs/prefect.md).
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "0.5",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
}


def run(
    suite: Path, *, trials: int | None, judge: str, sandbox: str, only: tuple[str, ...], verbose: bool = False
) -> tuple[Path, str]:
    """Run `evalagent/full` of this checkout; the run's folder, and why it is not in the warehouse (empty if it is).
    Errors of the suite are raised before Prefect starts."""
    suite = suite_path(suite)
    parsed, cases = load_suite(suite)
    unknown = sorted(set(only) - {case.id for case in cases})
    if unknown:
        raise UsageError(f"no case {', '.join(unknown)}", file=str(suite), key="--only")
    check_suite(parsed, cases, suite)
    entrypoint = checkout() / "flows" / "full.py"
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    if not verbose:
        os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")  # what fails is told by us, without a traceback
    configured = settings.load()
    if sandbox == "process":
        warm(parsed, suite.parent)
    total = len(only or cases) * (trials or parsed.trials)
    prefect = os.environ.get("PREFECT_API_URL") or "a server of its own, which takes up to a minute to start"
    print(f"{parsed.name}: {total} trials, sandbox {sandbox}; Prefect: {prefect}", file=sys.stderr, flush=True)
    with progress(suite, configured.home, total, verbose):
        from prefect.flows import load_flow_from_entrypoint

        flow: Any = load_flow_from_entrypoint(f"{entrypoint}:evalagent", use_placeholder_flow=False)
        summary = flow(str(suite), trials, judge, sandbox, list(only) or None)
    if not isinstance(summary, dict) or "folder" not in summary:
        raise EvalAgentError("the flow gave no summary")
    return Path(summary["folder"]), str(summary["not_loaded"])


def checkout() -> Path:
    """The checkout whose flows are run; UsageError where the library is installed without them."""
    root = Path(__file__).resolve().parents[2]
    named = os.environ.get("EVALAGENT_CHECKOUT")
    root = Path(named) if named else root
    if not (root / "flows" / "full.py").exists():
        raise UsageError(
            f"{root} has no flows/: `run` needs a checkout of EvalAgent (install it with `make setup`, or name it in "
            "EVALAGENT_CHECKOUT); `evaluate` works without"
        )
    return root


def warm(suite: Suite, folder: Path) -> None:
    """Let the agent's imports load, in a process of their own, while the Prefect server starts."""
    from evalagent.adapters import process_sandbox

    with contextlib.suppress(EvalAgentError):  # what is wrong will be said when the first trial starts
        process_sandbox.warm(suite.agent, folder, os.environ)


@contextmanager
def progress(suite: Path, home: Path | None, total: int, verbose: bool) -> Iterator[None]:
    """A line on a terminal that says what is going on; silence elsewhere."""
    if not sys.stderr.isatty() or verbose:
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    where = runs.home_for(suite, home) / "runs"
    before = {p.parent for p in where.glob("*/run.json")}
    stop = threading.Event()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Prefect (up to a minute the first time)", total=total)

        def watch() -> None:
            while not stop.wait(0.5):
                new = [p.parent for p in where.glob("*/run.json") if p.parent not in before or _unfinished(p.parent)]
                if new:
                    done = len(list(max(new).glob("trials/*/*/trial.json")))
                    bar.update(
                        task, completed=done, description="running trials" if done < total else "judging, reporting"
                    )

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join(timeout=2)


def _unfinished(folder: Path) -> bool:
    return not runs.read_run(folder).get("finished")
