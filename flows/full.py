"""evalagent/full: one suite, from plan to report."""

from typing import Any

from prefect import flow, unmapped

from tasks.attribute import attribute
from tasks.check import check
from tasks.collect import collect, collection
from tasks.concurrency import task_runner
from tasks.futures import answers_of
from tasks.ingest import ingest
from tasks.instrument import instrument
from tasks.judge import judge_step, judge_steps, questions, save_verdicts
from tasks.load import loaded
from tasks.outcome import outcome
from tasks.plan import generate_cases, plan
from tasks.report import report
from tasks.scorecard import scorecard
from tasks.steps import build_steps


@flow(name="evalagent", flow_run_name="{suite}", task_runner=task_runner())
def evalagent(
    suite: str,
    trials: int | None = None,
    judge: str = "auto",
    sandbox: str = "process",
    only: list[str] | None = None,
) -> dict[str, Any]:
    """Evaluate an agent as its suite says: run every case `trials` times, judge every step, find what broke, report.

    `judge` is auto (a model where a key is set, else rules), rules, none, anthropic or bedrock; `sandbox` is process or
    docker; `only` names cases. Gives the run's summary. An agent that failed is a result, not a failed flow run.
    """
    run = plan(suite, trials, judge, sandbox, tuple(only or ()))
    trials_to_run = generate_cases(run)
    instrument(run)
    with collection(run):
        collect.map(unmapped(run), list(trials_to_run)).wait()
    ingest(run)
    build_steps(run)
    outcome(run)
    check(run)
    asked = questions(run)
    # A task gets its own question and no more: handed the whole trace, Prefect would walk it once for every step.
    each = judge_step.map(unmapped(run), list(asked.single))
    many = judge_steps.map(unmapped(run), list(asked.chunks))
    save_verdicts(run, *answers_of(each, many, asked))
    attribute(run)
    numbers = scorecard(run)
    report(run)
    return {**numbers, "not_loaded": loaded(run)}
