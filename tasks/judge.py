"""Stage 8: the steps that no rule decides, each to the judge; a task per step, or per chunk of steps in a large run."""

from dataclasses import dataclass

from prefect import get_run_logger, task

from evalagent.adapters import asking, pipeline, settings
from evalagent.adapters.runs import RunPlan
from evalagent.judging.deciding import Question
from evalagent.model import Verdict
from tasks.retries import STAGE


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of a run, cut to the number of tasks that Prefect bears."""

    single: tuple[Question, ...]
    chunks: tuple[tuple[Question, ...], ...]


@task(name="questions", task_run_name="questions of {plan.run_id}", **STAGE)
def questions(plan: RunPlan) -> Asked:
    """What is left for a model: nothing where none is asked."""
    found = pipeline.questions(plan)
    get_run_logger().info("%d steps for the judge %r", len(found), plan.judge)
    said = settings.load()
    if len(found) <= said.max_node_tasks:
        return Asked(found, ())
    # 100 tasks of 100 steps cost 0.2 ms a step, 10,000 tasks 11 ms
    return Asked((), tuple(found[n : n + said.node_chunk] for n in range(0, len(found), said.node_chunk)))


@task(name="judge-step", task_run_name="judge {question.step_id}", **STAGE)
def judge_step(plan: RunPlan, question: Question) -> Verdict:
    """One step's verdict. JudgeUnavailable is retried; what then still has no answer is not judged."""
    return pipeline.judge(plan).ask_question(question)


@task(name="judge-steps", **STAGE)
def judge_steps(plan: RunPlan, chunk: tuple[Question, ...]) -> tuple[Verdict, ...]:
    """Many steps' verdicts, some at once."""
    return asking.ask_each(pipeline.judge(plan), chunk, settings.load().judge_concurrency)


@task(name="save-verdicts", task_run_name="verdicts of {plan.run_id}", **STAGE)
def save_verdicts(plan: RunPlan, answered: tuple[Verdict, ...], failures: dict[str, str]) -> dict[str, int]:
    """One verdict for every step; how many of each."""
    counts = pipeline.save_verdicts(plan, answered, failures)
    get_run_logger().info("steps: %(pass)d pass, %(fail)d fail, %(not_judged)d not judged", counts)
    return counts
