"""A model has the price of its own entry, whatever its name is wrapped in, or none; never that of a neighbour."""

import re
from datetime import date

import pytest

from evalagent.errors import UsageError
from evalagent.model import Tokens
from evalagent.traces.price_tables import list_prices
from evalagent.traces.prices import cost_of, price_of
from evalagent.traces.suite_prices import parse_prices

LISTED = list_prices().prices


@pytest.mark.parametrize(
    ("reported", "entry"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("openai/gpt-4o", "gpt-4o"),
        ("openai:gpt-4o-mini", "gpt-4o-mini"),
        ("azure/gpt-4.1-2025-04-14", "gpt-4.1"),
        ("openrouter/openai/gpt-4.1-nano", "gpt-4.1-nano"),
        ("gpt-35-turbo", "gpt-3.5-turbo"),
        ("o3-mini-2025-01-31", "o3-mini"),
        ("o3-2025-04-16", "o3"),
        ("gpt-5-pro-2025-10-06", "gpt-5-pro"),
        (" GPT-4o ", "gpt-4o"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-opus-4-0", "claude-opus-4"),
        ("claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-3.7-sonnet", "claude-3-7-sonnet"),
        ("claude-4-sonnet-20250514", "claude-sonnet-4"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("eu.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("bedrock/apac.anthropic.claude-3-haiku-20240307-v1:0:200k", "claude-3-haiku"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/global.anthropic.claude-opus-4-6-v1",
            "claude-opus-4-6",
        ),
        ("arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-3-opus-20240229-v1:0", "claude-3-opus"),
        ("claude-3-5-sonnet-v2@20241022", "claude-3-5-sonnet"),
        ("vertex_ai/claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("google-gla:gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("publishers/google/models/gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("projects/p-1/locations/global/publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash"),
    ],
)
def test_a_reported_name_has_the_price_of_its_model(reported: str, entry: str) -> None:
    assert price_of(reported) == LISTED[entry] is not None


@pytest.mark.parametrize(
    "reported",
    [
        "gpt-4o-2024-05-13", "gpt-4o-audio-preview", "gpt-4o-realtime-preview-2024-12-17", "gpt-4o-mini-tts",
        "chatgpt-4o-latest", "ft:gpt-4o-mini-2024-07-18:acme::7p4lURel", "gpt-3.5-turbo-0613", "gpt-4-32k",
        "gpt-4-32k-0613", "o1-mini", "o1-preview-2024-09-12", "o3-deep-research", "gpt-5-codex", "gpt-oss-120b",
        "gpt-4.5-preview", "claude-sonnet-4-55", "claude-2.1", "claude-instant-v1", "claude-opus",
        "anthropic.claude-v2:1", "gemini-2.5-flash-preview-04-17", "gemini-2.5-flash-image",
        "gemini-2.5-pro-preview-05-06", "gemini-pro", "acme/gpt-4o", "groq/openai/gpt-4o", "my-gpt-4o", "gpt-4o-acme",
        "gpt-4o:free", "anthropic/claude-3.5-sonnet:beta",
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3", "", "/", "openai/", "x" * 5000,
    ],
)  # fmt: skip
def test_a_neighbour_of_a_listed_model_has_no_price_of_it(reported: str) -> None:
    assert price_of(reported) is None


def test_no_model_is_known() -> None:
    assert price_of(None) is None
    assert cost_of(Tokens(1, 1), "acme-1", "genai") is None
    assert cost_of(Tokens(1, None), "gpt-4o", "genai") is None
    assert cost_of(None, "gpt-4o", "genai") is None


def test_every_listed_model_is_found_by_its_own_name_and_makes_sense() -> None:
    found = list_prices()
    for model, price in LISTED.items():
        assert price_of(model) == price
        date.fromisoformat(found.dates[model])
        assert re.fullmatch(r"[a-z0-9.-]+", model)
        if price is None:
            continue
        assert 0 < price.input <= price.output or (price.output == 0 and "embedding" in model)
        for one in filter(None, (price, price.over)):
            assert one.cache_read is None or 0 < one.cache_read < one.input
            assert one.cache_write is None or one.input < one.cache_write < 2 * one.input
        assert (price.over is None) == (price.over_tokens is None)
        assert price.over is None or price.over.input > price.input
    assert found.as_of == max(found.dates.values())


def test_cached_tokens_are_counted_once_at_their_own_price() -> None:
    assert cost_of(Tokens(1000, 100, 400), "gpt-4o", "genai") == pytest.approx(0.0030)
    assert cost_of(Tokens(1000, 100, 400, 200), "claude-haiku-4-5", "langfuse") == pytest.approx(0.00179)
    assert cost_of(Tokens(1000, 100, 400, 200), "claude-haiku-4-5", "genai") == pytest.approx(0.00119)
    assert cost_of(Tokens(100, 10, 400), "gpt-4o", "genai") == pytest.approx(0.00085), "400 of 100 cannot be"


def test_a_long_prompt_has_the_prices_of_long_prompts_for_all_its_tokens() -> None:
    assert cost_of(Tokens(200_000, 1000), "gemini-2.5-pro", "genai") == pytest.approx(0.26)
    assert cost_of(Tokens(200_001, 1000), "gemini-2.5-pro", "genai") == pytest.approx(0.5150025)
    assert cost_of(Tokens(1, 1000, 100_000), "claude-haiku-5-5", "genai") == pytest.approx(0.0075005)


def test_a_suites_own_prices_come_first_by_any_form_of_the_name() -> None:
    own = {"gpt-4o": {"input": 1, "output": 2}, "my/model": {"input": 3, "output": 4, "cache_read": 0}}
    for name in ("gpt-4o", "openai/gpt-4o-2024-08-06", "acme/gpt-4o"):
        price = price_of(name, own)
        assert price and (price.input, price.output) == (1, 2)
    assert price_of("gpt-4o-mini", own) == LISTED["gpt-4o-mini"]
    assert cost_of(Tokens(1_000_000, 0, 1_000_000), "my/model", "genai", own) == 0
    assert price_of("model", own) is None


def test_a_table_that_is_none_is_refused_with_its_line() -> None:
    assert parse_prices("m: {input: 1, output: 2.5, cache_write: 3}\n", "p.yaml") == {
        "m": {"input": 1, "output": 2.5, "cache_write": 3}
    }
    for text, said in (
        ("- a", "p.yaml:1: expected model names"),
        ("m: {input: 1}", "`m`: expected `{input: …"),
        ("m: {input: 1, output: 2}\nn: {input: 1, output: true}", "p.yaml:2: `n.output`: expected dollars"),
        ("m: {input: 1, output: 2, ouput: 3}", "`m.ouput`: unknown key; did you mean `output`?"),
    ):
        with pytest.raises(UsageError) as caught:
            parse_prices(text, "p.yaml")
        assert said in str(caught.value)
