"""The report as one value: everything that any of its four forms says, already in words and bounded."""

from collections.abc import Mapping
from dataclasses import dataclass

from evalagent.model import Json, Ruling, Severity
from evalagent.records import JudgeUse
from evalagent.reporting.quality import Quality
from evalagent.reporting.wording import beside, brief
from evalagent.statistics.intervals import Interval
from evalagent.statistics.scorecard import Scorecard


@dataclass(frozen=True, slots=True)
class Headline:
    """The first screen: does it work, what breaks it most, what to do first."""

    word: str
    """PASS, FAIL or NOT JUDGED."""
    works: str
    breaks: str
    first: str


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run (a trial, or a trace where there are no trials), as every list of runs shows it."""

    case_id: str
    trial: int | None
    verdict: Ruling
    reasons: tuple[str, ...]
    anchor: str | None
    """Where its details stand; None if they were left out."""
    steps: int
    tokens: int | None
    cost_usd: float | None
    wall_s: float | None
    damaged: bool
    """A trace of it is too broken to hold anything against the agent."""
    quality: float | None
    """How far its traces can be trusted, 0 to 1: the lowest of several; None if it left none."""
    session: str | None = None
    """The session or conversation that its traces name."""

    @property
    def name(self) -> str:
        if self.trial is None:
            return beside(self.case_id, self.session)
        return f"{self.case_id}, trial {self.trial}"

    @property
    def brief(self) -> str:
        """The name with a trace's id shortened."""
        return beside(brief(self.case_id), self.session) if self.trial is None else self.name


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case with all its runs."""

    case_id: str
    task: str
    severity: str
    held_out: bool
    runs: tuple[RunLine, ...]
    passed: int
    judged: int
    state: str
    """always passed, intermittent, always failed, or not judged."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a run that show something."""

    run: str
    """The run's name."""
    anchor: str | None
    text: str
    rest: str = ""
    """A traceback that the text leaves out."""


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Failed runs with one root cause: the same class of failure in the same kind of step.

    A failed run counts once, under its first-ranked root cause, so that the groups add up to the failed runs.
    """

    anchor: str
    title: str
    where: str
    category: str | None
    definition: str
    runs: tuple[RunLine, ...]
    """Those that this cause is first-ranked in."""
    also: tuple[RunLine, ...]
    """Failed runs that count under another cause and have this one too."""
    n: int
    """Judged runs in all."""
    rate: float | None
    interval: Interval | None
    """Of the share of judged runs that fail through this cause, clustered by case; both None where those judged are a
    selection of failures."""
    quotes: tuple[Quote, ...]
    advice: str
    costly: int
    """How many of its runs are of a costly case."""
    ambiguous: int
    """How many of its runs, or where it has none of the others, may as well have begun elsewhere."""


@dataclass(frozen=True, slots=True)
class FindingLine:
    code: str
    severity: Severity
    message: str
    quotes: tuple[str, ...]
    anchor: str | None
    """The step it is about; None for the whole run, or a step that is not shown."""
    where: str
    rest: str = ""
    """A traceback that the message leaves out."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A step that another one depends on."""

    number: int | None
    """None for a step of another trace."""
    anchor: str | None
    via: str
    confidence: float


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step as a run's details show it."""

    number: int
    """Its place in the run, from 1."""
    anchor: str
    step_id: str
    kind: str
    name: str
    aspect: str | None
    agent: str | None
    verdict: Ruling
    score: float | None
    judge: str | None
    reason: str
    own_fault: str | None
    marks: tuple[str, ...]
    """root cause (or possible cause, where it is ambiguous), first failing, on the way, recovered."""
    error: str | None
    input: str
    output: str
    quotes: tuple[str, ...]
    parents: tuple[Parent, ...]
    seconds: float | None
    tokens: tuple[int | None, int | None] | None
    notes: tuple[str, ...]
    """never run, only in the messages, cut, content not captured."""
    error_rest: str = ""
    """The traceback of the error."""
    skipped_before: int = 0
    """Steps left out between the one above and this one."""


@dataclass(frozen=True, slots=True)
class CauseLine:
    """One root cause of one run."""

    anchor: str | None
    where: str
    title: str
    reason: str
    path: tuple[str, ...]
    """The steps from the cause to the symptom, in words."""


@dataclass(frozen=True, slots=True)
class WorldLine:
    """What a change of the world was: expected and there, missing, or unexpected."""

    state: str
    """as expected, missing, unexpected, masked."""
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Node:
    """A step in a drawing, in its place: layer from the top, slot from the left."""

    step_id: str
    anchor: str | None
    number: int
    label: str
    kind: str
    verdict: Ruling
    marks: tuple[str, ...]
    layer: int
    slot: int


@dataclass(frozen=True, slots=True)
class Arrow:
    """A dependency in a drawing: `head` depends on `tail` (indices of nodes)."""

    tail: int
    head: int
    via: str
    on_path: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """A run's steps as a graph."""

    title: str
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    of_steps: int
    cut: str
    """What was left out, in words; "" if nothing was."""


@dataclass(frozen=True, slots=True)
class RunDetail:
    """All that is told of one run."""

    line: RunLine
    task: str
    why: str
    """Why it is told: failed, to be read, not judged."""
    severity: str
    expected: tuple[str, ...]
    answer: str
    world: tuple[WorldLine, ...]
    world_verdict: Ruling | None
    world_reason: str
    first_failing: str
    first_failing_anchor: str | None
    causes: tuple[CauseLine, ...]
    ambiguous: bool
    hints: tuple[str, ...]
    """Of a failed run: that no step explains it and where to look, and the loops in it."""
    recovered: tuple[str, ...]
    steps: tuple[StepLine, ...]
    steps_left_out: int
    findings: tuple[FindingLine, ...]
    drawings: tuple[Drawing, ...]
    trace_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Something to do, and how many failed runs its cause accounts for; these add up to all failed runs."""

    text: str
    cause: str
    anchor: str
    runs: int
    of: int
    also: int
    """Failed runs that count elsewhere and have this cause too."""
    start: RunLine
    """The run to read first."""


@dataclass(frozen=True, slots=True)
class ToRead:
    """A run that did not fail and is worth reading."""

    line: RunLine
    why: str


@dataclass(frozen=True, slots=True)
class BudgetLine:
    name: str
    unit: str
    limit: float | None
    p50: float | None
    p95: float | None
    max: float | None
    total: float | None
    known_total: float | None
    n: int
    unknown: int
    over: int
    """Runs over this limit."""


@dataclass(frozen=True, slots=True)
class SeverityLine:
    severity: str
    failed: int
    n: int
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotJudged:
    """What has no verdict, why, and how to get one."""

    runs: tuple[RunLine, ...]
    steps: int
    of_steps: int
    reasons: tuple[tuple[str, int], ...]
    """Reason -> steps, most frequent first."""
    advice: str


@dataclass(frozen=True, slots=True)
class Health:
    """How far the traces can be trusted."""

    traces: int
    damaged: int
    quality: Quality
    lowest: tuple[tuple[str, float, str | None], ...]
    """Trace id, quality and session of the worst ones below 1."""
    codes: tuple[tuple[str, str, int, str], ...]
    """Code, severity, how often, and one message."""
    notice: str
    """What is missing from every trace, for the first screen; "" if nothing is."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a report says."""

    title: str
    run_id: str
    started: str | None
    exit_code: int
    verdict: Ruling
    reasons: tuple[str, ...]
    unit: str
    """What a run is here: trial or trace."""
    headline: Headline
    scorecard: Scorecard
    runs: tuple[RunLine, ...]
    cases: tuple[CaseRow, ...]
    causes: tuple[CauseGroup, ...]
    recommendations: tuple[Recommendation, ...]
    failed: tuple[RunDetail, ...]
    failed_left_out: int
    others: tuple[RunDetail, ...]
    """Details of runs to read and of runs not judged."""
    to_read: tuple[ToRead, ...]
    severities: tuple[SeverityLine, ...]
    budgets: tuple[BudgetLine, ...]
    not_judged: NotJudged
    health: Health
    receipt: Mapping[str, Json]
    judge: JudgeUse
    versions: Mapping[str, str]
    tau: float
    seed: int
