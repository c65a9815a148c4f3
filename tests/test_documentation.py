"""The documents are true: what they name exists, and what exists is in them."""

import re
import subprocess
from pathlib import Path

import pytest

from evalagent.suites import Agent, Budgets, Case, Expected, Gate, JudgeSettings, Suite, World

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "skills").glob("*/SKILL.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (document.parent / target).exists(), target


def test_every_make_target_that_the_readme_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`?make ([a-z]+)", (ROOT / "README.md").read_text()))
    assert named - {"and", "it"} <= targets


def test_every_command_that_the_documents_name_exists() -> None:
    from evalagent.cli import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    known |= {group.name for group in app.registered_groups}
    for document in DOCUMENTS:
        for word in re.findall(r"`(?:\.venv/bin/)?evalagent ([a-z]+)", document.read_text()):
            assert word in known, (document.name, word)


def test_every_key_of_suite_and_case_is_documented() -> None:
    text = (ROOT / "docs/suite.md").read_text()
    for model in (Suite, Agent, World, Budgets, JudgeSettings, Gate, Case, Expected):
        for key in model.model_fields:
            assert re.search(rf"\b{key}\b", text), f"{model.__name__}.{key}"


def test_no_placeholder_is_left() -> None:
    for document in DOCUMENTS:
        assert not re.search(r"@@|TODO|FIXME|XXX", document.read_text()), document.name


def test_skills_have_the_frontmatter_that_assistants_read() -> None:
    for skill in (ROOT / "skills").glob("*/SKILL.md"):
        _, front, _ = skill.read_text().split("---", 2)
        told = dict(line.split(": ", 1) for line in front.strip().splitlines())
        assert told["name"] == skill.parent.name
        assert 0 < len(told["description"]) <= 1024


def test_make_help_lists_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in re.findall(r"^\.PHONY: ([a-z]+)", (ROOT / "Makefile").read_text(), re.MULTILINE):
        assert f"make {target}" in shown
