import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalagent.judging.deciding import decide
from evalagent.judging.prompting import JudgeRequest, request
from evalagent.judging.questions import Question
from evalagent.judging.replies import Malformed, Reply, Usage, from_json, parse, to_json
from evalagent.judging.rubrics import builtin
from evalagent.model import Verdict
from tests.judging.small_runs import refund

QUESTION: Question = decide(refund(said='I have "refunded"\n48.50 for order 7731.'), (), 0.7).questions[-1]
REQUEST: JudgeRequest = request(QUESTION, builtin().fitting(QUESTION), "some-model")
RIGHT: dict[str, Any] = {
    "reason": "The tool paid back 48.50, and the answer says so.",
    "quotes": [{"text": '{"refunded":"48.50"}', "where": "given-4"}],
    "can_tell": "yes",
    "score": 1.0,
    "own_fault": "no",
    "category": "none",
}
WRONG = {**RIGHT, "reason": "It was never paid.", "score": 0.0, "own_fault": "yes", "category": "F30"}


def said(value: object, stop: str | None = "end_turn") -> Reply:
    text = value if isinstance(value, str) else json.dumps(value)
    return Reply(({"type": "thinking"}, {"type": "text", "text": text}), stop)


def called(*values: object, name: str = "verdict", stop: str = "tool_use") -> Reply:
    return Reply(tuple({"type": "tool_use", "name": name, "input": value} for value in values), stop)


def read(reply: Reply, tau: float = 0.7) -> Verdict | Malformed:
    return parse(REQUEST, reply, QUESTION, tau, "anthropic")


@pytest.mark.parametrize("reply", [said(RIGHT), called(RIGHT), said(f"```json\n{json.dumps(RIGHT)}\n```")])
def test_a_right_reply_is_a_pass_that_names_its_judge_and_rubric(reply: Reply) -> None:
    verdict = read(reply)
    assert isinstance(verdict, Verdict)
    assert (verdict.verdict, verdict.score, verdict.own_fault, verdict.category) == ("pass", 1.0, "no", None)
    assert (verdict.judge, verdict.rubric, verdict.aspect) == ("anthropic/some-model", "answer@1", "answer")
    assert (verdict.trace_id, verdict.step_id) == (QUESTION.trace_id, QUESTION.step_id)
    assert verdict.evidence == {"quotes": RIGHT["quotes"]}


def test_a_low_score_is_a_fail_with_fault_and_category() -> None:
    verdict = read(said(WRONG))
    assert isinstance(verdict, Verdict)
    assert (verdict.verdict, verdict.score, verdict.own_fault, verdict.category) == ("fail", 0.0, "yes", "F30")


@pytest.mark.parametrize(("score", "ruling"), [(0.7, "pass"), (0.699, "fail"), (1, "pass"), (0, "fail")])
def test_tau_parts_pass_from_fail(score: float, ruling: str) -> None:
    verdict = read(said({**WRONG, "score": score}))
    assert isinstance(verdict, Verdict)
    assert verdict.verdict == ruling


BAD: list[tuple[str, Reply, str]] = [
    ("refusal", said(RIGHT, "refusal"), "refusal"),
    ("cut at max_tokens", said(RIGHT, "max_tokens"), "cut"),
    ("context full", said(RIGHT, "model_context_window_exceeded"), "cut"),
    ("paused", said(RIGHT, "pause_turn"), "cut"),
    ("no stop reason", said(RIGHT, None), "cut"),
    ("nothing at all", Reply((), "end_turn"), "form"),
    ("thinking only", Reply(({"type": "thinking"},), "end_turn"), "form"),
    ("cut JSON", said(json.dumps(RIGHT)[:-20]), "form"),
    ("prose", said("The step is right, score 1.0"), "form"),
    ("prose around it", said(f"Here it is: {json.dumps(RIGHT)}"), "form"),
    ("two objects", said(json.dumps(RIGHT) + json.dumps(WRONG)), "form"),
    ("two lines", said(json.dumps(RIGHT) + "\n" + json.dumps(WRONG)), "form"),
    ("a list of one", said([RIGHT]), "form"),
    ("[[90]]", said("[[90]]"), "form"),
    ("[[90]] in a call", called([[90]]), "form"),
    ("a bare number", said("1.0"), "form"),
    ("two calls", called(RIGHT, RIGHT), "form"),
    ("another tool", called(RIGHT, name="refund"), "form"),
    ("a score twice", said(json.dumps(WRONG)[:-1] + ', "score": 1.0}'), "form"),
    ("NaN", said(json.dumps({**RIGHT, "score": float("nan")})), "form"),
    ("NaN in a call", called({**RIGHT, "score": float("nan")}), "form"),
    ("infinity in a call", called({**RIGHT, "score": float("inf")}), "form"),
    ("90 of 100", said({**RIGHT, "score": 90}), "form"),
    ("below 0", said({**RIGHT, "score": -0.1}), "form"),
    ("score as a text", said({**RIGHT, "score": "1.0"}), "form"),
    ("score as a truth value", said({**RIGHT, "score": True}), "form"),
    ("score [[90]]", said({**RIGHT, "score": [[90]]}), "form"),
    ("no score", said({k: v for k, v in RIGHT.items() if k != "score"}), "form"),
    ("null score", said({**RIGHT, "score": None}), "form"),
    ("unknown category", said({**WRONG, "category": "F00"}), "form"),
    ("a fail without category", said({**WRONG, "category": "none"}), "form"),
    ("category as a list", said({**WRONG, "category": ["F30"]}), "form"),
    ("unknown fault", said({**WRONG, "own_fault": "maybe"}), "form"),
    ("no can_tell", said({**RIGHT, "can_tell": True}), "form"),
    ("no reason", said({**RIGHT, "reason": "  "}), "form"),
    ("quotes as a text", said({**RIGHT, "quotes": "48.50"}), "form"),
    ("no quotes", said({**RIGHT, "quotes": []}), "quotes"),
    ("quotes of nothing", said({**RIGHT, "quotes": [{"text": " ", "where": "output"}, {}, 7]}), "quotes"),
    ("a quote that is not there", said({**RIGHT, "quotes": [{"text": "paid 99.00", "where": "output"}]}), "quotes"),
    ("a quote of ours", said({**RIGHT, "quotes": [{"text": "what the model answered", "where": "output"}]}), "quotes"),
    ("a quote with a gap", said({**RIGHT, "quotes": [{"text": "I have … order 7731.", "where": "output"}]}), "quotes"),
    ("a quote of one letter", said({**RIGHT, "quotes": [{"text": "I", "where": "output"}]}), "quotes"),
]


@pytest.mark.parametrize(("reply", "cause"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_what_is_not_exactly_a_verdict_is_never_a_score(reply: Reply, cause: str) -> None:
    result = read(reply)
    assert isinstance(result, Malformed)
    assert result.cause == cause


def test_a_judge_that_cannot_tell_judges_nothing_whatever_score_it_adds() -> None:
    verdict = read(said({**RIGHT, "can_tell": "no", "quotes": [], "reason": "The result is cut."}))
    assert isinstance(verdict, Verdict)
    assert (verdict.verdict, verdict.score, verdict.own_fault) == ("not_judged", None, "unknown")
    assert "The result is cut." in verdict.reason


@pytest.mark.parametrize(
    "quote",
    [
        'I have "refunded" 48.50',
        'I have \\"refunded\\"\\n48.50 for order',
        "I have “refunded”\n\n  48.50",
        '\\"refunded\\":\\"48.50\\"',
    ],
)
def test_quotes_are_found_across_whitespace_escapes_and_quotation_marks(quote: str) -> None:
    verdict = read(said({**RIGHT, "quotes": [{"text": quote, "where": "nowhere"}]}))
    assert isinstance(verdict, Verdict)
    assert verdict.evidence["quotes"][0]["where"] != "nowhere"


def test_one_true_quote_carries_a_verdict_and_the_others_are_counted() -> None:
    verdict = read(said({**RIGHT, "quotes": [*RIGHT["quotes"], {"text": "made up entirely", "where": "output"}]}))
    assert isinstance(verdict, Verdict)
    assert verdict.evidence == {"quotes": RIGHT["quotes"], "quotes_not_found": 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(RIGHT)), json_values, max_size=6), st.booleans())
def test_whatever_stands_in_the_fields_nothing_but_a_number_from_0_to_1_becomes_a_score(
    changes: dict[str, Any], wire: bool
) -> None:
    value = {**RIGHT, **changes}
    result = read(called(value) if wire else said(json.dumps(value)))
    if isinstance(result, Verdict) and result.verdict != "not_judged":
        assert type(value["score"]) in (int, float)
        assert result.score is not None
        assert 0 <= result.score <= 1
        assert result.score == value["score"]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_at_all_is_read_without_a_crash(text: str) -> None:
    result = read(Reply(({"type": "text", "text": text},), "end_turn"))
    assert isinstance(result, Malformed)


def test_a_reply_comes_back_from_json_as_it_went() -> None:
    reply = Reply(({"type": "text", "text": "ä"},), "end_turn", "m", Usage(1, 2, 3, 4))
    assert from_json(json.loads(json.dumps(to_json(reply)))) == reply


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"blocks": "x"}, {"blocks": [1], "usage": [0, 0, 0, 0]}, {"blocks": [], "usage": [True] * 4}],
)
def test_what_is_no_reply_is_not_read_as_one(value: object) -> None:
    assert from_json(value) is None
