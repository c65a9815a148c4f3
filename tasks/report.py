"""Stage 11: the report as files and as artifacts of the flow run."""

from prefect import get_run_logger, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from evalagent.adapters import pipeline
from evalagent.adapters.runs import RunPlan
from tasks.retries import STAGE

MAX_MARKDOWN = 400_000
"""Characters of an artifact: the UI is slow beyond, and the file holds all."""


@task(name="report", task_run_name="report of {plan.run_id}", **STAGE)
def report(plan: RunPlan) -> str:
    """report.html, report.md, report.json, junit.xml, the rows in the store; the page's path."""
    page = pipeline.report(plan)
    key = plan.run_id.rsplit("-", 3)[0]
    create_table_artifact(
        pipeline.case_table(plan), key=f"{key}-cases", description="Cases: runs that passed, failed, were not judged"
    )
    text = (plan.path / "report.md").read_text(encoding="utf-8")
    if len(text) > MAX_MARKDOWN:
        text = (
            text[:MAX_MARKDOWN]
            + f"\n\n… cut here at {MAX_MARKDOWN} characters; all of it is in {page.with_suffix('.md')}\n"
        )
    create_markdown_artifact(text, key=f"{key}-report", description="The report")
    create_link_artifact(
        page.as_uri(), "report.html", key=f"{key}-page", description="The report as a page, on the machine that ran it"
    )
    get_run_logger().info("report: %s", page)
    return str(page)
