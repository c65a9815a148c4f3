import re
from dataclasses import replace

import pytest

from evalagent.errors import UsageError
from evalagent.judging.deciding import decide
from evalagent.judging.rubrics import IDS, builtin, overridden, parse_rubric
from evalagent.taxonomy import LEAVES
from tests.judging.small_runs import refund

QUESTION = decide(refund(), (), 0.7).questions[-1]


def test_every_aspect_and_kind_has_a_rubric_whose_categories_exist() -> None:
    rubrics = builtin()
    assert set(rubrics.by_id) == set(IDS)
    for rubric in rubrics.by_id.values():
        named = set(re.findall(r"\bF\d\d\b", rubric.text))
        assert named <= set(LEAVES), rubric.id
        assert "It is right if" in rubric.text
        assert rubric.key == f"{rubric.id}@{rubric.version}"


def test_a_suite_s_rubric_takes_the_place_of_the_built_in_one() -> None:
    rubrics = overridden({"mine.yaml": "id: answer\nversion: acme-2\nasks: Is it in rhyme?\n"})
    fitting = rubrics.fitting(QUESTION)
    assert (fitting.key, fitting.text) == ("answer@acme-2", "Is it in rhyme?")
    assert rubrics.by_id["plan"] == builtin().by_id["plan"]
    assert rubrics.versions()["answer"] == "acme-2"


def test_a_rubric_for_a_node_is_for_that_node_only() -> None:
    rubrics = overridden({"poet.yaml": "id: answer\nnode: poet\nasks: Is it in rhyme?\n"})
    assert rubrics.fitting(replace(QUESTION, node="poet")).text == "Is it in rhyme?"
    assert rubrics.fitting(replace(QUESTION, node="clerk")) == builtin().by_id["answer"]
    assert rubrics.fitting(QUESTION) == builtin().by_id["answer"]


def test_a_markdown_file_is_a_rubric_in_free_words() -> None:
    rubric = overridden({"answer.md": "Be strict about amounts.\n"}).fitting(QUESTION)
    assert rubric.text == "Be strict about amounts."


def test_an_edited_rubric_without_a_version_never_passes_for_the_old_one() -> None:
    one, two = (parse_rubric(f"id: answer\nasks: {text}\n", "answer.yaml") for text in ("Is it true?", "Is it new?"))
    assert one.key != two.key


def test_an_unknown_kind_is_judged_by_the_rubric_for_others() -> None:
    assert builtin().fitting(replace(QUESTION, rubric="teleport")).id == "other"


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("a.yaml", "id: anser\nasks: x\n", "id"),
        ("a.yaml", "id: answer\nask: x\n", "asks"),
        ("a.yaml", "id: answer\nasks: x\nexamples: [{step: s, score: 90, because: b}]\n", "score"),
        ("a.yaml", "id: [answer\n", "a.yaml:"),
        ("a.yaml", "- answer\n", "expected keys"),
        ("anser.md", "x", "answer"),
        ("answer.md", "  \n", "holds no rubric"),
        ("answer.txt", "x", ".yaml"),
    ],
)
def test_a_file_that_is_no_rubric_is_named_with_what_is_wrong(file: str, text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        overridden({file: text})
    assert file in str(caught.value)
    assert told in str(caught.value)


def test_two_rubrics_for_the_same_steps_are_an_error() -> None:
    with pytest.raises(UsageError, match=r"answer\.md"):
        overridden({"answer.md": "x", "answer.yaml": "id: answer\nasks: y\n"})
