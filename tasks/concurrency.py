"""How many tasks of a flow run at once."""

from typing import Any

from prefect.task_runners import ThreadPoolTaskRunner

from evalagent.adapters import settings


def task_runner() -> Any:
    """Threads, as many as trials or judge calls may be under way: a task that only waits for its turn would look slow
    in the UI. Any: Prefect's own type of the flow's parameter does not take its own runner."""
    said = settings.load()
    return ThreadPoolTaskRunner(max_workers=max(said.parallel_trials, said.judge_concurrency))
