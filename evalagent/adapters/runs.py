"""Run folders: what a run has done so far, and what is still missing.

A run folder is the truth about a run. Each trial's record is written once, whole, when the trial has ended and its
spans are on disk; everything after collecting can be made again from the folder. So a run that was killed is resumed by
running it again: trials with a record are kept, the others are run from a fresh world under a new attempt, and spans of
attempts without a record do not count.
"""

import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout

from evalagent import __version__
from evalagent.adapters.files import bytes_of, dump, load_suite, suite_path, write_bytes, write_json
from evalagent.adapters.suite_checks import check_suite
from evalagent.errors import UsageError
from evalagent.model import TrialRun
from evalagent.outcomes.snapshots import Snapshot
from evalagent.suites import Case, Suite

_NEVER_PART_OF_THE_AGENT = {"__pycache__", ".git", ".venv", "node_modules", ".evalagent"}


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything that fixes what a run does, small enough to hand to every task."""

    run_id: str
    folder: str
    suite_file: str
    trials: int
    only: tuple[str, ...]
    judge: str
    sandbox: str
    resumed: bool = False

    @property
    def path(self) -> Path:
        return Path(self.folder)


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    case: Case
    trial: int
    """Counts from 0, as in EVALAGENT_TRIAL."""

    @property
    def label(self) -> str:
        return f"{self.case.id} #{self.trial}"


def home_for(suite_file: Path, configured: Path | None) -> Path:
    """Where runs live: EVALAGENT_HOME, else `.evalagent` beside the suite."""
    return configured.resolve() if configured else suite_file.resolve().parent / ".evalagent"


def fingerprint(suite_file: Path, suite: Suite, options: Mapping[str, Any]) -> str:
    """A hash of all that could make a trial come out otherwise: suite, cases, agent's source, world seeds, options."""
    folder = suite_file.parent
    told = hashlib.sha256(dump({"suite": suite.model_dump(), "options": dict(options), "program": __version__}))
    told.update(bytes_of(folder / suite.cases))
    for named in sorted({suite.agent.source, *(w.seed for w in suite.world if w.seed)}):
        root = folder / named
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            inside = path.relative_to(root)
            if path.is_file() and not _NEVER_PART_OF_THE_AGENT & set(inside.parts) and path.suffix != ".pyc":
                told.update(f"{named}\0".encode() + os.fsencode(inside) + b"\0" + _digest(path))
    return told.hexdigest()


def _digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", file=str(path)) from error


class RunLock:
    """Held while a run is being made, so that a second start of the same suite makes a run of its own.

    The lock is the operating system's: it is gone with the process, however that died.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = FileLock(folder / ".lock", thread_local=False)

    def take(self) -> bool:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def release(self) -> None:
        self._lock.release()


_held: dict[str, RunLock] = {}
"""Locks of runs that this process is making."""


def open_run(
    suite_file: Path, *, home: Path, trials: int | None, only: Sequence[str], judge: str, sandbox: str
) -> RunPlan:
    """A new run of a suite, or the unfinished one with the same fingerprint that nobody is making.

    UsageError if the suite or its cases are wrong, or `only` names a case that does not exist.
    """
    suite_file = suite_path(suite_file)
    suite, cases = load_suite(suite_file)
    check_suite(suite, cases, suite_file)
    unknown = sorted(set(only) - {case.id for case in cases})
    if unknown:
        known = ", ".join(case.id for case in cases)
        raise UsageError(f"no case {', '.join(unknown)}; the suite has {known}", file=str(suite_file), key="only")
    count = trials or suite.trials
    options = {"trials": count, "only": sorted(only), "judge": judge, "sandbox": sandbox}
    mark = fingerprint(suite_file, suite, options)
    runs = home / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    for folder in sorted((p for p in runs.iterdir() if (p / "run.json").exists()), reverse=True):
        told = read_run(folder)
        if told.get("fingerprint") == mark and not told.get("finished"):
            lock = RunLock(folder)
            if lock.take():
                _held[str(folder)] = lock
                drop_torn_lines(folder)
                return RunPlan(
                    folder.name, str(folder), str(suite_file.resolve()), count, tuple(only), judge, sandbox, True
                )
    now = datetime.now(UTC)
    run_id = f"{suite.name}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    folder = runs / run_id
    folder.mkdir()
    lock = RunLock(folder)
    lock.take()
    _held[str(folder)] = lock
    write_bytes(folder / "suite.yaml", suite_file.read_bytes())
    write_bytes(folder / "cases.jsonl", (suite_file.parent / suite.cases).read_bytes())
    started = now.isoformat(timespec="seconds")
    told = {"run_id": run_id, "suite": suite.name, "fingerprint": mark, "started": started, "finished": None}
    write_json(folder / "run.json", told | options | {"suite_file": str(suite_file.resolve()), "program": __version__})
    return RunPlan(run_id, str(folder), str(suite_file.resolve()), count, tuple(only), judge, sandbox)


def drop_torn_lines(folder: Path) -> None:
    """Cut off the half line that a kill may have left at the end of a file. Whose spans it held has no record: a trial
    gets one only after its spans are on disk."""
    for path in (folder / "otlp").rglob("*.jsonl"):
        with path.open("r+b") as file:
            data = file.read()
            if data and not data.endswith(b"\n"):
                file.truncate(data.rfind(b"\n") + 1)


def mark_ended(plan: RunPlan, exit_code: int) -> None:
    """Remember when the evaluation ended and how. It counts as finished when its rows are in the warehouse too, so that
    one killed in between is gone on with."""
    told = read_run(plan.path)
    ended = told.get("ended") or datetime.now(UTC).isoformat(timespec="seconds")
    write_json(plan.path / "run.json", told | {"ended": ended, "exit_code": exit_code})


def close_run(plan: RunPlan, exit_code: int) -> None:
    """Mark a run as finished and let go of it."""
    told = read_run(plan.path) | {"finished": datetime.now(UTC).isoformat(timespec="seconds"), "exit_code": exit_code}
    write_json(plan.path / "run.json", told)
    release_run(plan)


def mark_gate(folder: Path, passed: bool) -> None:
    """Remember of a finished run whether it was no worse than the one before it: only such a run is a baseline."""
    write_json(folder / "run.json", read_run(folder) | {"passed_gate": passed})


def release_run(plan: RunPlan) -> None:
    lock = _held.pop(plan.folder, None)
    if lock:
        lock.release()


def read_run(folder: Path) -> dict[str, Any]:
    told = orjson.loads((folder / "run.json").read_bytes())
    return told if isinstance(told, dict) else {}


def find_run(named: str, home: Path) -> Path:
    """A finished or unfinished run by id, folder, or `latest`; UsageError names those that exist."""
    as_path = Path(named)
    if (as_path / "summary.json").exists() or (as_path / "run.json").exists():
        return as_path
    runs = home / "runs"
    known = sorted(p.name for p in runs.iterdir() if (p / "run.json").exists()) if runs.is_dir() else []
    if named == "latest" and known:
        return runs / max(known, key=lambda name: (read_run(runs / name).get("started") or "", name))
    if named in known:
        return runs / named
    there = ", ".join(known[-5:]) if known else "none; runs stand in .evalagent beside their suite, name it with --home"
    raise UsageError(f"no run {named!r} under {runs}; there are {there}", key="run")


def plan_of(folder: Path) -> RunPlan:
    """The plan that a run folder was made by."""
    told = read_run(folder)
    return RunPlan(
        told["run_id"],
        str(folder),
        told["suite_file"],
        told["trials"],
        tuple(told["only"]),
        told["judge"],
        told["sandbox"],
        resumed=True,
    )


def planned_trials(plan: RunPlan) -> tuple[PlannedTrial, ...]:
    """Every trial of the run in a fixed order, trial by trial over all cases."""
    _, cases = load_suite(Path(plan.suite_file))
    chosen = [case for case in cases if not plan.only or case.id in plan.only]
    return tuple(PlannedTrial(case, n) for n in range(plan.trials) for case in chosen)


def trial_folder(plan: RunPlan, case_id: str, trial: int) -> Path:
    return plan.path / "trials" / case_id / str(trial)


def save_trial(plan: RunPlan, run: TrialRun, before: Snapshot | None, after: Snapshot | None, damage: str) -> None:
    """Write a trial's snapshots and then its record; without the record the trial has not been."""
    folder = trial_folder(plan, run.case_id, run.trial)
    write_json(folder / "before.json", before)
    write_json(folder / "after.json", after)
    write_json(folder / "trial.json", {**asdict(run), "world_damage": damage})


@dataclass(frozen=True, slots=True)
class CollectedTrial:
    run: TrialRun
    before: Snapshot | None
    after: Snapshot | None
    damage: str
    """Why the world could not be read after the trial; empty if it could."""


def load_trial(plan: RunPlan, case_id: str, trial: int) -> CollectedTrial | None:
    """A trial's record, or None if it has not been completed."""
    folder = trial_folder(plan, case_id, trial)
    try:
        told = orjson.loads((folder / "trial.json").read_bytes())
        before = orjson.loads((folder / "before.json").read_bytes())
        after = orjson.loads((folder / "after.json").read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None
    damage = told.pop("world_damage", "")
    return CollectedTrial(TrialRun(**told), before, after, damage)


def collected(plan: RunPlan) -> Iterator[tuple[PlannedTrial, CollectedTrial | None]]:
    for planned in planned_trials(plan):
        yield planned, load_trial(plan, planned.case.id, planned.trial)


def new_attempt() -> str:
    return secrets.token_hex(8)


def otlp_folder(plan: RunPlan) -> Path:
    """A folder of its own for what this process receives, so that two processes never append to one file."""
    folder = plan.path / "otlp" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def otlp_files(plan: RunPlan) -> list[Path]:
    """What was received; a collector leaves an empty file for a signal that never came."""
    return sorted(p for p in (plan.path / "otlp").rglob("*.jsonl") if p.stat().st_size)
