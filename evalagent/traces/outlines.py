"""A trace without what was said in it: enough to count and to list, at a tenth of the size."""

from dataclasses import replace

from evalagent.model import Step, Trace


def outline(trace: Trace) -> Trace:
    """The trace with its steps, edges, health and numbers, and without messages, inputs and outputs."""
    return replace(trace, steps=tuple(_outline(step) for step in trace.steps))


def _outline(step: Step) -> Step:
    return replace(
        step, input=None, output=None, messages=(), reply=None, arguments=None, result=None, tools=(), answered_in=()
    )
