"""Collecting: each trial from a fresh world, with somewhere for its spans to go.

with Collection(plan, settings) as collection:
    collection.collect(planned)          # from many threads; a trial with a record is not run again
"""

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from evalagent.adapters import docker_daemon, folders, process_sandbox, runs, worlds
from evalagent.adapters.collector import Collector
from evalagent.adapters.files import load_suite
from evalagent.adapters.otlp_lines import mask_lines
from evalagent.adapters.receiver import Receiver
from evalagent.adapters.runs import PlannedTrial, RunPlan
from evalagent.adapters.settings import Settings
from evalagent.errors import SandboxUnavailable, UsageError
from evalagent.model import TrialRun
from evalagent.outcomes.snapshots import Snapshot
from evalagent.traces.masking import mask
from evalagent.trials import resource_of

RunTrial = Callable[..., TrialRun]


class Collection:
    """The services that trials need, from before the first to after the last."""

    def __init__(self, plan: RunPlan, settings: Settings) -> None:
        self.plan = plan
        self.suite, _ = load_suite(Path(plan.suite_file))
        self.note = ""
        """What a reader of the log should know of how spans are collected; empty if all is as asked."""
        self._settings = settings
        self._places = threading.Semaphore(settings.parallel_trials)
        self._stack = ExitStack()
        self._endpoint: Callable[[], str] = str
        self._gaps: Callable[[], tuple[str, ...]] = tuple

    def __enter__(self) -> Self:
        if all(done is not None for _, done in runs.collected(self.plan)):
            return self  # resumed after the last trial: nothing to start
        for left in runs.otlp_files(self.plan):  # by a process that was killed before it could
            mask_lines(left, self.suite.secrets)
        try:
            self._endpoint = self._service(runs.otlp_folder(self.plan))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def gaps(self) -> tuple[str, ...]:
        """When the collector was found dead, and what may be missing since."""
        return self._gaps()

    def _service(self, folder: Path) -> Callable[[], str]:
        """Where spans go: the collector in its container where that is asked for or ready, else the receiver in this
        process. Both write the same files."""
        if self.plan.sandbox == "docker" or self._settings.collector == "docker":
            return self._docker(folder)
        if self._settings.collector == "auto" and docker_daemon.socket_there():
            try:
                return self._docker(folder)
            except (SandboxUnavailable, UsageError) as error:
                self.note = f"spans go to the embedded receiver, since the collector cannot be started: {error}"
        receiver = self._stack.enter_context(Receiver(folder, patterns=self.suite.secrets))
        return lambda: receiver.endpoint

    def _docker(self, folder: Path) -> Callable[[], str]:
        collector = self._stack.enter_context(Collector(folder, self.plan.run_id, patterns=self.suite.secrets))
        self._gaps = lambda: collector.gaps
        if self.plan.sandbox == "docker":
            return lambda: collector.endpoint
        return lambda: collector.host_endpoint  # another port after a restart

    def collect(self, planned: PlannedTrial) -> str:
        """Run one trial if it has no record; how it ended. Transient if the sandbox failed: that is no sample."""
        case, number = planned.case, planned.trial
        done = runs.load_trial(self.plan, case.id, number)
        if done is not None:
            return done.run.exit
        with self._places, folders.scratch("evalagent-trial-") as scratch:
            work = scratch / "work"
            work.mkdir()
            run, before, after, damage = self._run(planned, work)
        if run.exit == "infrastructure":
            raise SandboxUnavailable(f"{planned.label}: {run.reason}")
        folder = runs.trial_folder(self.plan, case.id, number)
        folder.mkdir(parents=True, exist_ok=True)
        secrets = self.suite.secrets
        run = replace(run, reply=mask(run.reply, secrets), stderr_tail=mask(run.stderr_tail, secrets))
        runs.save_trial(self.plan, run, mask(before, secrets), mask(after, secrets), damage)
        return run.exit

    def _run(self, planned: PlannedTrial, work: Path) -> tuple[TrialRun, Snapshot | None, Snapshot | None, str]:
        suite, case, number = self.suite, planned.case, planned.trial
        suite_dir = Path(self.plan.suite_file).parent
        worlds.prepare(suite.world, suite_dir, work)
        before = worlds.snapshot(suite.world, work)
        attempt = runs.new_attempt()
        run_trial = self._sandbox()
        run = run_trial(
            suite.agent,
            case,
            number,
            suite_dir=suite_dir,
            work_dir=work,
            endpoint=self._endpoint(),
            resource=resource_of(self.plan.run_id, case.id, number, attempt),
            budgets=suite.budgets,
            env=os.environ,
            attempt=attempt,
        )
        try:
            return run, before, worlds.snapshot(suite.world, work), ""
        except worlds.WorldDamaged as error:
            return run, before, None, str(error)

    def _sandbox(self) -> RunTrial:
        if self.plan.sandbox != "docker":
            return process_sandbox.run_trial
        from evalagent.adapters import docker_sandbox

        return docker_sandbox.run_trial
