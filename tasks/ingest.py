"""Stage 4: spans in, with a receipt."""

from prefect import get_run_logger, task

from evalagent.adapters import pipeline
from evalagent.adapters.runs import RunPlan
from tasks.retries import STAGE


@task(name="ingest", task_run_name="ingest {plan.run_id}", **STAGE)
def ingest(plan: RunPlan) -> dict[str, int]:
    """Read every span that the run left, once; the receipt's numbers."""
    counts = pipeline.ingest(plan)
    get_run_logger().info("%(spans)d spans in, %(rejected)d lines rejected", counts)
    return counts
