"""The real SDK against a model that misbehaves by script: every fault ends in a right verdict after another try, or in
not_judged, and never in a score of its own."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from evalagent.adapters.anthropic_judge import newest, sdk_models
from evalagent.adapters.judges import Judge, judge, read_rubrics
from evalagent.adapters.reply_cache import ReplyCache
from evalagent.adapters.settings import Endpoint, Settings
from evalagent.errors import BudgetSpent, JudgeUnavailable, UsageError
from evalagent.judging.deciding import Question, decide
from evalagent.judging.replies import Usage
from evalagent.model import Verdict
from evalagent.suites import JudgeSettings
from tests.adapters.scripted_model import Answer, Script, call, error, message, serving, text
from tests.judging.small_runs import refund

QUESTIONS = decide(refund(), (), 0.7).questions
QUESTION: Question = QUESTIONS[-1]
GOOD: dict[str, Any] = {
    "reason": "It says what was done.",
    "quotes": [{"text": "order 7731", "where": "output"}],
    "can_tell": "yes",
    "score": 1.0,
    "own_fault": "no",
    "category": "none",
}
BAD = {**GOOD, "score": 0.0, "own_fault": "yes", "category": "F30"}
RIGHT = text(json.dumps(GOOD))
SOON = {"retry_after_ms": "1"}


def against(script: Script, suite: JudgeSettings | None = None, **more: Any) -> Judge:
    endpoint = Endpoint(script.url, more.pop("cheap", "cheap"), more.pop("strong", None), more.pop("form", "schema"))
    judges = MappingProxyType({"scripted": endpoint})
    extra = {key: more.pop(key) for key in ("cache", "price", "rubrics") if key in more}
    settings = replace(Settings(judges=judges, judge_timeout_s=0.5, judge_retries=1), **more)
    return judge("scripted", settings, suite, **extra)


def not_judged(verdict: Verdict) -> bool:
    return (verdict.verdict, verdict.score, verdict.own_fault) == ("not_judged", None, "unknown")


def test_a_verdict_comes_back_over_the_wire_with_its_use() -> None:
    with serving(text(json.dumps(BAD), usage={"input_tokens": 900, "output_tokens": 80})) as script:
        asked = against(script)
        verdict = asked.ask_question(QUESTION)
    assert (verdict.verdict, verdict.score, verdict.judge) == ("fail", 0.0, "scripted/cheap")
    use = asked.use()
    assert (use.calls, use.cached, use.failed, use.input_tokens, use.output_tokens) == (1, 0, 0, 900, 80)
    assert use.cost_usd is None
    sent = script.requests[0]
    assert sent["model"] == "cheap"
    assert sent["output_config"]["format"]["type"] == "json_schema"
    assert [part["cache_control"]["type"] for part in sent["system"]] == ["ephemeral", "ephemeral"]
    assert "temperature" not in sent


def test_an_endpoint_that_knows_forced_tools_only_is_asked_that_way() -> None:
    with serving(message(call(GOOD), stop_reason="tool_use")) as script:
        verdict = against(script, form="tool", judge_temperature=0.0).ask_question(QUESTION)
    assert verdict.verdict == "pass"
    assert script.requests[0]["tool_choice"]["name"] == "verdict"
    assert script.requests[0]["temperature"] == 0.0


PASSING = {
    "429": error(429, "rate_limit_error", **SOON),
    "529": error(529, "overloaded_error", **SOON),
    "500": error(500, **SOON),
    "503": error(503, **SOON),
    "too slow": Answer(200, RIGHT.body, RIGHT.headers, delay_s=1.2),
    "cut off": Answer(200, RIGHT.body, RIGHT.headers, cut=True),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_what_passes_is_tried_again_until_it_is_answered(fault: Answer) -> None:
    with serving(fault, RIGHT) as script:
        assert against(script).ask_question(QUESTION).verdict == "pass"
        assert len(script.requests) == 2


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_what_does_not_pass_is_the_caller_s_to_try_later(fault: Answer) -> None:
    with serving(fault) as script:
        asked = against(script)
        with pytest.raises(JudgeUnavailable):
            asked.ask_question(QUESTION)
    assert (asked.use().calls, asked.use().failed) == (1, 1)


def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    with serving(RIGHT) as script:
        gone = against(script, judge_retries=0)
    with pytest.raises(JudgeUnavailable):
        gone.ask_question(QUESTION)


@pytest.mark.parametrize(
    "junk",
    [
        Answer(200, b"<html>hello</html>", {"content-type": "text/html"}),
        Answer(200, b'{"content": "score 1"}', {"content-type": "application/json"}),
        Answer(200, b"[[90]]", {"content-type": "application/json"}),
        Answer(200, b'{"type":"message","content":[{"ty', {"content-type": "application/json"}),
        Answer(200, b"", {"content-type": "application/json"}),
    ],
    ids=["html", "another protocol", "a list", "cut JSON", "nothing"],
)
def test_an_endpoint_that_speaks_something_else_is_unavailable(junk: Answer) -> None:
    with serving(junk) as script, pytest.raises(JudgeUnavailable):
        against(script).ask_question(QUESTION)


UNUSABLE = {
    "refusal": message(stop_reason="refusal"),
    "refusal with a score": text(json.dumps(GOOD), stop_reason="refusal"),
    "cut at max_tokens": text(json.dumps(GOOD)[:-30], stop_reason="max_tokens"),
    "whole at max_tokens": text(json.dumps(GOOD), stop_reason="max_tokens"),
    "several objects": text(json.dumps(GOOD) + json.dumps(BAD)),
    "several calls": message(call(GOOD), call(BAD), stop_reason="tool_use"),
    "wrong quotes": text(json.dumps({**GOOD, "quotes": [{"text": "never said", "where": "output"}]})),
    "[[90]]": text("[[90]]"),
    "score 90": text(json.dumps({**GOOD, "score": 90})),
    "NaN": text(json.dumps({**GOOD, "score": float("nan")})),
    "unknown category": text(json.dumps({**BAD, "category": "F00"})),
    "prose": text("The agent did well, I would say 1.0."),
    "nothing": message(),
    "no stop reason": text(json.dumps(GOOD), stop_reason=None),
    "block without type": message({"text": json.dumps(GOOD)}),
    "call without input": message(call(None), stop_reason="tool_use"),
}


@pytest.mark.parametrize("fault", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_reply_is_not_judged_in_the_end(fault: Answer) -> None:
    with serving(fault) as script:
        verdict = against(script).ask_question(QUESTION)
    assert not_judged(verdict)
    assert verdict.evidence["unusable"]
    assert len(script.requests) <= 2


@pytest.mark.parametrize("fault", [f for name, f in UNUSABLE.items() if "refusal" not in name])
def test_an_unusable_reply_followed_by_a_usable_one_is_a_verdict(fault: Answer) -> None:
    with serving(fault, RIGHT) as script:
        verdict = against(script).ask_question(QUESTION)
    assert (verdict.verdict, verdict.score) == ("pass", 1.0)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_is_refused_is_not_judged_and_the_next_one_is_asked(status: int) -> None:
    with serving(error(status, "invalid_request_error", "prompt is too long"), RIGHT) as script:
        asked = against(script)
        first = asked.ask_question(QUESTIONS[0])
        assert not_judged(first)
        assert "too long" in first.reason
        assert asked.ask_question(QUESTION).verdict == "pass"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_is_found_out_once(status: int) -> None:
    with serving(error(status, "authentication_error", "bad key sk-ant-api03-abcdefgh")) as script:
        asked = against(script)
        verdicts = [asked.ask_question(q) for q in QUESTIONS]
        assert len(script.requests) == 1
    assert all(not_judged(v) for v in verdicts)
    assert "sk-ant" not in verdicts[0].reason
    assert asked.use().calls == 1


def test_a_key_of_the_vendor_is_not_sent_to_a_named_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-of-the-vendor")
    with serving(RIGHT) as script:
        against(script).ask_question(QUESTION)
        assert "sk-ant-secret-of-the-vendor" not in json.dumps(script.headers)


def test_the_anthropic_judge_asks_the_newest_haiku_and_then_the_newest_sonnet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-for-this-test")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    unsure = text(json.dumps({**GOOD, "score": 0.75}))
    with serving(unsure, RIGHT) as script:
        asked = judge("anthropic", Settings(judge_base_url=script.url, judge_timeout_s=2.0))
        verdict = asked.ask_question(QUESTION)
        models = [body["model"] for body in script.requests]
    assert models == [newest("haiku", sdk_models()), newest("sonnet", sdk_models())]
    assert verdict.judge == f"anthropic/{models[1]}"


def test_the_suite_s_models_go_before_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-for-this-test")
    suite = JudgeSettings(cheap="suite-cheap")
    asked = judge("anthropic", Settings(judge_cheap="set-cheap", judge_strong="set-strong"), suite)
    assert asked.models == ("suite-cheap", "set-strong")


def test_bedrock_is_asked_under_its_own_model_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "for-this-test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for api in ("messages", "invoke"):
        with serving(RIGHT) as script:
            settings = Settings(
                judge_base_url=script.url, bedrock_region="eu-central-1", bedrock_api=api, judge_cheap="claude-x-1"
            )
            asked = judge("bedrock", settings)
            assert asked.ask_question(QUESTION).verdict == "pass"
        assert asked.models[0] == "anthropic.claude-x-1"
        assert "Credential=AKIDEXAMPLE" in script.headers[0]["Authorization"]


@pytest.mark.parametrize("name", ["rules", "none"])
def test_without_a_model_nobody_is_asked(name: str) -> None:
    asked = judge(name, Settings())
    verdict = asked.ask_question(QUESTION)
    assert not_judged(verdict)
    assert name in verdict.reason
    assert asked.use().calls == 0


def test_an_unknown_judge_and_a_missing_key_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("API_KEY", "AUTH_TOKEN", "PROFILE", "IDENTITY_TOKEN", "IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(f"ANTHROPIC_{name}", raising=False)
    monkeypatch.delenv("ANTHROPIC_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        judge("anthropic", Settings())
    with pytest.raises(UsageError, match="rules, none, anthropic, bedrock, local"):
        judge("gpt", Settings(judges=MappingProxyType({"local": Endpoint("http://127.0.0.1:1", "m")})))


# --- cache and limits --------------------------------------------------------------------------------


def test_what_was_answered_once_is_not_asked_again(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies")
    with serving(RIGHT) as script:
        first = against(script, cache=cache).ask_question(QUESTION)
        again = against(script, cache=cache)
        assert again.ask_question(QUESTION) == first
        assert len(script.requests) == 1
    assert (again.use().calls, again.use().cached) == (0, 1)


def test_equal_questions_at_once_are_asked_once(tmp_path: Path) -> None:
    with serving(Answer(200, RIGHT.body, RIGHT.headers, delay_s=0.1)) as script:
        asked = against(script, cache=ReplyCache(tmp_path))
        with ThreadPoolExecutor(8) as pool:
            verdicts = list(pool.map(asked.ask_question, [QUESTION] * 8))
        assert len(script.requests) == 1
    assert len(set(map(str, verdicts))) == 1


def test_a_damaged_cache_file_is_asked_for_anew(tmp_path: Path) -> None:
    with serving(RIGHT) as script:
        against(script, cache=ReplyCache(tmp_path)).ask_question(QUESTION)
        for path in tmp_path.rglob("*.json"):
            path.write_bytes(path.read_bytes()[:-5])
        assert against(script, cache=ReplyCache(tmp_path)).ask_question(QUESTION).verdict == "pass"
        assert len(script.requests) == 2


def test_faults_of_the_wire_are_not_cached(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    with serving(error(529, **SOON), error(529, **SOON), RIGHT) as script:
        with pytest.raises(JudgeUnavailable):
            against(script, cache=cache).ask_question(QUESTION)
        assert against(script, cache=cache).ask_question(QUESTION).verdict == "pass"


def test_answers_of_another_endpoint_are_not_taken_for_this_one_s(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    with serving(RIGHT) as one, serving(text(json.dumps(BAD))) as other:
        assert against(one, cache=cache).ask_question(QUESTION).verdict == "pass"
        assert against(other, cache=cache).ask_question(QUESTION).verdict == "fail"


def test_the_limit_of_calls_stops_judging() -> None:
    with serving(RIGHT) as script:
        asked = against(script, JudgeSettings(max_calls=2))
        asked.ask_question(QUESTION)
        asked.ask_question(QUESTION)
        with pytest.raises(BudgetSpent) as caught:
            asked.ask_question(QUESTION)
        assert len(script.requests) == 2
    assert caught.value.exit_code == 4


def test_the_limit_of_cost_stops_judging_and_is_not_passed() -> None:
    def dear(_model: str, usage: Usage) -> float:
        return usage.input * 1e-5 + usage.output * 5e-5

    answer = text(json.dumps(GOOD), usage={"input_tokens": 4_000, "output_tokens": 800})
    with serving(answer) as script:
        asked = against(script, JudgeSettings(max_cost_usd=0.5), price=dear)
        with pytest.raises(BudgetSpent):
            for _ in range(100):
                asked.ask_question(QUESTION)
        cost = asked.use().cost_usd
        assert cost is not None
        assert 0.08 <= cost <= 0.5
        assert len(script.requests) == asked.use().calls


def test_a_limit_of_cost_needs_a_known_price() -> None:
    with serving(RIGHT) as script, pytest.raises(UsageError, match="price of cheap"):
        against(script, JudgeSettings(max_cost_usd=1.0))


def test_a_suite_s_rubric_reaches_the_model(tmp_path: Path) -> None:
    (tmp_path / "answer.yaml").write_text("id: answer\nversion: ours\nasks: Does it name the amount?\n")
    (tmp_path / "README.md").write_text("what these are\n")
    with serving(RIGHT) as script:
        asked = against(script, rubrics=read_rubrics(tmp_path))
        assert asked.ask_question(QUESTION).rubric == "answer@ours"
        assert "Does it name the amount?" in script.requests[0]["system"][1]["text"]
    assert asked.versions()["rubric:answer"] == "ours"


# --- start-up ----------------------------------------------------------------------------------------


def test_naming_judges_does_not_import_the_sdk() -> None:
    code = "import sys, evalagent.adapters.judges as j; from evalagent.adapters.settings import Settings;"
    code += "j.judge('rules', Settings()); sys.exit('anthropic' in sys.modules or 'boto3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_newest_model_of_a_family_is_found_by_number_and_not_by_place() -> None:
    ids = [
        "claude-haiku-4-5-20251001",
        "claude-haiku-4-5",
        "claude-sonnet-10",
        "claude-sonnet-9-5",
        "claude-haiku-10-1",
    ]
    assert newest("haiku", ids) == "claude-haiku-10-1"
    assert newest("sonnet", ids) == "claude-sonnet-10"
    assert newest("haiku", ids[:2]) == "claude-haiku-4-5"
    assert newest("opus", ids) is None
