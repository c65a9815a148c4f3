"""Stage 6: what each trial did to the world. Before the checks, which excuse slips that the end state made good."""

from prefect import get_run_logger, task

from evalagent.adapters import pipeline
from evalagent.adapters.runs import RunPlan
from tasks.retries import STAGE


@task(name="outcome", task_run_name="outcome of {plan.run_id}", **STAGE)
def outcome(plan: RunPlan) -> dict[str, int]:
    """All that should have changed, and nothing else; how many trials of each verdict."""
    graded = [o.verdict for o in pipeline.grade(plan)]
    counts = {word: graded.count(word) for word in ("pass", "fail", "not_judged")}
    get_run_logger().info("end states: %(pass)d right, %(fail)d wrong, %(not_judged)d not judged", counts)
    return counts
