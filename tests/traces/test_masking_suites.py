"""What a suite's own expressions match is masked, and no expression can stop the evaluation."""

from pathlib import Path

import pytest

from evalagent.adapters.files import load_suite
from evalagent.errors import UsageError
from evalagent.model import Span
from evalagent.traces.masking import mark, mask, mask_span
from evalagent.traces.suite_secrets import SuiteSecrets


def test_expressions_match_as_usual() -> None:
    for expression, text, hidden in (
        ("ACME-[0-9]{8}", "card ACME-12345678", "ACME-12345678"),
        ("(?i)acme-\\d+", "card Acme-1 is old", "Acme-1"),
        ("^in[a-z]+$", "internal", "internal"),
        ("(?P<who>Ann|Bob) Lee", "ask Bob Lee", "Bob Lee"),
        ("Zoë|日本", "dear Zoë \ud800", "Zoë"),
        ("x{3}", "axxxb", "xxx"),
    ):
        assert mask(text, [expression]) == text.replace(hidden, mark(hidden))
        assert mask({"a": [text]}, [expression]) == {"a": [text.replace(hidden, mark(hidden))]}
        span = Span("a" * 32, "b" * 16, None, text, 1, 2, attributes={"a": text, "b": "other"})
        masked = mask_span(span, [expression])
        assert masked.name == masked.attributes["a"] == text.replace(hidden, mark(hidden))
        assert mask_span(masked, [expression]) is masked


def test_a_texts_beginning_is_its_own_though_many_texts_are_looked_at_together() -> None:
    assert mask(["b", "ab", "b\nab"], ["^ab"]) == ["b", mark("ab"), "b\nab"]
    assert mask(["ab", "abc"], ["ab\\z"]) == [mark("ab"), "abc"]


def test_several_expressions_apply_one_after_the_other_beside_the_rules() -> None:
    text = "ticket T-17 for sk-abcdefgh12345678 by Ann"
    assert (
        mask(text, ["T-\\d+", "Ann", "q*"])
        == f"ticket {mark('T-17')} for {mark('sk-abcdefgh12345678')} by {mark('Ann')}"
    )


def test_an_expression_that_explodes_elsewhere_takes_no_time() -> None:
    assert mask("a" * 200_000 + "!", ["(a+)+$", "(a|a)*b", "(.*a){20}x"]) == "a" * 200_000 + "!"


@pytest.mark.parametrize("expression", ["ACME-[", "(?=a)b", "(a)\\1", "(?<!x)y", "a{2000}", "\\C", "\ud800"])
def test_an_expression_that_is_none_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        SuiteSecrets([expression])


def test_a_suite_with_such_an_expression_is_refused_by_the_name_of_its_key(tmp_path: Path) -> None:
    (tmp_path / "agent.py").touch()
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": "b"}\n')
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "name: desk\nagent: {source: ., command: [python, agent.py]}\ncases: cases.jsonl\nsecrets: ['a', '(?=b)c']\n"
    )
    with pytest.raises(UsageError, match=r"suite\.yaml: `secrets\.1`: no regular expression: .*\(\?="):
        load_suite(suite)
