"""Asking a model about many steps at once, outside Prefect."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from evalagent.adapters import judges
from evalagent.adapters.settings import Settings
from evalagent.errors import BudgetSpent, JudgeRefused, JudgeUnavailable
from evalagent.judging.deciding import Question, not_judged_verdicts
from evalagent.model import Verdict
from evalagent.records import JudgeUse
from evalagent.suites import JudgeSettings


WITHOUT_MODEL = ("rules", "none")
NO_MODEL = "no rule decides this step, and no model was asked: --judge anthropic with ANTHROPIC_API_KEY judges it"
NOT_ASKED = "nothing was to be judged (--judge none)"
NO_ANSWER = "the judge gave no answer"
BUDGET_SPENT = "the judge's own budget is spent"


def chosen(judge: str, settings: Settings) -> str:
    """The judge meant by `auto`: a model where its key is set, else rules."""
    return ("anthropic" if settings.anthropic_key_set else "rules") if judge == "auto" else judge


@dataclass(frozen=True, slots=True)
class Answers:
    verdicts: tuple[Verdict, ...] = ()
    """One for each question, in its order; not_judged with the reason where nobody could answer."""
    use: JudgeUse = field(default_factory=lambda: JudgeUse("rules"))
    budget_spent: str = ""
    """Why no more was asked; empty if all was."""


def why_not(error: object) -> str:
    """The reason that a step is not judged, from what its judge failed with."""
    return f"{BUDGET_SPENT if isinstance(error, BudgetSpent) else NO_ANSWER}: {error}"


def ask_each(judge: judges.Judge, questions: Sequence[Question], at_once: int) -> tuple[Verdict, ...]:
    """A verdict for every question, in their order."""
    with ThreadPoolExecutor(at_once) as pool:
        return tuple(pool.map(lambda question: answer(judge, question), questions))


def ask_all(questions: Sequence[Question], judge: str, settings: Settings, limits: JudgeSettings | None) -> Answers:
    """Every question to the judge of that name, a bounded number at once."""
    asked = judges.judge(judge, settings, limits or JudgeSettings())
    verdicts = ask_each(asked, questions, settings.parallel)
    spent = next((v.reason for v in verdicts if v.reason.startswith(BUDGET_SPENT)), "")
    return Answers(verdicts, asked.use(), spent)


def answer(judge: judges.Judge, question: Question) -> Verdict:
    """The judge's verdict, or not_judged with the reason: a failing judge is never a failing agent."""
    try:
        return judge.ask_question(question)
    except (BudgetSpent, JudgeUnavailable, JudgeRefused) as error:
        return not_judged_verdicts([question], why_not(error))[question.step_id]
