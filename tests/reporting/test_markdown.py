import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from evalagent.reporting import markdown
from evalagent.reporting.composing import compose
from tests.reporting.library_desk import HOSTILE, library_desk, loose_traces
from tests.reporting.poison import poisoned
from tests.reporting.small_run import GOLDEN, rendered

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
NASTY = [
    HOSTILE,
    "<img src=x onerror=alert(1)>",
    "![x](http://evil.example/p.png)",
    "[a]: http://evil.example",
    "http://evil.example www.evil.example <http://evil.example>",
    "a | b | c\n| d |",
    "```\n# big\n```",
    "`code` **bold** _it_ ~~no~~ $x$",
    "&lt;script&gt; &#60;b&#62;",
    "\n\n# Heading\n- item\n1. one\n> quote\n---\n",
]


def tokens(text: str):
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


def test_it_is_what_it_was() -> None:
    assert rendered("report.md") == (GOLDEN / "report.md").read_text("utf-8")


@pytest.mark.parametrize("text", NASTY)
def test_hostile_text_in_every_place_makes_no_markup(text) -> None:
    for record in (library_desk(), loose_traces(1, "fail", "pass", "not_judged")):
        clean = [token.type for token in tokens(markdown.render(compose(record)))]
        dirty = [token.type for token in tokens(markdown.render(compose(poisoned(record, text))))]
        for kind in ("html_block", "html_inline", "link_open", "image", "s_open", "fence", "code_block", "em_open"):
            assert kind not in dirty
        for kind in (
            "heading_open",
            "table_open",
            "tr_open",
            "td_open",
            "list_item_open",
            "strong_open",
            "code_inline",
        ):
            assert dirty.count(kind) == clean.count(kind), kind


def test_text_reads_as_it_was_written() -> None:
    shown = "".join(
        token.content for token in tokens(markdown.md("a_b *c* <d> & [e](f) 1|2 `g`")) if token.type == "text"
    )
    assert shown == "a_b *c* <d> & [e](f) 1|2 `g`"


def test_nobody_is_called_and_nothing_is_linked_by_foreign_text() -> None:
    said = markdown.md("ask @octocat at www.evil.example or https://evil.example")
    assert not re.search(r"@\w|www\.|://", said)


@given(st.text(max_size=60))
def test_any_text_stays_one_paragraph_of_text(text) -> None:
    kinds = {token.type for token in tokens(f"x {markdown.md(text)}")}
    assert kinds <= {"paragraph_open", "paragraph_close", "inline", "text"}


@given(st.text(max_size=60))
def test_any_text_at_the_start_of_a_line_stays_text(text) -> None:
    kinds = {token.type for token in tokens(markdown.md(text))}
    assert kinds <= {"paragraph_open", "paragraph_close", "inline", "text"}


def test_it_fits_into_a_comment_even_for_many_failures() -> None:
    many = loose_traces(1, *["fail"] * 400)
    text = markdown.render(compose(many))
    assert len(text) < 65_536
    assert "more failed traces not told here" in text


def test_lists_that_are_cut_say_how_much_is_missing() -> None:
    run = library_desk(only=("waive-fee",))
    trials = tuple(replace(t, reasons=tuple(f"reason {n}" for n in range(9))) for t in run.trials)
    text = markdown.render(compose(replace(run, trials=trials)))
    assert "- Reason: reason 5\n- … and 3 more, in report.html\n" in text


def test_trials_are_told_from_counts() -> None:
    assert "| \\#1 fail, \\#2 pass, \\#3 pass, \\#4 fail |" in rendered("report.md")


def test_a_version_is_no_list() -> None:
    assert markdown.md("0.1.0") == "0.1.0"
    assert markdown.md("1. one") == "1&#8203;. one"
