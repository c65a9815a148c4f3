"""A question to a judge: one step and what it takes to judge it, as text, and nothing more of the trace.

Small, frozen and free of ids of the trace in what is shown, so that it can be handed to a task of its own, and so
that equal steps of two runs ask the same question and get the same cached answer.
"""

from dataclasses import dataclass

from evalagent.model import Aspect, Kind


@dataclass(frozen=True, slots=True)
class Piece:
    """One text that a judge is shown. The text is the agent's or its world's, hence data; all else is ours."""

    place: str
    """Its name in the prompt, such as `task`, `output` or `before-1`; unique within a question."""
    title: str
    """What it is, in our words: never a word of the trace."""
    parts: tuple[str, ...]
    """The text; several parts where something was cut out between them."""
    total: int
    """Characters of the whole text."""

    @property
    def shown(self) -> int:
        """Characters of it that are shown."""
        return sum(map(len, self.parts))


@dataclass(frozen=True, slots=True)
class Question:
    """A step that no rule decides."""

    trace_id: str
    step_id: str
    kind: Kind
    aspect: Aspect | None
    node: str | None
    rubric: str
    """Id of the rubric that fits it: an aspect for an llm step, else a kind."""
    pieces: tuple[Piece, ...] = ()
    omitted: tuple[str, ...] = ()
    """What of the step's surroundings is left out or was cut before it came to us, in our words."""
    warnings: tuple[str, ...] = ()
    """Codes of the warnings that checks have on this step: not shown, but where a judge sees nothing wrong, a stronger
    one looks too."""
