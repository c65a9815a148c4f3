"""How every stage's task is made: retried on Transient errors and no others, without Prefect's own result cache."""

from typing import Any

from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from evalagent.errors import Transient

DELAYS_S = (2.0, 8.0, 30.0)


async def if_transient(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Prefect's retry condition: the error says whether another try may help."""
    try:
        await state.aresult()
    except Transient:
        return True
    except Exception:  # noqa: BLE001 - Terminal or a bug: not retried
        return False
    return False


STAGE: dict[str, Any] = {
    "retries": len(DELAYS_S),
    "retry_delay_seconds": list(DELAYS_S),
    "retry_condition_fn": if_transient,
    "cache_policy": NO_CACHE,  # a hit costs as much as a stage's bookkeeping; judge replies have a cache of their own
    "persist_result": False,
}
