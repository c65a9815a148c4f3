"""suite.yaml and cases.jsonl: what may stand in them, and errors that name file, line and key.

Parsing only: which files exist is for `evalagent.adapters.files`, which reads them and calls this.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from evalagent.errors import UsageError
from evalagent.model import Json
from evalagent.suites.documents import read_json, read_yaml

LONGEST_WALL_S = 7 * 86_400.0

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def _fits(path: str) -> str:
    if len(path.encode("utf-8", "surrogatepass")) > 1000 or any(len(part.encode()) > 255 for part in path.split("/")):
        raise ValueError("is too long for the name of a file")
    if "\0" in path:
        raise ValueError("holds a NUL character")
    return path


FileName = Annotated[str, AfterValidator(_fits)]
"""A path from the suite's folder, or an absolute one."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Change(_Strict):
    """One change of the world that a case expects: exactly one of set, insert, delete."""

    table: str
    key: Json = None
    """A scalar, or an object for a key of several columns; not needed with insert."""
    set: dict[str, Json] | None = None
    insert: dict[str, Json] | None = None
    delete: bool | None = None

    @model_validator(mode="after")
    def _one_of(self) -> "Change":
        said = [name for name in ("set", "insert", "delete") if getattr(self, name) not in (None, False)]
        if len(said) != 1:
            raise ValueError("exactly one of `set`, `insert`, `delete: true` is needed")
        if said[0] != "insert" and self.key is None:
            raise ValueError(f"`{said[0]}` needs `key`")
        return self


class WantedTool(_Strict):
    name: str
    args: dict[str, Json] | None = None


class Expected(_Strict):
    """What is right for a case. Absent = nothing is said; `changes: []` = nothing may change."""

    behaviour: str | None = None
    changes: list[Change] | None = None
    reply_values: list[Json] = []
    tools: list[WantedTool] = []
    no_tools: bool = False
    forbidden_tools: list[str] = []
    path: Json = None

    @model_validator(mode="after")
    def _possible(self) -> "Expected":
        wanted = [tool.name for tool in self.tools]
        if self.no_tools and wanted:
            raise ValueError(f"`no_tools` and the wanted tool {wanted[0]!r} exclude each other")
        if both := sorted(set(wanted) & set(self.forbidden_tools)):
            raise ValueError(f"the tool {both[0]!r} is wanted and forbidden")
        return self


class Case(_Strict):
    """One task for the agent."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    input: str | Annotated[list[str], Field(min_length=1)]
    scenario: str | None = None
    severity: Literal["harmless", "normal", "costly"] = "normal"
    expected: Expected = Expected()
    held_out: bool = False


class Agent(_Strict):
    source: FileName
    command: list[str] | None = None
    image: str | None = None
    callable: str | None = None
    url: str | None = None
    reply: Literal["trace", "stdout"] = "trace"
    instrument: Literal["auto", "openinference", "openllmetry", "none"] = "auto"
    tools: list[str] = []
    env: list[str] = []
    egress: list[str] = []

    @field_validator("command")
    @classmethod
    def _runnable(cls, command: list[str] | None) -> list[str] | None:
        if command and not command[0].strip():
            raise ValueError("names no program")
        if any("\0" in word for word in command or ()):
            raise ValueError("holds a NUL character")
        return command

    @field_validator("env")
    @classmethod
    def _names(cls, env: list[str]) -> list[str]:
        wrong = next((name for name in env if not _VARIABLE.fullmatch(name)), None)
        if wrong is not None:
            raise ValueError(f"{wrong[:60]!r} is no name of an environment variable; its value is not written here")
        return env

    @model_validator(mode="after")
    def _startable(self) -> "Agent":
        said = [name for name in ("command", "image", "callable", "url") if getattr(self, name)]
        if not said:
            raise ValueError("say how the agent starts: `command`, `image`, `callable` or `url`")
        if len(said) > 1 and set(said) != {"command", "image"}:
            raise ValueError(f"{' and '.join(f'`{name}`' for name in said)} exclude each other")
        return self


class World(_Strict):
    kind: Literal["sqlite", "files"]
    path: str
    seed: FileName | None = None
    mask: list[str] = []
    """`table.column` (sqlite) or a glob of paths (files) that may change freely."""

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str) -> str:
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError("must be a path inside the agent's working directory")
        if "\0" in path:
            raise ValueError("holds a NUL character")
        if len(path.encode("utf-8", "surrogatepass")) > 200:
            raise ValueError("is longer than 200 bytes")
        return path

    @model_validator(mode="after")
    def _a_file(self) -> "World":
        if self.kind == "sqlite" and not self.place:
            raise ValueError("the path of a database must name a file")
        return self

    @property
    def place(self) -> tuple[str, ...]:
        """The names on the way to it; none for the working directory itself."""
        return tuple(part for part in self.path.split("/") if part not in ("", "."))


class Budgets(_Strict):
    """Limits of one trial; None = no limit but the wall time, which always has one."""

    steps: Annotated[int, Field(gt=0)] | None = None
    tokens: Annotated[int, Field(gt=0)] | None = None
    cost_usd: Annotated[float, Field(gt=0)] | None = None
    wall_s: Annotated[float, Field(gt=0, le=LONGEST_WALL_S)] = 300.0


class JudgeSettings(_Strict):
    tau: Annotated[float, Field(ge=0, le=1)] = 0.7
    cheap: str | None = None
    strong: str | None = None
    floor: Annotated[float, Field(ge=0, le=1)] = 0.0
    max_cost_usd: Annotated[float, Field(gt=0)] | None = None
    max_calls: Annotated[int, Field(gt=0)] | None = None


class Gate(_Strict):
    baseline: str = "latest"
    max_drop: Annotated[float, Field(ge=0, le=1)] = 0.05


class Suite(_Strict):
    """What is evaluated and how."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
    agent: Agent
    world: list[World] = []
    cases: FileName
    trials: Annotated[int, Field(ge=1, le=1000)] = 1
    budgets: Budgets = Budgets()
    requirements: FileName | None = None
    checks: dict[str, Json] = {}
    rubrics: FileName | None = None
    prices: FileName | None = None
    secrets: list[str] = []
    seed: Annotated[int, Field(ge=0)] = 0
    judge: JudgeSettings = JudgeSettings()
    gate: Gate = Gate()

    @field_validator("cases")
    @classmethod
    def _beside(cls, cases: str) -> str:
        if cases.startswith("/"):
            raise ValueError("must be a path from the suite's folder")
        return cases

    @field_validator("world")
    @classmethod
    def _apart(cls, world: list[World]) -> list[World]:
        """Parts are seeded in order: a later one in the place of an earlier one, or around it, would wipe it out."""
        for n, later in enumerate(world):
            for earlier in world[:n]:
                if earlier.place == later.place:
                    raise ValueError(f"two parts of the world are at {later.path!r}")
                if earlier.place[: len(later.place)] == later.place:
                    raise ValueError(f"{later.path!r} holds {earlier.path!r}, and so has to stand before it")
        return world


def parse_suite(text: str, file: str) -> Suite:
    """The suite in a YAML text; UsageError names file, line and key of the first thing that is wrong."""
    document = read_yaml(text, file)
    if not isinstance(document.value, dict):
        raise UsageError("expected keys such as `name:`, `agent:`, `cases:`", file=file, line=1)
    return _validated(Suite, document.value, file, document.line_of)


def parse_cases(text: str, file: str) -> tuple[Case, ...]:
    """The cases in a JSON Lines text, in order; every bad line, key or repeated id is a UsageError."""
    cases: list[Case] = []
    seen: dict[str, int] = {}
    # a line ends with a line feed and nothing else: other separators of Unicode may stand inside a JSON string
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        value = read_json(line, file, number)
        if not isinstance(value, dict):
            raise UsageError('expected an object such as {"id": …, "input": …}', file=file, line=number)
        case = _validated(Case, value, file, lambda _where, number=number: number)  # type: ignore[misc]
        if case.id in seen:
            raise UsageError(f"{case.id!r} stands in line {seen[case.id]} already", file=file, line=number, key="id")
        seen[case.id] = number
        cases.append(case)
    if not cases:
        raise UsageError("holds no case", file=file)
    return tuple(cases)


M = TypeVar("M", bound=BaseModel)


def _validated(model: type[M], value: Mapping[str, Any], file: str, line_of: Callable[[tuple[Any, ...]], int]) -> M:
    try:
        return model.model_validate(value, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False)
        # a mistyped key is told first: what is "missing" beside it mostly stands under the wrong name
        first = next((e for e in found if e["type"] == "extra_forbidden"), found[0])
        where = tuple(
            part
            for part in first["loc"]
            if not (isinstance(part, str) and part.startswith(("list[", "constrained-", "str")))
        )
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            known = _fields_at(model, where[:-1])
            near = difflib.get_close_matches(str(where[-1]), known, 1)
            message = "unknown key" + (f"; did you mean `{near[0]}`?" if near else f"; known are {', '.join(known)}")
        elif first["type"] == "missing":
            message = "is missing"
        else:
            message = f"{message} (got {str(first['input'])[:60]!r})"
        raise UsageError(message, file=file, line=line_of(where), key=".".join(map(str, where))) from error


def _fields_at(model: type[BaseModel], where: tuple[Any, ...]) -> list[str]:
    """The keys that a model knows at a place inside it."""
    for part in where:
        if isinstance(part, int):
            continue
        annotation = str(model.model_fields[part].annotation) if part in model.model_fields else ""
        inner = next((m for m in _Strict.__subclasses__() if f".{m.__name__}" in annotation), None)
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)
