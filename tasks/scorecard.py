"""Stage 10: the numbers of the run."""

from typing import Any

from prefect import task

from evalagent.adapters import pipeline
from evalagent.adapters.runs import RunPlan
from tasks.retries import STAGE


@task(name="scorecard", task_run_name="scorecard of {plan.run_id}", **STAGE)
def scorecard(plan: RunPlan) -> dict[str, Any]:
    """What summary.json holds, and the run's folder."""
    return pipeline.scorecard(plan)
