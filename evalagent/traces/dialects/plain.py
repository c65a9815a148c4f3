"""Spans that no dialect of agents claims: HTTP, databases, the application. They are ancestry, and people's turns."""

from evalagent.model import Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields
from evalagent.traces.observing import Observation, Source

_PEOPLE = frozenset({"user", "human", "customer"})


def speaks(span: Span) -> bool:
    """Every span."""
    return True


def observe(source: Source) -> Observation:
    """Plumbing; or, where a person's turn is recorded as a span, a step of kind human."""
    span, attributes = source.span, source.attributes
    who = attributes.get(names.AGENT_NAME)
    if isinstance(who, str) and who.lower() in _PEOPLE:
        observation = fields.begin(source, "human", who)
        observation.agent = who
        fields.take_result(observation, attributes.get(names.OI_OUTPUT))
        return observation
    return fields.begin(source, "plumbing", span.name)
