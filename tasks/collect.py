"""Stage 3: run the agent, one task per trial, and gather its spans and its world."""

from collections.abc import Iterator
from contextlib import contextmanager

from prefect import get_run_logger, task

from evalagent.adapters import settings
from evalagent.adapters.collection import Collection
from evalagent.adapters.runs import PlannedTrial, RunPlan
from tasks.retries import STAGE

_open: dict[str, Collection] = {}
"""The services of runs that are being collected by this process. They hold sockets and containers, so that they cannot
be handed to tasks, which take values only."""


@contextmanager
def collection(plan: RunPlan) -> Iterator[None]:
    """Somewhere for spans to go, for as long as trials run."""
    with Collection(plan, settings.load()) as opened:
        _open[plan.run_id] = opened
        if opened.note:
            get_run_logger().info(opened.note)
        try:
            yield
        finally:
            del _open[plan.run_id]
    if opened.gaps:
        get_run_logger().warning("; ".join(opened.gaps))


@task(name="collect", task_run_name="collect {planned.label}", **STAGE)
def collect(plan: RunPlan, planned: PlannedTrial) -> str:
    """One trial from a fresh world, if it has no record yet; how it ended."""
    return _open[plan.run_id].collect(planned)
