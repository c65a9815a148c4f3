"""Stage 2: how the agent will be observed, without an edit of its source."""

from pathlib import Path

from prefect import get_run_logger, task

from evalagent.adapters.files import load_suite
from evalagent.adapters.runs import RunPlan
from evalagent.authoring.instrumenting import environment
from tasks.retries import STAGE


@task(name="instrument", task_run_name="instrument {plan.run_id}", **STAGE)
def instrument(plan: RunPlan) -> dict[str, str]:
    """What every trial's environment will switch on; where its spans go is known when trials start. UsageError for
    `agent.tools` that name nothing."""
    agent = load_suite(Path(plan.suite_file))[0].agent
    switches = environment(agent, endpoint="", resource={}, case_id="", trial=0, attempt="")
    on = {
        name: value for name, value in switches.items() if value and not name.endswith(("ATTRIBUTES", "TRIAL", "NAME"))
    }
    get_run_logger().info("instrument: %s; tools wrapped: %s", agent.instrument, ", ".join(agent.tools) or "none")
    return on
