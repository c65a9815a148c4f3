"""Which errors are worth another try: the error says so."""

from typing import Any

from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from evalagent.errors import Transient

RETRIES = 3
DELAYS_S = [2.0, 8.0, 30.0]


async def if_transient(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Prefect's retry condition: true for Transient errors and no others."""
    result = await state.aresult(raise_on_failure=False)  # type: ignore[misc]
    return isinstance(result, Transient)
