from dataclasses import replace
from pathlib import Path

import pytest

from evalagent.reporting import html
from evalagent.reporting.composing import compose
from tests.reporting.library_desk import HOSTILE, library_desk, loose_traces
from tests.reporting.poison import poisoned

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.browser,
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens a record's page and gives it with what went wrong and what was asked of the network."""

    def go(record, fragment: str = ""):
        file = tmp_path / "report.html"
        file.write_text(html.render(compose(record)), "utf-8")
        page = browser.new_page()
        complaints, requests = [], []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{file.as_uri()}{fragment}")
        return page, complaints, requests

    return go


def test_it_opens_without_complaint_and_asks_the_network_for_nothing(opened) -> None:
    page, complaints, requests = opened(library_desk())
    assert complaints == []
    assert len(requests) == 1 and requests[0].startswith("file:")
    assert page.title() == "library-desk: FAIL"
    assert page.locator("text=What to do first?").is_visible()


def test_the_style_sheet_is_applied_under_its_policy(opened) -> None:
    page, _, _ = opened(library_desk())
    assert page.evaluate("getComputedStyle(document.querySelector('.answers')).display") == "grid"


def test_no_script_runs_from_hostile_text(opened) -> None:
    for text in (
        HOSTILE,
        '"><img src=x onerror="document.title=\'owned\'">',
        "<svg onload=\"document.title='owned'\">",
    ):
        page, complaints, requests = opened(poisoned(library_desk(), text))
        assert page.evaluate("document.querySelectorAll('script, img, iframe, [onload], [onerror]').length") == 0
        assert page.title().startswith("library-desk")
        assert complaints == [] and len(requests) == 1


def test_a_script_that_slipped_in_would_not_run(opened, browser, tmp_path) -> None:
    page, _, _ = opened(library_desk())
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = 1'}))")
    assert page.title() == "library-desk: FAIL"


def test_an_anchor_opens_the_run_it_names(opened) -> None:
    page, _, _ = opened(library_desk(), "#run-waive-wrong-fee-4")
    assert page.locator("#run-waive-wrong-fee-4").is_visible()
    assert page.locator("#run-waive-wrong-fee-4 svg.dag").is_visible()
    assert not page.locator("#run-waive-fee-3").is_visible()


def test_a_step_in_the_drawing_leads_to_the_step_in_the_list(opened) -> None:
    page, _, _ = opened(library_desk(), "#run-waive-fee-3")
    box = page.locator("#run-waive-fee-3 svg.dag a").nth(3)
    wanted = box.get_attribute("href").removeprefix("#")
    assert not page.locator(f"[id='{wanted}']").is_visible()
    box.click()
    assert page.locator(f"[id='{wanted}']").is_visible()
    assert page.locator(f"[id='{wanted}']").get_by_text("depends on").is_visible()


def test_it_reads_on_a_narrow_screen_without_scrolling_sideways(opened) -> None:
    page, _, _ = opened(library_desk(), "#run-merge-accounts-4")
    page.set_viewport_size({"width": 420, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_nothing_scrolls_sideways_on_a_phone(opened) -> None:
    for record in (library_desk(), loose_traces(1, "fail", "pass", "not_judged")):
        page, _, _ = opened(record)
        page.set_viewport_size({"width": 400, "height": 800})
        wide = """[...document.querySelectorAll("html, body, main, .wide, .canvas, section")]
            .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1).map(e => e.className || e.tagName)"""
        assert page.evaluate(wide) == []


def test_a_task_in_the_table_of_traces_takes_one_line(opened) -> None:
    record = loose_traces(1, "fail", "not_judged")
    long = tuple(
        replace(trace, task='{"domain": "library", "wish": "' + "many words " * 40 + '"}') for trace in record.traces
    )
    page, _, _ = opened(replace(record, traces=long))
    page.set_viewport_size({"width": 1280, "height": 800})
    for cell in page.locator(".traces td[data-label=task]").all():
        assert cell.bounding_box()["height"] < 90
        assert cell.locator(".cut").bounding_box()["height"] < 30
