import json
from dataclasses import replace
from typing import Any

import pytest

from evalagent.errors import JudgeRefused, JudgeUnavailable
from evalagent.judging.cascade import Ladder, judge
from evalagent.judging.deciding import decide
from evalagent.judging.prompting import JudgeRequest, cache_key
from evalagent.judging.questions import Question
from evalagent.judging.replies import Reply
from evalagent.judging.rubrics import builtin
from evalagent.model import Verdict
from tests.judging.small_runs import refund

QUESTION: Question = decide(refund(), (), 0.7).questions[-1]
LADDER = Ladder(("cheap", "strong"))
GOOD: dict[str, Any] = {
    "reason": "It says what was done.",
    "quotes": [{"text": "order 7731", "where": "output"}],
    "can_tell": "yes",
    "score": 1.0,
    "own_fault": "no",
    "category": "none",
}
BAD = {**GOOD, "score": 0.0, "own_fault": "yes", "category": "F30"}
GARBAGE = "Sure! Score: 1"


class Scripted:
    """Answers from a list for each model, and remembers what it was asked."""

    def __init__(self, **answers: list[object]) -> None:
        self.answers = answers
        self.asked: list[JudgeRequest] = []

    def __call__(self, request: JudgeRequest) -> Reply:
        self.asked.append(request)
        answer = self.answers[request.model].pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Reply):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return Reply(({"type": "text", "text": text},), "end_turn")

    @property
    def models(self) -> list[str]:
        return [request.model for request in self.asked]


def ruled(ask: Scripted, question: Question = QUESTION, ladder: Ladder = LADDER, tau: float = 0.7) -> Verdict:
    return judge(question, builtin().fitting(question), ladder, tau, ask)


@pytest.mark.parametrize("reply", [GOOD, BAD])
def test_a_sure_cheap_model_has_the_last_word(reply: dict[str, Any]) -> None:
    ask = Scripted(cheap=[reply])
    verdict = ruled(ask)
    assert (verdict.score, verdict.judge) == (reply["score"], "anthropic/cheap")
    assert ask.models == ["cheap"]


@pytest.mark.parametrize(
    "unsure",
    [
        {**GOOD, "score": 0.75},
        {**BAD, "score": 0.6},
        {**BAD, "own_fault": "unknown"},
        {**GOOD, "can_tell": "no"},
    ],
)
def test_where_the_cheap_model_is_unsure_the_strong_one_decides(unsure: dict[str, Any]) -> None:
    verdict = ruled(Scripted(cheap=[unsure], strong=[BAD]))
    assert (verdict.verdict, verdict.judge) == ("fail", "anthropic/strong")
    assert verdict.evidence["first_view"]["judge"] == "anthropic/cheap"


def test_a_pass_where_a_check_warned_is_looked_at_again_and_a_fail_is_not() -> None:
    warned = replace(QUESTION, warnings=("ungrounded_value",))
    ask = Scripted(cheap=[GOOD], strong=[GOOD])
    assert ruled(ask, warned).verdict == "pass"
    assert ask.models == ["cheap", "strong"]
    ask = Scripted(cheap=[BAD])
    assert ruled(ask, warned).verdict == "fail"
    assert ask.models == ["cheap"]


def test_the_band_around_tau_moves_with_tau() -> None:
    assert ruled(Scripted(cheap=[{**GOOD, "score": 0.75}]), tau=0.5).judge == "anthropic/cheap"


def test_an_unusable_reply_is_asked_for_once_more_and_told_why() -> None:
    ask = Scripted(cheap=[GARBAGE, GOOD])
    verdict = ruled(ask)
    assert verdict.verdict == "pass"
    assert len(verdict.evidence["unusable"]) == 1
    assert "could not be used" in ask.asked[1].user
    assert GARBAGE not in ask.asked[1].user
    assert cache_key(ask.asked[0]) != cache_key(ask.asked[1])


def test_wrong_quotes_twice_by_both_models_are_not_judged() -> None:
    lied = {**GOOD, "quotes": [{"text": "I never said this", "where": "output"}]}
    ask = Scripted(cheap=[lied, lied], strong=[lied, lied])
    verdict = ruled(ask)
    assert (verdict.verdict, verdict.score, verdict.own_fault) == ("not_judged", None, "unknown")
    assert "quotes" in verdict.reason
    assert ask.models == ["cheap", "cheap", "strong", "strong"]


def test_an_unsure_model_alone_does_not_decide_when_the_strong_one_fails() -> None:
    verdict = ruled(Scripted(cheap=[{**BAD, "score": 0.65}], strong=[GARBAGE, GARBAGE]))
    assert (verdict.verdict, verdict.score) == ("not_judged", None)
    assert verdict.evidence["first_view"]["score"] == 0.65


@pytest.mark.parametrize("refusal", [Reply((), "refusal"), JudgeRefused("HTTP 400: too long")])
def test_a_refusal_is_not_asked_again_of_the_same_model(refusal: object) -> None:
    ask = Scripted(cheap=[refusal], strong=[GOOD])
    assert ruled(ask).judge == "anthropic/strong"
    assert ask.models == ["cheap", "strong"]


def test_one_model_alone_decides_even_if_unsure() -> None:
    verdict = ruled(Scripted(only=[{**BAD, "own_fault": "unknown"}]), ladder=Ladder(("only",), "local"))
    assert (verdict.verdict, verdict.own_fault, verdict.judge) == ("fail", "unknown", "local/only")


def test_an_endpoint_that_is_down_is_the_caller_s_to_retry() -> None:
    with pytest.raises(JudgeUnavailable):
        ruled(Scripted(cheap=[JudgeUnavailable("529")]))


def test_repeats_are_asked_apart() -> None:
    keys = set()
    for repeat in range(3):
        ask = Scripted(cheap=[GARBAGE, GOOD])
        judge(QUESTION, builtin().fitting(QUESTION), LADDER, 0.7, ask, repeat)
        keys |= {cache_key(request) for request in ask.asked}
    assert len(keys) == 6
