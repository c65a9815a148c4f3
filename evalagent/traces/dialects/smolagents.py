"""smolagents (1.26) under OpenInference (0.1.43): agents that call tools, agents that write code, managed agents.

A managed agent has no tool span: its own span ran the call. Agents' spans hold the sum of their model calls. Of a
streamed run the agent's output is a dump of the deltas, which nobody would read as an answer; a run that raised lost
its root.
"""

from evalagent.model import Span
from evalagent.traces.dialects import openinference
from evalagent.traces.observing import Observation, Source

_SCOPE = "openinference.instrumentation.smolagents"
_DELTAS = "ChatMessageStreamDelta("


def speaks(span: Span) -> bool:
    """Its scope."""
    return span.scope.startswith(_SCOPE)


def observe(source: Source) -> Observation:
    """An OpenInference span, without the dump of a stream."""
    observation = openinference.observe(source)
    if observation.answer is not None and observation.answer.startswith(_DELTAS):
        observation.answer = None
    return observation
