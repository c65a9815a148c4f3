"""The nightly question: did it get worse?"""

from pathlib import Path

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact

from evalagent.adapters import comparing, runs
from evalagent.errors import Terminal
from tasks.retries import STAGE


class Regression(Terminal):
    """The agent is worse than in the run it was compared with."""


@task(name="compare", task_run_name="compare {folder}", **STAGE)
def compare(folder: str) -> str:
    """Against the last good run; its id, or an empty text for a first run. Regression if the agent got worse."""
    run = Path(folder)
    suite = runs.read_run(run)["suite"]
    home = run.parent.parent
    before = comparing.baseline(suite, home, run.name)
    if before is None:
        get_run_logger().info("the first run of %s: nothing to compare with; it becomes the baseline", suite)
        runs.mark_gate(run, True)
        return ""
    result = comparing.compare(str(before), str(run), home)
    runs.mark_gate(run, not result.worse)
    create_markdown_artifact(
        f"```\n{result.text}\n```", key=f"{suite}-comparison", description=f"Against {before.name}"
    )
    get_run_logger().info(result.text)
    if result.worse:
        raise Regression(result.text)
    return before.name
