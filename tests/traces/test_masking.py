"""Secrets are masked wherever they stand, alike everywhere, and nothing else is touched."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalagent.model import Event, Json, Link, LogRecord, Span
from evalagent.traces.masking import mark, mask, mask_log, mask_span

KEY = "sk-ant-api03-" + "Ab3" * 8
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.c2lnbmF0dXJl"
BY_FORM = [
    KEY,
    "sk-proj-abcdefgh12345678",
    "sk_live_abcdefgh1234",
    "AKIAIOSFODNN7ABCDEFG",
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2" * 6,
    "glpat-abcdefghij1234567890",
    "xoxb-1234567890-abcdefgh",
    "AIza" + "Sy1_" * 9,
    "hf_" + "aBcD" * 6,
    JWT,
    PEM,
]


@pytest.mark.parametrize("secret", BY_FORM)
def test_a_secret_of_a_known_form_is_masked_in_any_text(secret: str) -> None:
    for before, after in (("", ""), ("use ", " now"), ("(", ")"), ("key:", ","), ("a\n", "\nb")):
        assert mask(before + secret + after) == before + mark(secret) + after
    assert mask([{"note": f"it is {secret}"}]) == [{"note": f"it is {mark(secret)}"}]


@pytest.mark.parametrize("secret", BY_FORM)
def test_json_inside_a_text_stays_json_however_often_it_was_quoted(secret: str) -> None:
    said: Json = {"note": f"first\n{secret}", "next": 'a "quoted" \\ text'}
    for _ in range(4):
        said = {"text": json.dumps(said)}
    masked = mask(said)
    for _ in range(4):
        assert secret not in masked["text"]
        masked = json.loads(masked["text"])
    assert masked["next"] == 'a "quoted" \\ text'
    assert masked["note"].startswith("first\n[masked:")


@pytest.mark.parametrize(
    "key",
    [
        "authorization",
        "Authorization",
        "x-api-key",
        "api_key",
        "apiKey",
        "API-KEY",
        "db.password",
        "http.request.header.authorization",
        "clientSecret",
        "aws_secret_access_key",
        "refresh_token",
        "token",
        "Cookie",
        "LANGSMITH_API_KEY",
        "accessToken",
        "private_key",
    ],
)
def test_what_stands_under_the_key_of_a_secret_is_masked(key: str) -> None:
    hidden = mark("open sesame")
    assert mask({key: "open sesame", "other": "stays"}) == {key: hidden, "other": "stays"}
    assert mask({"key": key, "value": {"stringValue": "open sesame"}})["value"] == {"stringValue": hidden}
    assert mask({"key": key, "type": "string", "value": "open sesame"})["value"] == hidden
    assert mask({"name": key, "value": "open sesame"})["value"] == hidden
    assert json.loads(mask(json.dumps({key: "open sesame"}))) == {key: hidden}
    assert json.loads(mask(json.dumps({key: ["open sesame", "other"]}))) == {key: [hidden, mark("other")]}
    assert ast.literal_eval(mask(repr({key: "open sesame"}))) == {key: hidden}


@pytest.mark.parametrize("levels", range(4))
def test_the_same_secret_has_the_same_mark_whatever_it_is_wrapped_in(levels: int) -> None:
    secret = 'we"ird \\ sec\nret'
    said: Json = {"password": secret}
    for _ in range(levels):
        said = {"arguments": json.dumps(said)}
    masked = mask(said)
    for _ in range(levels):
        masked = json.loads(masked["arguments"])
    assert masked == {"password": mark(secret)}


def test_a_header_keeps_its_scheme_and_the_token_alone_makes_the_mark() -> None:
    hidden = mark("abcdefgh12345678")
    assert mask({"authorization": "Bearer abcdefgh12345678"}) == {"authorization": f"Bearer {hidden}"}
    assert mask("curl -H 'Authorization: Bearer abcdefgh12345678'") == f"curl -H 'Authorization: Bearer {hidden}'"
    assert mask("Authorization: Basic dXNlcjpwYXNz") == f"Authorization: Basic {mark('dXNlcjpwYXNz')}"


def test_urls_and_assignments_lose_their_passwords_only() -> None:
    assert mask("postgres://desk:s3cret@db:5432/x") == f"postgres://desk:{mark('s3cret')}@db:5432/x"
    assert mask("GET /v1?api_key=abcd1234&q=book") == f"GET /v1?api_key={mark('abcd1234')}&q=book"
    assert mask("https://example.org:8080/a?b=c@d") == "https://example.org:8080/a?b=c@d"


@pytest.mark.parametrize(
    "harmless",
    [
        {"max_tokens": 100, "gen_ai.usage.input_tokens": 12, "token_count": 3, "completion_tokens": 4},
        {"next_page_token": "abc", "eos_token": "</s>"},
        [{"token": "Paris", "logprob": -0.1}],
        json.dumps({"max_tokens": 100, "content": [{"token": "Paris", "logprob": -0.1}]}),
        {"properties": {"password": {"type": "string", "description": "the user's password"}}},
        "a risk-averse task-1234567890 asks for basic information about tokens",
        "the password is required; your API key: see the manual",
        {"monkey": "see", "keyboard": "qwerty", "key": "B-7"},
        {"authorization": "", "password": None, "secret": True},
        "0b5e1c2a-7f44-4c58-9d3e-2f1f0c9d8e7a 4925197165276afbd56fcf0e7740be5c",
    ],
)
def test_what_is_no_secret_is_the_very_same_object(harmless: Json) -> None:
    assert mask(harmless) is harmless


def test_a_number_is_masked_under_a_password_and_left_under_a_token() -> None:
    assert mask({"password": 1234, "token": 1234}) == {"password": mark("1234"), "token": 1234}
    assert json.loads(mask('{"pwd": 1234, "n": 5}')) == {"pwd": mark("1234"), "n": 5}
    assert mask({"key": "passwd", "value": {"intValue": "1234"}})["value"] == {"stringValue": mark("1234")}


def test_all_of_a_pair_is_masked_and_not_its_value_alone() -> None:
    pair = {"key": "x-api-key", "value": "abc", "note": f"was {KEY}", "password": 0.5}
    assert mask(pair) == {
        "key": "x-api-key", "value": mark("abc"), "note": f"was {mark(KEY)}", "password": mark("0.5"),
    }  # fmt: skip


def test_json_that_was_cut_off_does_not_show_what_is_left_of_a_secret() -> None:
    for cut in ('{"a": 1, "api_key": "abcdef', r'{"body": "{\"api_key\": \"abcdef', '{"api_key": "abcdef\\'):
        assert "abcdef" not in mask(cut)


def test_the_suites_own_expressions_are_masked_too() -> None:
    assert mask({"note": "card ACME-12345678"}, ["ACME-[0-9]{8}"]) == {"note": f"card {mark('ACME-12345678')}"}
    assert mask("xyz", ["y", "q*"]) == f"x{mark('y')}z"


def test_nothing_is_looked_into_without_end_and_nothing_unseen_passes() -> None:
    value: Json = {"api_key": "abcdef"}
    for _ in range(2000):
        value = [value]
    masked = mask(value)
    while isinstance(masked, list):
        masked = masked[0]
    assert "abcdef" not in str(masked)


def test_spans_and_log_records_are_masked_in_every_part() -> None:
    span = Span(
        "a" * 32, "b" * 16, None, f"call {KEY}", 1, 2, "error", f"bad key {KEY}", {"api_key": "abc", "n": 1},
        (Event(f"e {KEY}", 1, {"x": KEY}),), (Link("c" * 32, "d" * 16, {"token": "t0k"}),),
        resource={"env.SECRET": "s"},
    )  # fmt: skip
    masked = mask_span(span)
    assert KEY not in repr(masked)
    assert masked.attributes == {"api_key": mark("abc"), "n": 1}
    assert masked.links[0].attributes == {"token": mark("t0k")}
    assert masked.resource == {"env.SECRET": mark("s")}
    assert masked.events[0].attributes == {"x": mark(KEY)}
    assert (masked.span_id, masked.start_ns, masked.status) == (span.span_id, 1, "error")
    assert mask_span(masked) is masked
    log = LogRecord("a" * 32, "b" * 16, 1, "e", {"content": KEY})
    assert mask_log(log).body == {"content": mark(KEY)}
    assert mask_log(mask_log(log)) == mask_log(log)


PIECES = st.sampled_from(
    [*BY_FORM, "Bearer abcdefgh1", "password", "=", ":", '"', "\\", "\n", " ", "https://u:p@h", "x", "'", "[", "token"]
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)
VALUES = st.recursive(
    TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)


@given(VALUES, st.integers(0, 2))
def test_masking_twice_is_masking_once_and_quoted_json_stays_json(value: Json, levels: int) -> None:
    for _ in range(levels):
        value = json.dumps(value)
    masked = mask(value)
    assert mask(masked) == masked
    if levels:
        inner = json.loads(masked)
        if levels == 2:
            json.loads(inner)
