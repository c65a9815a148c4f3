"""The values that pass between the rooms: frozen, plain, without behaviour that touches the world.

Words are those of docs/architecture.md. Times are integer nanoseconds since the epoch. `None` means
not known, and is never replaced by 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Any
"""What JSON can hold: None, bool, int, float, str, list, dict with text keys."""

Status = Literal["unset", "ok", "error"]
Kind = Literal[
    "llm",
    "tool",
    "retrieval",
    "handoff",
    "embedding",
    "reranker",
    "guardrail",
    "memory",
    "human",
    "agent",
    "node",
    "other",
]
ContainerKind = Literal["workflow", "agent", "node", "turn"]
Aspect = Literal["understand", "plan", "choose_tool", "fill_arguments", "read_result", "delegate", "answer"]
Via = Literal["call", "data", "link", "handoff", "retry", "order"]
Severity = Literal["error", "warning", "info"]
Ruling = Literal["pass", "fail", "not_judged"]
OwnFault = Literal["yes", "no", "unknown"]


# --- spans: what came in -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """A span event."""

    name: str
    time_ns: int
    attributes: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Link:
    """A span link: this span continues or was caused by another one."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """One OpenTelemetry span as it came; ids are lower-case hex (32 and 16 characters)."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int | None
    """None: the span never ended (absent or 0)."""
    status: Status = "unset"
    status_message: str = ""
    attributes: Mapping[str, Json] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()
    scope: str = ""
    scope_version: str = ""
    resource: Mapping[str, Json] = field(default_factory=dict)
    dropped_attributes: int = 0
    """Attributes and events that a limit of whoever made the span left out."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """An OpenTelemetry log record; GenAI events of semantic conventions 1.28 to 1.36 carry messages in these."""

    trace_id: str
    span_id: str
    time_ns: int
    event_name: str
    body: Json
    attributes: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line or file that could not be read; the rest was. `line` counts from 1; 0 is the whole file."""

    file: str
    line: int
    reason: str


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call as a model asked for it."""

    id: str | None
    name: str
    arguments: Json
    """Parsed where it was JSON; the raw text where it was not; None where they were not captured."""
    truncated: bool = False
    """The arguments were cut by a limit of the trace: no fault of the agent's."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A tool's result as a model was given it."""

    id: str | None
    name: str | None
    content: Json


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message, whatever dialect it came in. Equal messages are one object within a trace."""

    role: str
    """system, user, assistant or tool."""
    text: str = ""
    requests: tuple[ToolRequest, ...] = ()
    answers: tuple[ToolAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as it was declared to a model; `parameters` is a JSON schema, or None where it is not known."""

    name: str
    description: str = ""
    parameters: Mapping[str, Json] | None = None


# --- steps, edges, traces ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edge:
    """The step that holds this depends on `step_id`."""

    step_id: str
    via: Via
    confidence: float
    trace_id: str | None = None
    """Only if the parent is in another trace."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A step's own tokens, never rolled up; None where unknown. Cache tokens are kept apart."""

    input: int | None
    output: int | None
    cache_read: int | None = None
    cache_write: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One thing the agent did, a leaf."""

    trace_id: str
    step_id: str
    """The span id of the span that names it; for a virtual step the requesting span's id + `#` + call id."""
    span_ids: tuple[str, ...]
    """Every span merged into it, twins included; empty for a virtual step."""
    kind: Kind
    name: str
    """The tool's, model's or agent's name, not the span's."""
    start_ns: int
    end_ns: int | None
    agent: str | None = None
    aspect: Aspect | None = None
    parents: tuple[Edge, ...] = ()
    error: str | None = None
    """A hard error: span status or exception. Control flow (interrupt, hand-off) is none."""
    tokens: Tokens | None = None
    cost_usd: float | None = None
    input: Json = None
    """What is written to steps.jsonl. For an llm step the messages that are new since the step it continues."""
    output: Json = None
    model: str | None = None
    messages: tuple[Message, ...] = ()
    """llm: every message the model was given, oldest first."""
    reply: Message | None = None
    """llm: what the model answered; None where content was not captured."""
    call_id: str | None = None
    """tool and handoff: the id of the request that it answers, as found or inferred."""
    request_step: str | None = None
    """tool and handoff: the step_id of the llm step that asked for it; None where none did or none is known."""
    answered_in: tuple[str, ...] = ()
    """tool and handoff: the llm steps whose input holds this call's result (the first one suffices)."""
    arguments: Json = None
    """tool and handoff: the arguments it ran with, unwrapped from the dialect's packing."""
    result: Json = None
    """tool, handoff, retrieval: what came back, unwrapped; None where there was none or it was not captured."""
    tools: tuple[ToolSchema, ...] = ()
    """llm: the tools declared to the model in this call."""
    node: str | None = None
    """The graph node it ran in, where the framework names one."""
    attempt: int = 0
    """Which unrolling of a loop, where the framework counts them."""
    virtual: bool = False
    executed: bool = True
    """False for a virtual tool step of which neither a span nor an answer exists: asked for and never run."""
    content: bool = True
    """False: the trace holds none of the messages, arguments or results."""
    truncated: bool = False
    """Something of it was cut by an attribute limit or broken JSON."""
    dialect: str = ""


@dataclass(frozen=True, slots=True)
class Container:
    """A span that only holds steps: it gives names and groups, never a dependency."""

    trace_id: str
    span_id: str
    kind: ContainerKind
    name: str
    parent_id: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's remark on a step or (step_id None) a whole trace."""

    trace_id: str
    step_id: str | None
    code: str
    severity: Severity
    message: str
    evidence: Json = None


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of one run with their edges. A dangling edge cannot be: every parent is a step of this trace,
    or names another trace."""

    trace_id: str
    steps: tuple[Step, ...]
    """Parents before children; among the free ones by start, then as they were asked for, then by id."""
    containers: tuple[Container, ...] = ()
    ignored: Mapping[str, str] = field(default_factory=dict)
    """span id -> reason."""
    health: tuple[Finding, ...] = ()
    quality: float = 1.0
    """How far the trace can be trusted, 0 to 1: 1 minus what its health findings cost."""
    task: str | None = None
    """What the user asked: the first user text."""
    answer: str | None = None
    """The final output."""
    session: str | None = None
    resource: Mapping[str, Json] = field(default_factory=dict)
    start_ns: int = 0
    end_ns: int | None = None

    @property
    def bystander(self) -> bool:
        """No step of an agent is in it, though another trace of the input has some: a trace of the services around."""
        return not self.steps and all(
            finding.severity == "info" for finding in self.health if finding.code == "no_agent_steps"
        )


# --- what is expected ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a case or a suite says of a trace, as the checks need it. Every part may be unknown."""

    tools: tuple[ToolSchema, ...] = ()
    """The tools the agent has, where the suite says; empty = not known."""
    wanted_tools: tuple[tuple[str, Mapping[str, Json] | None], ...] = ()
    """Calls the case expects: name and arguments that must match (None: any)."""
    no_tools: bool = False
    forbidden_tools: tuple[str, ...] = ()
    reply_values: tuple[Json, ...] = ()
    path: Json = None
    input_text: str | None = None
    """What the user said, all turns."""


# --- judgement -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """pass, fail or not_judged for a step (step_id None: for the whole trace or trial)."""

    trace_id: str
    step_id: str | None
    metric: str
    verdict: Ruling
    score: float | None
    """In [0, 1]; None whenever the verdict is not_judged."""
    own_fault: OwnFault
    judge: str
    """Who decided: `rules`, or the judge's name and model."""
    reason: str
    aspect: Aspect | None = None
    rubric: str | None = None
    """Rubric id and version, `name@version`."""
    category: str | None = None
    """Id from the taxonomy."""
    evidence: Json = None


@dataclass(frozen=True, slots=True)
class RootCause:
    """A step where a failure began, and the way from it to the symptom."""

    step_id: str
    score: float | None
    category: str | None
    path: tuple[str, ...]
    """Step ids from the cause to the symptom, both included."""
    reason: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """An error that a later step made good: blameless."""

    step_id: str
    by: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Attribution:
    """Why a trace failed; recovered errors are listed whether it failed or not."""

    trace_id: str
    verdict: Ruling
    first_failing_step: str | None
    root_causes: tuple[RootCause, ...] = ()
    recovered: tuple[Recovered, ...] = ()
    ambiguous: bool = False


# --- trials --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorldChange:
    """One difference between the world before and after a trial.

    A file is a row too: table = the folder as the suite names it, key = the file's path in it,
    columns `text` (None if not UTF-8), `sha256` and `bytes`.
    """

    table: str
    key: Json
    change: Literal["insert", "update", "delete"]
    before: Mapping[str, Json] | None
    """update: the columns that changed; delete: the whole row."""
    after: Mapping[str, Json] | None
    """update: the columns that changed; insert: the whole row."""


@dataclass(frozen=True, slots=True)
class ExpectedChange:
    """One change that the case asked for, and whether it is there."""

    change: Mapping[str, Json]
    """As the case wrote it."""
    met: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The world diff of one trial, graded."""

    case_id: str
    trial: int
    verdict: Ruling
    expected: tuple[ExpectedChange, ...] = ()
    unexpected: tuple[WorldChange, ...] = ()
    masked: tuple[WorldChange, ...] = ()
    reason: str = ""


TrialExit = Literal["completed", "crashed", "timeout", "no_answer", "infrastructure"]


@dataclass(frozen=True, slots=True)
class TrialRun:
    """What collecting one trial left, before anything of it was judged."""

    case_id: str
    trial: int
    exit: TrialExit
    """completed, crashed (exit code not 0), timeout and no_answer are the agent's; infrastructure is never."""
    exit_code: int | None
    attempt: str
    """Unique per start of the agent; spans of another attempt of this trial do not count."""
    reply: str | None
    """What it answered on stdout (text), bounded; None if it answered nothing there."""
    stderr_tail: str
    wall_s: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one case, judged."""

    run_id: str
    case_id: str
    trial: int
    trace_ids: tuple[str, ...]
    verdict: Ruling
    reasons: tuple[str, ...]
    steps: int
    tokens: int | None
    cost_usd: float | None
    wall_s: float | None
    held_out: bool = False
    severity: str = "normal"
    exit: TrialExit = "completed"
    answer: str | None = None
