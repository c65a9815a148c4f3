"""What one span says, whatever dialect it speaks: the value that dialects hand to the rest of the room."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalagent.model import Event, Json, Message, Span, Tokens, ToolSchema
from evalagent.traces.messages import Reader

STEPS = frozenset(
    {"llm", "tool", "handoff", "retrieval", "embedding", "reranker", "guardrail", "memory", "human", "other"}
)
CONTAINERS = frozenset({"workflow", "agent", "node", "turn"})
CONTROL_FLOW = frozenset(
    {
        "ParentCommand", "Command", "GraphInterrupt", "GraphBubbleUp", "NodeInterrupt", "Interrupt", "CancelledError",
        "CallDeferred", "ApprovalRequired",
    }
)  # fmt: skip
INTERRUPTS = frozenset({"GraphInterrupt", "NodeInterrupt", "Interrupt"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a graph a span ran, as LangGraph says it under each instrumentor."""

    step: int | None = None
    node: str | None = None
    triggers: tuple[str, ...] = ()
    namespace: str = ""
    thread: str | None = None


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Source:
    """A span with its events and the log records that carry its ids, and the reader of its trace."""

    span: Span
    events: Sequence[Event]
    reader: Reader

    @property
    def attributes(self) -> Mapping[str, Json]:
        return self.span.attributes


@dataclass(slots=True)
class Observation:
    """One span, understood.

    `kind` is a kind of step, a kind of container, `plumbing` (kept as ancestry only) or `ignored` (with `reason`).
    `weak`: a container only if steps are inside, else plumbing.
    """

    span: Span
    dialect: str
    kind: str
    name: str
    reason: str = ""
    weak: bool = False
    agent: str | None = None
    unnamed: bool = False
    """An agent whose name nothing tells: `name` is its span's."""
    model: str | None = None
    tokens: Tokens | None = None
    cost_usd: float | None = None
    messages: tuple[Message, ...] = ()
    reply: Message | None = None
    tools: tuple[ToolSchema, ...] = ()
    arguments: Json = None
    result: Json = None
    call_id: str | None = None
    response_id: str | None = None
    target: str | None = None
    """The agent that a hand-off names."""
    place: Place = NOWHERE
    graph: tuple[str, ...] = ()
    """Static edges of the graph that this span runs, `A -> B` each."""
    follows: str | None = None
    """The node that this span's own graph attributes name as its predecessor."""
    node_id: str | None = None
    session: str | None = None
    error: str | None = None
    interrupted: bool = False
    truncated: bool = False
    task: str | None = None
    answer: str | None = None
    texts: tuple[str, ...] = ()
    """retrieval: the text of each document."""
    ending: frozenset[str] = frozenset()
    """llm: the tools by which the model gives its answer; nothing need run them."""
    native: bool = False
    """An SDK's own span, of which an instrumentor may have written a fuller twin."""
    aggregated: bool = False
    """`tokens` of this container may hold what its children spent."""

    @property
    def is_step(self) -> bool:
        return self.kind in STEPS

    @property
    def has_content(self) -> bool:
        """Whether anything of what went in and came out was captured; names and ids of calls alone are no contents."""
        if self.arguments is not None or self.result is not None:
            return True
        return (self.reply is not None and _told(self.reply)) or any(_told(message) for message in self.messages)


def _told(message: Message) -> bool:
    return bool(message.text) or any(
        [*(r.arguments is not None for r in message.requests), *(a.content is not None for a in message.answers)]
    )
