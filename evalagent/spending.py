"""What a trace spent: each token once, and unknown as soon as one model call does not know its own."""

from evalagent.model import Trace


def tokens_of(trace: Trace) -> int | None:
    """Input and output tokens of all steps, each once; None if an llm step does not know its own, or none was seen."""
    if not any(step.kind == "llm" for step in trace.steps):
        return None
    total = 0
    for step in trace.steps:
        if step.kind not in ("llm", "embedding"):
            continue
        if step.tokens is None or step.tokens.input is None or step.tokens.output is None:
            return None
        total += step.tokens.input + step.tokens.output
    return total


def cost_of(trace: Trace) -> float | None:
    """US dollars of all steps; None if an llm step has no known price, or none was seen."""
    costs = [step.cost_usd for step in trace.steps if step.kind in ("llm", "embedding")]
    known = [cost for cost in costs if cost is not None]
    return round(sum(known), 9) if costs and len(known) == len(costs) else None
