"""Names of steps, causes and anchors in a report."""

import re
from dataclasses import dataclass, field

from evalagent import taxonomy
from evalagent.errors import UsageError
from evalagent.model import Step
from evalagent.reporting.wording import line

_ASPECTS = {
    "understand": "understanding the task",
    "plan": "planning",
    "choose_tool": "choosing a tool",
    "fill_arguments": "filling in arguments",
    "read_result": "reading a result",
    "delegate": "delegating",
    "answer": "answering",
}


def where(step: Step) -> str:
    """A step in words: what kind it is, what it does, whose it is."""
    if step.kind == "llm":
        said = f"model step {_ASPECTS[step.aspect]}" if step.aspect in _ASPECTS else "model step"
    else:
        said = f"{step.kind} {line(step.name, 60)}"
    return f"{said} ({line(step.agent, 40)})" if step.agent else said


def label(step: Step) -> str:
    """A step in the few characters that a drawing has room for."""
    if step.kind == "llm" and step.aspect:
        return step.aspect.replace("_", " ")
    return line(step.name, 40) or step.kind


def category_name(category: str | None) -> tuple[str, str]:
    """The name and the definition of a class of failure; the id itself where the taxonomy does not know it."""
    if category is None:
        return "", ""
    try:
        found = taxonomy.leaf(category)
    except UsageError:
        return line(category, 60), ""
    return found.name, found.definition


@dataclass(slots=True)
class Anchors:
    """Gives out anchors: letters, digits, dots, dashes and underscores only, each once in a report."""

    _taken: set[str] = field(default_factory=set)

    def take(self, *parts: str | int | None) -> str:
        wanted = "-".join(re.sub(r"[^A-Za-z0-9._-]", "_", str(part))[:120] for part in parts if part is not None)
        anchor, number = wanted, 1
        while anchor in self._taken:
            number += 1
            anchor = f"{wanted}-{number}"
        self._taken.add(anchor)
        return anchor
