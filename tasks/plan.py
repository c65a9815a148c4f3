"""Stage 1: what will be run."""

from pathlib import Path

from prefect import get_run_logger, task

from evalagent.adapters import asking, runs, settings
from evalagent.adapters.runs import PlannedTrial, RunPlan
from tasks.retries import STAGE


@task(name="plan", task_run_name="plan {suite}", **STAGE)
def plan(suite: str, trials: int | None, judge: str, sandbox: str, only: tuple[str, ...]) -> RunPlan:
    """A new run of a suite, or the unfinished one that it continues."""
    configured = settings.load()
    path = Path(suite)
    home = runs.home_for(path / "suite.yaml" if path.is_dir() else path, configured.home)
    made = runs.open_run(
        path, home=home, trials=trials, only=only, judge=asking.chosen(judge, configured), sandbox=sandbox
    )
    get_run_logger().info("%s run %s in %s", "resuming" if made.resumed else "new", made.run_id, made.folder)
    return made


@task(name="generate-cases", task_run_name="cases of {plan.run_id}", **STAGE)
def generate_cases(plan: RunPlan) -> tuple[PlannedTrial, ...]:
    """Every trial of the run; the cases are those of the suite."""
    return runs.planned_trials(plan)
