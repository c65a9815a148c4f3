"""Stage 9: from failed steps back to the step that caused them."""

from prefect import get_run_logger, task

from evalagent.adapters import pipeline
from evalagent.adapters.runs import RunPlan
from tasks.retries import STAGE


@task(name="attribute", task_run_name="attribute {plan.run_id}", **STAGE)
def attribute(plan: RunPlan) -> int:
    """Root causes of every failed run; how many runs have one."""
    found = sum(bool(a.root_causes) for a in pipeline.attribute(plan))
    get_run_logger().info("%d runs with a root cause", found)
    return found
