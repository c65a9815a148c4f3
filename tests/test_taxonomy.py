"""The classes of failure are whole, opaque and told apart."""

import re
from pathlib import Path

import pytest

from evalagent.errors import UsageError
from evalagent.taxonomy import CROSSWALKS, LEAVES, OTHER, leaf, theirs

AREAS = {
    "Input handling", "Reasoning and planning", "Tool use", "Execution and environment",
    "Synthesis", "Coordination", "Other",
}  # fmt: skip


def test_there_are_three_levels_and_every_area_has_leaves() -> None:
    assert len(LEAVES) - 1 >= 21
    assert {entry.area for entry in LEAVES.values()} == AREAS
    assert len({(entry.area, entry.group) for entry in LEAVES.values()}) >= 12


def test_ids_are_opaque_and_names_and_definitions_are_told_apart() -> None:
    assert all(re.fullmatch(r"F\d\d", name) and entry.id == name for name, entry in LEAVES.items())
    for part in ("name", "definition", "example", "counter_example"):
        texts = [getattr(entry, part) for entry in LEAVES.values()]
        assert all(texts) and len(set(texts)) == len(texts), part


def test_a_counter_example_names_only_leaves_that_exist() -> None:
    for entry in LEAVES.values():
        named = set(re.findall(r"F\d\d", entry.counter_example))
        assert named <= set(LEAVES) - {entry.id}, entry.id


def test_an_unknown_class_is_rejected_with_what_is_known() -> None:
    assert leaf("F07").name == "Going in circles"
    assert leaf(OTHER).area == "Other"
    for wrong in ("F00", "f07", "Going in circles", ""):
        with pytest.raises(UsageError, match="F07"):
            leaf(wrong)


def test_the_crosswalks_are_total_over_the_other_schemes_and_name_only_our_leaves() -> None:
    assert {scheme: len(rows) for scheme, rows in CROSSWALKS.items()} == {"MAST": 14, "TRAIL": 20, "AgentRx": 10}
    for rows in CROSSWALKS.values():
        for ours in rows.values():
            assert ours and set(ours) <= set(LEAVES)


def test_a_leaf_can_be_said_in_the_words_of_another_scheme() -> None:
    assert theirs("MAST", "F07") == ("Step repetition",)
    assert theirs("AgentRx", "F20") == ("Misinterpretation of Tool Output",)
    assert theirs("TRAIL", "F40") == ()
    with pytest.raises(UsageError, match="MAST"):
        theirs("MASTER", "F07")
    with pytest.raises(UsageError):
        theirs("MAST", "F00")


def test_the_document_shows_every_leaf_as_it_is() -> None:
    text = (Path(__file__).parent.parent / "docs" / "taxonomy.md").read_text()
    for entry in LEAVES.values():
        assert f"| `{entry.id}` | {entry.name} | {entry.definition} |" in text, entry.id
    for scheme, rows in CROSSWALKS.items():
        for name, ours in rows.items():
            assert f"| {name} | {', '.join(f'`{o}`' for o in ours)} |" in text, (scheme, name)
