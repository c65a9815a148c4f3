"""Stage 1: what will be run. Opens the run, or the unfinished one that it continues."""

from pathlib import Path

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from evalagent.adapters import runs, settings
from evalagent.adapters.runs import PlannedTrial, RunPlan
from tasks.retries import DELAYS_S, RETRIES, if_transient


@task(
    name="plan",
    task_run_name="plan {suite}",
    cache_policy=NO_CACHE,
    retries=RETRIES,
    retry_delay_seconds=DELAYS_S,
    retry_condition_fn=if_transient,
)
def plan(suite: str, trials: int | None, judge: str, sandbox: str, only: tuple[str, ...]) -> RunPlan:
    """The run of a suite; relative paths are from the current folder."""
    made = runs.open_run(
        Path(suite), home=runs.home_for(Path(suite), settings.load().home), trials=trials, only=only, judge=judge,
        sandbox=sandbox,
    )
    get_run_logger().info("%s run %s", "resuming" if made.resumed else "new", made.run_id)
    return made


@task(name="generate-cases", task_run_name="cases of {plan.run_id}", cache_policy=NO_CACHE)
def generate_cases(plan: RunPlan) -> tuple[PlannedTrial, ...]:
    """Every trial of the run; the cases are those of the suite."""
    return runs.planned_trials(plan)
