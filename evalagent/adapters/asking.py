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


def ask_all(questions: Sequence[Question], judge: str, settings: Settings, limits: JudgeSettings | None) -> Answers:
    """Every question to the judge of that name, a bounded number at once."""
    asked = judges.judge(judge, settings, limits or JudgeSettings())
    with ThreadPoolExecutor(settings.parallel) as pool:
        verdicts = tuple(pool.map(lambda question: answer(asked, question), questions))
    spent = next((v.reason for v in verdicts if v.reason.startswith(BUDGET_SPENT)), "")
    return Answers(verdicts, asked.use(), spent)


def answer(judge: judges.Judge, question: Question) -> Verdict:
    """The judge's verdict, or not_judged with the reason: a failing judge is never a failing agent."""
    try:
        return judge.ask_question(question)
    except BudgetSpent as error:
        reason = f"{BUDGET_SPENT}: {error}"
    except (JudgeUnavailable, JudgeRefused) as error:
        reason = f"{NO_ANSWER}: {error}"
    return not_judged_verdicts([question], reason)[question.step_id]
