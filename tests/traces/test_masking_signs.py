"""Most text is passed at one glance: never a secret with it, never at a price that grows faster than the text."""

import json
import re
import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalagent.model import Event, Json, Span
from evalagent.traces.masking import mark, mask, mask_span
from evalagent.traces.secret_forms import mask_text
from evalagent.traces.secret_names import NAMES
from evalagent.traces.secret_signs import REACH, may_hold_a_secret

ALNUM = "abcxyzABCXYZ0189"
WORD = ALNUM + "_-"


def some(letters: str, least: int, most: int = 40) -> st.SearchStrategy[str]:
    return st.text(letters, min_size=least, max_size=most)


def then(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*(st.just(p) if isinstance(p, str) else p for p in parts)).map("".join)


SPACES = st.text(" \t\n\r\x0b\x0c\x1c\x1f\x85\u00a0\u2003\u3000", max_size=5)
CASE = st.sampled_from([str.lower, str.upper, str.title])
NAMED = st.sampled_from(sorted({*NAMES, "token"}))


@st.composite
def spelled(draw: st.DrawFn, words: st.SearchStrategy[str], between: str) -> str:
    """A word in any case, with other signs between its letters and letters that case folding makes ASCII."""
    word = draw(CASE)(draw(words))
    if draw(st.booleans()):
        word = word.replace("k", "\u212a").replace("K", "\u212a").replace("I", "\u0130")
    gaps = draw(st.lists(st.text(between, max_size=2), min_size=len(word), max_size=len(word)))
    return "".join(letter + gap for letter, gap in zip(word, gaps, strict=True))


NAME = st.one_of(NAMED, spelled(NAMED, "_$-é日"), then(some(WORD + ". /é", 0, 9), NAMED, st.text(" ", max_size=3)))
HEADER = st.sampled_from(["authorization", "Proxy-Authorization", "x-api-key", "my-api-key", "X-Auth-Token", "Cookie"])
FORMS: dict[str, st.SearchStrategy[str]] = {
    "sk": then("sk-", some(WORD, 20)) | then("sk-", some(WORD, 8), "1"),
    "stripe": then(st.sampled_from(["sk_live_", "rk_test_", "whsec_"]), some(ALNUM, 8)),
    "bearer": then(st.sampled_from(["Bearer", "BEARER", "bearer"]), " ", SPACES, some(ALNUM + "._~+/-", 8), "1"),
    "aws": then(st.sampled_from(["AKIA", "ASIA"]), some("ABC019", 12)),
    "github": then(st.sampled_from(["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"]), some(ALNUM, 10)),
    "gitlab": then("glpat-", some(WORD, 10)),
    "slack": then("xox", st.sampled_from("abeoprs"), "-", some(WORD, 8)),
    "google": then("AIza", some(WORD + "é", 20)) | then("ya29.", some(WORD, 10)),
    "registries": then(st.sampled_from(["hf_", "gsk_", "npm_", "r8_", "lsv2_pt_", "dop_v1_"]), some(ALNUM, 16))
    | then("pypi-", some(WORD, 20)),
    "sendgrid": then("SG.", some(WORD, 12), ".", some(WORD, 12)),
    "json web token": then("eyJ", some(WORD, 6), ".", some(WORD, 6)),
    "private key": then("-----BEGIN ", some("RSA EC", 0, 20), "PRIVATE KEY-----", some(ALNUM + "\n", 0)),
    "url": then(some("abz", 2, 8), "://", some(ALNUM, 0, 80), ":", some(ALNUM + "!:é", 1, 250), "@host"),
    "header": then(HEADER, SPACES, ":", SPACES, some(ALNUM, 4)),
    "spoken": then(
        st.sampled_from(["password", "Passwd", "PASSPHRASE", "api key", "secret_key", "client secret", "access_token"]),
        SPACES, st.sampled_from([":", " is "]), SPACES, some(ALNUM, 4), "1",
    ),
    "assignment": then(some(WORD + ".é", 0, 9), NAMED | spelled(NAMED, "_-é"), "=", some(ALNUM, 4)),
    "key": then('"', NAME, '"', SPACES, ":", SPACES, '"', some(ALNUM, 1), '"') | then("'", NAME, "': 'x'"),
}  # fmt: skip


def embedded(secret: str, before: str, after: str, wraps: list[str], harmless: str) -> str:
    text = before + secret + after
    for wrap in wraps:
        if wrap == "json":
            text = json.dumps({"note": text, "more": harmless})
        elif wrap == "escaped":
            text = json.dumps(text, ensure_ascii=False)[1:-1]
        elif wrap == "repr":
            text = repr({"note": text})
        elif wrap == "url":
            text = f"https://host/path?q=1&note={text}#end"
        else:
            text = f"X-Note: a, {text}\r\nDate: now"
    return text


WRAPS = st.lists(st.sampled_from(["json", "escaped", "repr", "url", "header"]), max_size=4)
EDGES = st.sampled_from(["", " ", "\n", "(", "é", "日", '"', "'", ",", "=", ":", "\0", "a ", "\\n", "-", "."])


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_of_any_form_shows_its_sign_in_whatever_it_is_embedded(form: str) -> None:
    masked = []

    @settings(max_examples=150, deadline=None)
    @given(FORMS[form], EDGES, EDGES, WRAPS, st.text(max_size=20))
    def shows(secret: str, before: str, after: str, wraps: list[str], harmless: str) -> None:
        text = embedded(secret, before, after, wraps, harmless)
        if mask_text(text) != text:
            masked.append(text)
            assert may_hold_a_secret(text)
            assert may_hold_a_secret("\0".join(["before", text, "after"]))

    shows()
    assert len(masked) >= 10, "much of what is made here is a secret to the rules"


HOSTILE = st.lists(
    st.one_of(*FORMS.values())
    | st.sampled_from(["sk-", "key", "token", "is", ":", "=", '"', "'", "\\", " ", "\n", "\u0131", "\ud800", "1"])
    | st.text(max_size=3),
    max_size=9,
).map("".join)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(HOSTILE, st.integers(0, 40), st.integers(0, 40))
def test_what_the_rules_change_has_a_sign(text: str, skipped: int, cut: int) -> None:
    text = text[skipped : len(text) - cut]
    assert mask_text(text) == text or may_hold_a_secret(text)


@pytest.mark.parametrize(
    "harmless",
    [
        '{"nextPageToken": "CAUQAA", "next_token": "x", "input-token" : 5, "max_tokens": 9, "type": "token"}',
        json.dumps(json.dumps({"next_page_token": "abc", "tokens": ["a"]})),
        "the cookie policy, the api: v1, tokens, a token, https://host:8080/a?b=c@d and risk-averse people",
    ],
)
def test_what_often_stands_in_traces_and_is_no_secret_needs_no_closer_look(harmless: str) -> None:
    assert not may_hold_a_secret(harmless)
    for secret in ('"token": "x"', '"page token": "x"', "sk-abcdefgh1", "x next_token=[a]; token=abcd", "'pwd':'x'"):
        assert may_hold_a_secret(f"{harmless} {secret}")
        assert may_hold_a_secret(f'{harmless}, "next_token":{secret}')


def test_no_other_letter_than_those_known_is_one_of_ascii_when_case_is_ignored() -> None:
    latin = re.compile("[a-z]", re.IGNORECASE)
    others = [chr(code) for code in range(128, sys.maxunicode + 1)]
    folded = {one for one in others if latin.match(one) or any(c.isascii() for c in one.lower())}
    assert folded == {"\u0130", "\u0131", "\u017f", "\u212a"}


HISTORY = "the customer asks where the parcel is and when it will be there; "


@settings(max_examples=100, deadline=None)
@given(
    st.lists(HOSTILE | st.integers(0, 12).map(lambda times: HISTORY * times), max_size=8),
    st.sampled_from(["", "]", '"}]}', "x" * 15]),
    st.integers(0, 3),
)
def test_a_history_that_grows_is_masked_as_if_it_were_never_seen_before(
    parts: list[str], end: str, forgotten: int
) -> None:
    text = HISTORY * 10
    for number, part in enumerate(parts):
        text = text[forgotten * number * 9 :] + part
        attributes = {"messages": text + end, "n": number}
        span = Span("a" * 32, f"{number:016x}", None, "chat", 1, 2, attributes=attributes)
        assert mask_span(span).attributes == mask(attributes)


def test_a_secret_at_the_seam_between_old_and_new_is_masked() -> None:
    secret = "postgres://" + "u" * 80 + ":" + "p" * 256 + "@"
    for cut in range(len(secret)):
        old = HISTORY * 20 + " " + secret[:cut]
        spans = [
            Span(f"{cut:032x}", "b" * 16, None, "chat", 1, 2, attributes={"m": text})
            for text in (old, old + secret[cut:] + "db")
        ]
        assert mask_span(spans[0]) is spans[0]
        assert mask_span(spans[1]).attributes["m"].endswith(f":{mark('p' * 256)}@db")
    assert len(secret) < REACH


def test_a_span_without_secrets_is_the_very_same_and_one_secret_anywhere_is_found() -> None:
    def span(**more: Json) -> Span:
        attributes = {"plain": "text", "n": 1, "list": ["a", {"b": ["c"]}], "long": HISTORY * 40}
        return Span("a" * 32, "b" * 16, None, "chat", 1, 2, **{"attributes": attributes, **more})

    clean = span(events=(Event("e", 1, {"x": ["y"]}),), resource={"service.name": "desk"})
    assert mask_span(clean) is clean
    key = "sk-abcdefgh12345678"
    deep: Json = key
    for _ in range(5):
        deep = [{"x": deep}]
    for attributes in ({"a": key}, {"a": deep}, {"a": {"token": "x"}}, {key: 1}, {"a": {"key": "pwd", "value": 1}}):
        masked = mask_span(span(attributes=attributes))
        assert masked.attributes == mask(attributes) != attributes


LONG: dict[str, Callable[[int], str]] = {
    "backslashes under a key": lambda n: '"pwd":"' + "\\" * n,
    "quotes": lambda n: '"pwd":' + "\"'" * (n // 2),
    "equal signs": lambda n: "token" + "=" * n,
    "beginnings of JSON web tokens": lambda n: "eyJ-" * (n // 4),
    "passwords without a digit": lambda n: "password:" * (n // 9),
    "keys": lambda n: '"token":"a", "logprob" ' * (n // 24),
    "escaped keys": lambda n: ('"pwd":"' + "\\" * 1023) * (n // 1030),
    "spaces after a header": lambda n: "cookie" + " " * n + "cookie: " + " " * n,
    "beginnings of private keys": lambda n: "-----BEGIN PRIVATE KEY-----" * (n // 27),
    "parts of names": lambda n: "tokesecrepasswautho" * (n // 19) + "token=abcd",
    "harmless names in one url": lambda n: "ab://a:" + "'next_token=abcd:" * (n // 17),
    "letters to fold": lambda n: "\u0131\u212a" * (n // 2) + "token=abcd",
}


@pytest.mark.parametrize("kind", LONG)
def test_time_grows_with_the_text_and_no_faster(kind: str) -> None:
    def seconds(length: int) -> float:
        best = 1e9
        for attempt in range(2):
            text = f"{attempt} {LONG[kind](length)}"
            start = time.process_time()
            mask(text)
            best = min(best, time.process_time() - start)
        return best

    seconds(1000)
    assert seconds(256_000) < 40 * max(seconds(16_000), 0.0005), "16 times the text"
