"""Stage 7: all rules over all steps, in one task: a rule takes microseconds, a task milliseconds."""

from prefect import get_run_logger, task

from evalagent.adapters import pipeline
from evalagent.adapters.runs import RunPlan
from tasks.retries import STAGE


@task(name="check", task_run_name="check {plan.run_id}", **STAGE)
def check(plan: RunPlan) -> dict[str, int]:
    """Findings by severity."""
    counts = pipeline.check(plan)
    get_run_logger().info("findings: %(error)d errors, %(warning)d warnings, %(info)d notes", counts)
    return counts
