"""Stage 2: how the agent will be observed, without an edit of its source."""

from pathlib import Path

from prefect import get_run_logger, task

from evalagent.adapters.files import load_suite
from evalagent.adapters.runs import RunPlan
from evalagent.authoring.instrumenting import instrumentation
from tasks.retries import STAGE


@task(name="instrument", task_run_name="instrument {plan.run_id}", **STAGE)
def instrument(plan: RunPlan) -> dict[str, str]:
    """The environment that switches the hook on in the agent's process; empty for an agent that exports spans itself."""
    suite, _ = load_suite(Path(plan.suite_file))
    switches = dict(instrumentation(suite.agent))
    get_run_logger().info("instrument: %s; tools wrapped: %s", suite.agent.instrument, ", ".join(suite.agent.tools) or "none")
    return switches
