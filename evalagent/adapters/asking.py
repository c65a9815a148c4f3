"""Asking a model about many steps at once, outside Prefect."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from evalagent.adapters import judges
from evalagent.adapters.files import load_prices
from evalagent.adapters.reply_cache import ReplyCache
from evalagent.adapters.settings import Settings
from evalagent.errors import BudgetSpent, JudgeRefused, JudgeUnavailable
from evalagent.judging.cascade import NO_USABLE_REPLY
from evalagent.judging.deciding import Question, not_judged_verdicts
from evalagent.judging.replies import Usage
from evalagent.model import Json, Tokens, Verdict
from evalagent.records import JudgeUse
from evalagent.suites import Suite
from evalagent.traces.prices import cost_of

WITHOUT_MODEL = judges.WITHOUT_MODEL
NO_MODEL = "no rule decides this step, and no model was asked: --judge anthropic with ANTHROPIC_API_KEY judges it"
NOT_ASKED = "nothing was to be judged (--judge none)"
NO_ANSWER = "the judge gave no answer"
BUDGET_SPENT = "the judge's own budget is spent"


def chosen(judge: str, settings: Settings) -> str:
    """The judge meant by `auto`: a model where its key is set, else rules."""
    if judge != "auto":
        return judge
    if settings.judge != "auto":
        return settings.judge
    return "anthropic" if judges.has_key(os.environ) else "rules"


def opened(name: str, settings: Settings, home: Path | None, suite: Suite | None, folder: Path | None) -> judges.Judge:
    """The judge of that name, with the suite's limits, rubrics and prices, and the replies that the home remembers."""
    return judges.judge(
        name,
        settings,
        suite.judge if suite else None,
        rubrics=judges.read_rubrics(folder / suite.rubrics if suite and folder and suite.rubrics else None),
        cache=ReplyCache(home / "replies") if home else None,
        price=_price(load_prices(suite, folder) if suite and folder else None),
    )


def _price(table: Mapping[str, Json] | None) -> Callable[[str, Usage], float | None]:
    """What a judge's call costs, by the suite's price table where it has one."""

    def price(model: str, usage: Usage) -> float | None:
        tokens = Tokens(usage.input, usage.output, usage.cache_read, usage.cache_write)
        return cost_of(tokens, model, "anthropic_sdk", table)

    return price


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


def unanswered(verdicts: Iterable[Verdict]) -> int:
    """Steps that a judge was asked about and gave no usable answer on. Steps, not calls: a call that failed and was
    made again with success cost nobody a verdict. A judge that says it cannot tell has answered."""
    open_ = [v.reason for v in verdicts if v.step_id is not None and v.verdict == "not_judged"]
    return sum(reason.startswith(NO_ANSWER) or NO_USABLE_REPLY in reason for reason in open_)


def ask_each(judge: judges.Judge, questions: Sequence[Question], at_once: int) -> tuple[Verdict, ...]:
    """A verdict for every question, in their order."""
    with ThreadPoolExecutor(at_once) as pool:
        return tuple(pool.map(lambda question: answer(judge, question), questions))


def ask_all(judge: judges.Judge, questions: Sequence[Question], at_once: int) -> Answers:
    """Every question to the judge, with what it took."""
    verdicts = ask_each(judge, questions, at_once)
    spent = next((v.reason for v in verdicts if v.reason.startswith(BUDGET_SPENT)), "")
    return Answers(verdicts, judge.use(), spent)


def answer(judge: judges.Judge, question: Question) -> Verdict:
    """The judge's verdict, or not_judged with the reason: a failing judge is never a failing agent."""
    try:
        return judge.ask_question(question)
    except (BudgetSpent, JudgeUnavailable, JudgeRefused) as error:
        return not_judged_verdicts([question], why_not(error))[question.step_id]
