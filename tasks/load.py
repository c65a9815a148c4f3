"""Stage 12: the run's rows into the warehouse, and the run let go."""

from prefect import get_run_logger, task

from evalagent.adapters import pipeline, runs
from evalagent.adapters.runs import RunPlan
from tasks.retries import STAGE


@task(name="load", task_run_name="load {plan.run_id}", **STAGE)
def load(plan: RunPlan) -> int:
    """How many rows were loaded. StoreBusy is tried again."""
    return sum(pipeline.load(plan).values())


def loaded(plan: RunPlan) -> str:
    """Load the run and close it, whatever became of the loading: the folder is the truth, and the warehouse can be made
    anew from it. Why it was not loaded; empty if it was."""
    state = load(plan, return_state=True)
    error = state.result(raise_on_failure=False)
    runs.close_run(plan, runs.read_run(plan.path).get("exit_code", 70))
    if not isinstance(error, BaseException):
        return ""
    reason = f"the run is not in the warehouse ({error}); `evalagent store rebuild` puts it there"
    get_run_logger().warning(reason)
    return reason
