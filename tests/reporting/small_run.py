"""A small run; its report stands in `golden/`, which `python -m tests.reporting.small_run` writes anew."""

from pathlib import Path

from evalagent.reporting import json, junit, markdown
from evalagent.reporting.composing import compose
from tests.reporting.library_desk import library_desk

GOLDEN = Path(__file__).parent / "golden"
FORMS = {"report.md": markdown.render, "report.json": json.render, "junit.xml": junit.render}


def rendered(name: str) -> str:
    return FORMS[name](compose(library_desk(only=("reserve-copy", "waive-wrong-fee", "hostile-note"))))


if __name__ == "__main__":
    for form in FORMS:
        (GOLDEN / form).write_text(rendered(form), encoding="utf-8")
