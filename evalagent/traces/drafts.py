"""Steps in the making, and the calls between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from evalagent.model import Container, Edge, Json, Message
from evalagent.traces.forest import Forest
from evalagent.traces.observing import Observation

ECHO = "told_in_another_trace"
"""Why a span is left out whose call another trace tells too."""


@dataclass(slots=True, eq=False)
class Request:
    """One tool call that a model asked for, and what became of it."""

    llm: int
    position: int
    id: str | None
    name: str
    arguments: Json
    text: str
    """The arguments' canonical text."""
    step: int | None = None
    """The draft that ran it."""
    container: int | None = None
    """The agent's span that ran it, where there is no tool span."""
    answered: int | None = None
    """The first draft whose input holds the answer."""
    answer: Json = None
    foreign: tuple[str, str] | None = None
    """Trace and step id of the tool that ran it in a trace of its own."""

    @property
    def used(self) -> bool:
        return self.step is not None or self.container is not None or self.foreign is not None


@dataclass(slots=True, eq=False)
class Draft:
    """A step in the making. `at` is its span's place in the forest (of a virtual one, the requesting span's)."""

    at: int
    step_id: str
    kind: str
    name: str
    observation: Observation
    start: int
    end: int
    span_ids: tuple[str, ...]
    agent_at: int = -1
    """Place of the nearest agent around it; -1 for none."""
    agent: str | None = None
    node: str | None = None
    attempt: int = 0
    virtual: bool = False
    request: Request | None = None
    requests: Sequence[Request] = ()
    parents: dict[int, tuple[str, float]] = field(default_factory=dict)
    children: list[int] = field(default_factory=list)
    core: tuple[Message, ...] = ()
    """Messages without the instructions that lead them."""
    fresh: tuple[Message, ...] = ()
    """Messages that are new since the history that it continues."""
    answered_in: list[int] | None = None
    """The calls whose input holds its result; None for none."""
    reader: int | None = None
    """The first call that goes on from its result, whether or not its input was captured."""
    afar: tuple[Edge, ...] = ()
    """Parents in other traces."""
    answered_afar: tuple[str, ...] = ()
    asked_afar: str | None = None
    answer: Json = None
    """A virtual step's result, as a later input gave it."""

    def read_by(self, number: int) -> None:
        """The call at that place was given this step's result."""
        if self.answered_in is None:
            self.answered_in = [number]
        else:
            self.answered_in.append(number)


def core_of(observation: Observation) -> tuple[Message, ...]:
    """A model call's messages without the instructions that lead them."""
    lead = 0
    while lead < len(observation.messages) and observation.messages[lead].role == "system":
        lead += 1
    return observation.messages[lead:]


@dataclass(slots=True)
class Drafts:
    """All drafts of one trace in order of start, and what the other spans are."""

    forest: Forest
    observations: list[Observation]
    steps: list[Draft]
    by_span: dict[int, int]
    """Span place -> draft; twins too."""
    containers: list[Container]
    ignored: dict[str, str]
    agents: list[int]
    """For each span the nearest agent container around it or itself; -1 for none."""
    summed: list[str] = field(default_factory=list)
    """Steps whose tokens are those of all steps of their container: nothing finer is known."""
    askew: list[str] = field(default_factory=list)
    """Steps that start before a step of another trace that they depend on."""
    contradicted: list[str] = field(default_factory=list)
    """Model calls that were given another result than the tool in another trace returned that ran under the call's id.
    """

    def add(self, child: int, parent: int, rule: str, confidence: float) -> bool:
        """Add an edge, unless it is there or from a step to itself."""
        if child == parent:
            return False
        known = self.steps[child].parents
        if parent in known:
            if known[parent][1] < confidence:
                known[parent] = (rule, confidence)
            return False
        known[parent] = (rule, confidence)
        self.steps[parent].children.append(child)
        return True
