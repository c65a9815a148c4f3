"""Stage 5: spans to steps, edges and health."""

from prefect import get_run_logger, task

from evalagent.adapters import pipeline
from evalagent.adapters.runs import RunPlan
from tasks.retries import STAGE


@task(name="build-steps", task_run_name="steps of {plan.run_id}", **STAGE)
def build_steps(plan: RunPlan) -> dict[str, int]:
    """Every run as a DAG of steps."""
    counts = pipeline.build_steps(plan)
    get_run_logger().info("%(traces)d traces, %(steps)d steps, %(edges)d edges", counts)
    return counts
