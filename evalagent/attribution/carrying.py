"""Whether what a call returned, or was asked with, went into a later step: by values that stand in both."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from evalagent.checks.marks import pieces, telling, whole
from evalagent.model import Json, Step


@dataclass(slots=True)
class Carrying:
    """Reads each step once, and only those that are asked for. What the task says already shows nothing."""

    steps: Sequence[Step]
    task: str | None
    passed: dict[int, frozenset[str]] = field(default_factory=dict)
    common: frozenset[str] | None = None

    def carries(self, call: int, to: int) -> bool:
        """Whether a value of the call at position `call` is in what the step at `to` said or asked for."""
        if self.common is None:
            self.common = pieces(self.task) if self.task else frozenset()
        if call not in self.passed:
            step = self.steps[call]
            given = [step.arguments, step.result]
            named = (mark for mark in pieces(given) if not mark.isalpha())
            self.passed[call] = telling(whole(given).union(named) - self.common)
        return not self.passed[call].isdisjoint(pieces(_made(self.steps[to])))


def _made(step: Step) -> Json:
    """What a step made of its input."""
    if step.kind == "llm" and step.reply is not None:
        return [step.reply.text, *(request.arguments for request in step.reply.requests)]
    return [step.arguments, step.result, step.output]
