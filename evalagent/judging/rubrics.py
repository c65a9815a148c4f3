"""Rubrics: what makes a step right, one for each aspect of a model's step and each other kind of step.

They are data (`builtin/*.yaml`), versioned, and may be overridden by files of the same form: by id, or for the steps
of one graph node only (`node: NAME`). A Markdown file whose stem is the id is a rubric in free words.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalagent.errors import UsageError
from evalagent.judging.questions import Question
from evalagent.suites.documents import read_yaml

IDS = (
    "understand",
    "plan",
    "choose_tool",
    "fill_arguments",
    "read_result",
    "delegate",
    "answer",
    "tool",
    "retrieval",
    "handoff",
    "guardrail",
    "agent",
    "node",
    "other",
)
"""The aspects of an llm step, then the kinds of other steps that a judge is asked about."""


@dataclass(frozen=True, slots=True)
class Rubric:
    """What a judge is told of one kind of step. `text` is Markdown, ready to be shown."""

    id: str
    version: str
    text: str
    node: str | None = None
    """Only for the steps of this graph node."""

    @property
    def key(self) -> str:
        """How verdicts name it: `id@version`."""
        return f"{self.id}@{self.version}"


@dataclass(frozen=True, slots=True)
class Rubrics:
    """Every rubric in force."""

    by_id: Mapping[str, Rubric]
    by_node: Mapping[tuple[str, str], Rubric]
    """(node, id) -> rubric."""

    def fitting(self, question: Question) -> Rubric:
        """The rubric of the step's node, else that of its aspect or kind, else `other`."""
        of_node = self.by_node.get((question.node, question.rubric)) if question.node is not None else None
        return of_node or self.by_id.get(question.rubric) or self.by_id["other"]

    def versions(self) -> dict[str, str]:
        """id -> version of the rubrics for all nodes, for `summary.json`."""
        return {key: rubric.version for key, rubric in sorted(self.by_id.items())}


class _Example(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    step: str
    score: Annotated[float, Field(ge=0, le=1)]
    because: str


class _File(BaseModel):
    """A rubric file in YAML."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Literal[IDS]  # type: ignore[valid-type]
    version: str | int | None = None
    node: str | None = None
    asks: str
    right: list[str] = []
    wrong: list[str] = []
    fault: str | None = None
    examples: list[_Example] = []


@cache
def builtin() -> Rubrics:
    """The rubrics that come with the program."""
    folder = files("evalagent.judging") / "builtin"
    read = (parse_rubric((folder / f"{name}.yaml").read_text("utf-8"), f"{name}.yaml") for name in IDS)
    return Rubrics({rubric.id: rubric for rubric in read}, {})


def overridden(texts: Mapping[str, str]) -> Rubrics:
    """The built-in rubrics with those of a suite's folder (file name -> text) in their place.

    A file that is no rubric, or two rubrics for one id and node: UsageError.
    """
    by_id = dict(builtin().by_id)
    by_node: dict[tuple[str, str], Rubric] = {}
    seen: dict[tuple[str | None, str], str] = {}
    for name in sorted(texts):
        rubric = parse_rubric(texts[name], name)
        if other := seen.get((rubric.node, rubric.id)):
            raise UsageError(f"{other} is a rubric for the same steps; one of them has to go", file=name, key="id")
        seen[rubric.node, rubric.id] = name
        if rubric.node is None:
            by_id[rubric.id] = rubric
        else:
            by_node[rubric.node, rubric.id] = rubric
    return Rubrics(by_id, by_node)


def parse_rubric(text: str, file: str) -> Rubric:
    """A rubric from a YAML or Markdown text; UsageError names file and key. Without a version of its own it gets one
    made from its text, so that an edited rubric never passes for the old one."""
    stem, _, suffix = file.rpartition("/")[2].rpartition(".")
    hashed = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if suffix.lower() in ("md", "markdown"):
        if stem not in IDS:
            raise UsageError(f"the file's name says what it is for: one of {', '.join(IDS)}", file=file)
        if not text.strip():
            raise UsageError("holds no rubric", file=file)
        return Rubric(stem, hashed, text.strip())
    if suffix.lower() not in ("yaml", "yml"):
        raise UsageError("a rubric is a .yaml, .yml or .md file", file=file)
    value = read_yaml(text, file).value
    if not isinstance(value, dict):
        raise UsageError("expected keys such as `id:`, `asks:`, `right:`, `wrong:`", file=file, line=1)
    try:
        said = _File.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(first["msg"], file=file, key=".".join(map(str, first["loc"]))) from error
    version = hashed if said.version is None else str(said.version)
    return Rubric(said.id, version, _rendered(said), said.node)


def _rendered(said: _File) -> str:
    lines = [said.asks.strip()]
    if said.right:
        lines += ["", "It is right if", *(f"- {line.strip()}" for line in said.right)]
    if said.wrong:
        lines += ["", "It is wrong if", *(f"- {line.strip()}" for line in said.wrong)]
    if said.fault:
        lines += ["", f"Whose fault: {said.fault.strip()}"]
    if said.examples:
        lines += ["", "Examples (of other runs than the one you judge)"]
        lines += [f"- {e.step.strip()} → {e.score:g}, because {e.because.strip()}" for e in said.examples]
    return "\n".join(lines)
