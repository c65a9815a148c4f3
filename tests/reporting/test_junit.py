from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from evalagent.reporting import junit
from evalagent.reporting.composing import compose
from tests.reporting.library_desk import HOSTILE, library_desk, loose_traces
from tests.reporting.poison import poisoned
from tests.reporting.small_run import GOLDEN, rendered

rulings = st.lists(st.sampled_from(["pass", "fail", "not_judged"]), max_size=4)


def parsed(record) -> ElementTree.Element:
    return ElementTree.fromstring(junit.render(compose(record)))


def outcomes(record) -> list[str]:
    return [case[0].tag if len(case) else "passed" for case in parsed(record).iter("testcase")]


def test_it_is_what_it_was() -> None:
    assert rendered("junit.xml") == (GOLDEN / "junit.xml").read_text("utf-8")


def test_every_trial_is_a_test_case_and_the_failed_ones_are_failures() -> None:
    root = parsed(library_desk())
    suite = root.find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("40", "8", "0")
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    assert "merge-accounts trial 4" in failed and len(failed) == 8
    text = next(case for case in root.iter("testcase") if case.get("name") == "waive-fee trial 3")[0].text
    assert "root cause: Wrong value" in text and "world: unexpected: fees[18]" in text


@given(st.sampled_from([0, 1, 3, 4]), rulings)
def test_there_is_a_failure_if_and_only_if_the_exit_code_is_1(code, said) -> None:
    found = outcomes(loose_traces(code, *said))
    assert ("failure" in found) == (code == 1)
    assert ("error" in found) or code not in (3, 4)
    assert code != 0 or "error" not in found or "fail" in said


def test_undecided_traces_are_skipped_at_0_and_errors_at_3() -> None:
    assert outcomes(loose_traces(0, "pass", "not_judged")) == ["passed", "skipped"]
    assert outcomes(loose_traces(3, "pass", "not_judged")) == ["passed", "error"]
    [skipped] = parsed(loose_traces(0, "not_judged")).iter("skipped")
    assert skipped.get("message").startswith("not judged: ")


def test_an_undecided_trial_is_an_error_beside_failures() -> None:
    found = outcomes(library_desk(unjudged=True))
    assert (found.count("failure"), found.count("error"), found.count("skipped")) == (8, 1, 0)


def test_a_reason_that_belongs_to_no_run_gets_a_test_case_of_its_own() -> None:
    root = parsed(loose_traces(3, "pass"))
    [error] = root.iter("error")
    assert error.get("message") == "not judged: a line could not be read"
    [failure] = parsed(loose_traces(1, "pass")).iter("failure")
    assert failure.get("message") == "trace: loop"


def test_hostile_text_and_characters_that_xml_cannot_hold_do_not_break_it() -> None:
    text = HOSTILE + "\x0b\ud800\uffff]]>&amp;\n\t\"'"
    root = parsed(poisoned(library_desk(), text))
    assert {element.tag for element in root.iter()} == {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure"
    }  # fmt: skip
    assert "<script>" in root.find("testsuite").get("name")


@given(st.text(max_size=40))
def test_any_title_and_reason_can_be_parsed(text) -> None:
    record = replace(loose_traces(3, "pass"), title=text, reasons=(text,))
    assert parsed(record).find("testsuite") is not None
