import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from evalagent.reporting import html
from evalagent.reporting.composing import compose
from tests.reporting.library_desk import HOSTILE, library_desk, loose_traces
from tests.reporting.poison import poisoned

TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title style body div nav b ul li a span main header h1 h2 h3 h4 p section details summary ol "
        "table thead tbody tr th td blockquote pre dl dt dd i small br code footer svg defs marker path g rect text",
    )
)
ATTRIBUTES = frozenset(
    re.findall(
        r"[\w-]+",
        "lang charset http-equiv content name class id href aria-label aria-hidden open viewbox role x y width height "
        "title data-label "
        "rx d xmlns refx refy markerwidth markerheight markerunits orient marker-end",
    )
)


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.links.append(value)

    def handle_data(self, data) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def page_text() -> str:
    return html.render(compose(library_desk(unjudged=True)))


def test_the_first_screen_answers_whether_it_works_what_breaks_it_and_what_to_do(page_text) -> None:
    words = " ".join(Page(page_text).words)
    for said in ("31 of 39 judged runs passed: 79 %", "95 % interval", "4 of 8 failed runs", "What to do first?"):
        assert said in words
    assert page_text.index("What to do first?") < page_text.index('id="cases"')


def test_every_link_stays_in_the_page_and_meets_an_anchor_that_stands_once(page_text) -> None:
    page = Page(page_text)
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert [anchor for anchor, times in Counter(page.ids).items() if times > 1] == []
    assert "run-merge-accounts-1" in page.ids
    assert any(anchor.startswith("step-merge-accounts-1-") for anchor in page.ids)


def test_nothing_is_loaded_and_nothing_runs(page_text) -> None:
    page = Page(page_text)
    assert set(page.tags) <= TAGS
    assert page.attributes <= ATTRIBUTES
    assert "url(" not in page_text.replace("url(#", "")
    assert not re.search(r"@import|https?://(?!www\.w3\.org/2000/svg)", page_text)


def test_the_policy_allows_the_one_style_sheet_and_nothing_else(page_text) -> None:
    style = re.search(r"<style>(.*?)</style>", page_text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert f'content="{policy}"' in page_text.replace("&#39;", "'")
    assert page_text.index("Content-Security-Policy") < page_text.index("<title>")


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        '"><img src=x onerror=alert(1)>',
        "' onmouseover='x",
        "{{ 7 * 7 }}{% raw %}",
        "</style></svg><iframe>",
        "<!--",
    ],
)
def test_hostile_text_in_every_place_stays_text(text) -> None:
    for record in (library_desk(), loose_traces(1, "fail", "pass", "not_judged")):
        clean, dirty = Page(html.render(compose(record))), Page(html.render(compose(poisoned(record, text))))
        assert set(dirty.tags) <= TAGS
        assert dirty.attributes <= ATTRIBUTES
        assert {link[1:] for link in dirty.links} <= set(dirty.ids)
        assert dirty.tags["details"] == clean.tags["details"]


def test_characters_that_turn_text_around_or_cannot_be_shown_are_replaced() -> None:
    text = html.render(compose(poisoned(library_desk(), "a\x00b\u202ec\ud800d")))
    assert not re.search("[\x00\u202e\ud800]", text)
    assert "a\ufffdb\ufffdc\ufffdd" in text
    text.encode()


def test_verdicts_are_words_and_not_only_colours(page_text) -> None:
    words = [word.strip() for word in Page(page_text).words]
    assert {"pass", "fail", "not judged"} <= set(words)


def test_the_same_record_gives_the_same_bytes_in_whatever_order_it_came() -> None:
    run = library_desk()
    turned = replace(
        run,
        trials=run.trials[::-1],
        traces=run.traces[::-1],
        verdicts=run.verdicts[::-1],
        attributions=run.attributions[::-1],
        outcomes=run.outcomes[::-1],
        versions=dict(reversed(run.versions.items())),
    )
    assert html.render(compose(run)) == html.render(compose(library_desk())) == html.render(compose(turned))


def test_an_empty_record_still_makes_a_page() -> None:
    words = " ".join(Page(html.render(compose(replace(loose_traces(3), traces=(), verdicts=())))).words)
    assert "there is no run to judge" in words
    assert "a line could not be read" in words


def test_a_step_that_a_sentence_names_by_its_id_is_a_link_with_its_number() -> None:
    run = library_desk(only=("waive-fee",))
    [about] = [f for f in run.findings if f.code == "wrong_argument_value"]
    step_ids = [s.step_id for t in run.traces if t.trace_id == about.trace_id for s in t.steps]
    told = replace(
        about, message=f"`waive_fee` (step {step_ids[4]}) went by {step_ids[1]} and <b>step {step_ids[0]}x</b>"
    )
    text = html.render(compose(replace(run, findings=(told,))))
    sentence = text[text.index("<code>wrong_argument_value</code>") :].split("</li>")[0]
    anchor = f"step-waive-fee-3-{step_ids[4]}"
    assert (
        f'`waive_fee` (<a href="#{anchor}">step 5</a>) went by <a href="#step-waive-fee-3-{step_ids[1]}">step 2</a>'
        in sentence
    )
    assert f"&lt;b&gt;step {step_ids[0]}x&lt;/b&gt;" in sentence
    assert f'id="{anchor}"' in text


def test_a_traceback_is_folded_behind_its_exception() -> None:
    run = library_desk(only=("merge-accounts",))
    raised = (
        'Traceback (most recent call last):\n  File "lib.py", line 4, in run\n    go()\ndesk.BadCard: <card> is void'
    )
    traces = tuple(
        replace(t, steps=tuple(replace(s, error=raised) if s.error else s for s in t.steps)) for t in run.traces
    )
    text = html.render(compose(replace(run, traces=traces)))
    assert '<span class="text">desk.BadCard: &lt;card&gt; is void</span><details class="rest">' in text
    assert text.index("desk.BadCard: &lt;card&gt; is void</span>") < text.index("lib.py")
    assert "traceback, 4 lines" in text


def test_trials_are_told_from_counts(page_text) -> None:
    words = Page(page_text).words
    assert "fail #1" in words and "pass #2" in words
    assert not any(re.fullmatch(r"\d+ (pass|fail)", word) for word in words)
