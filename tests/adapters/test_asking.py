"""What counts as a judge that failed: steps without a usable answer, not calls that were made again."""

from evalagent.adapters import asking
from evalagent.errors import JudgeUnavailable
from evalagent.judging.cascade import NO_USABLE_REPLY
from evalagent.model import Ruling, Verdict


def verdict(ruling: Ruling, reason: str, step_id: str | None = "s1") -> Verdict:
    return Verdict("t", step_id, "step", ruling, None, "unknown", "local/m", reason)


def test_steps_that_got_no_usable_answer_are_counted() -> None:
    down = asking.why_not(JudgeUnavailable("529"))
    verdicts = [
        verdict("not_judged", down),
        verdict("not_judged", f"m was not sure, and there was {NO_USABLE_REPLY}: cut"),
        verdict("not_judged", "the material shown does not tell"),
        verdict("not_judged", asking.NO_MODEL),
        verdict("pass", "it fits"),
        verdict("not_judged", down, None),
    ]
    assert asking.unanswered(verdicts) == 2
