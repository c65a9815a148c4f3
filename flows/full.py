"""evalagent/full: one suite, from plan to report."""

from typing import Any

from prefect import flow, unmapped

from tasks.attribute import attribute
from tasks.check import check
from tasks.collect import collect, collection
from tasks.grade import grade
from tasks.ingest import ingest
from tasks.instrument import instrument
from tasks.judge import judge_questions, judge_step, questions, save_verdicts
from tasks.plan import generate_cases, plan
from tasks.report import publish, report
from tasks.scorecard import scorecard
from tasks.steps import build_steps


@flow(name="evalagent", flow_run_name="{suite}")
def evalagent(
    suite: str,
    trials: int | None = None,
    judge: str = "auto",
    sandbox: str = "process",
    only: list[str] | None = None,
) -> dict[str, Any]:
    """Evaluate an agent as its suite says: run every case `trials` times, judge every step, find what broke, report.

    `judge` is auto (a model where a key is set, else rules), rules, none, anthropic or bedrock; `sandbox` is process or
    docker; `only` names cases. Gives the run's summary.
    """
    run = plan(suite, trials, judge, sandbox, tuple(only or ()))
    trials_to_run = generate_cases(run)
    instrument(run)
    with collection(run):
        collect.map(unmapped(run), trials_to_run).wait()
    ingest(run)
    build_steps(run)
    grade(run)
    check(run)
    asked = questions(run)
    # Each task gets its own question only: handed the whole trace, Prefect would walk it once per step.
    ruled = judge_step.map(unmapped(run), asked.single)
    ruled_in_chunks = judge_questions.map(unmapped(run), asked.chunks)
    save_verdicts(run, ruled, ruled_in_chunks)
    attribute(run)
    summary = scorecard(run)
    report(run)
    publish(run)
    return summary
