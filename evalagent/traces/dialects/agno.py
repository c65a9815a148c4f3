"""Agno (3.1) under OpenLLMetry (0.62): teams, agents and tools; model calls are told by the provider's instrumentation.

A tool's output is the Python repr of what ran it; a member's run begins after the call that delegates to it has
returned a generator, which says nothing. (Agno under OpenInference is OpenInference.)
"""

import re

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, openllmetry
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import literal

_SCOPE = "opentelemetry.instrumentation.agno"
_RAN = re.compile(
    r"(?s)^status='(?P<status>success|failure)' result=(?P<result>.*) error=(?P<error>None|'.*'|\".*\")"
    r" updated_session_state="
)
_LAZY = re.compile(r"^<(async_)?generator object ")


def speaks(span: Span) -> bool:
    """Its scope, or the system that its spans name."""
    return span.scope.startswith(_SCOPE) or (
        span.attributes.get(names.SYSTEM) == "agno" and names.TL_KIND in span.attributes
    )


def observe(source: Source) -> Observation:
    """A span of OpenLLMetry's, with what Agno adds."""
    attributes = source.attributes
    observation = openllmetry.observe(source)
    team = fields.text(attributes.get(names.AGNO_TEAM))
    if team is not None and observation.kind == "workflow":
        observation.kind, observation.name, observation.agent = "agent", team, team
    elif observation.kind in ("tool", "handoff"):
        _ran(observation, attributes.get(names.TL_OUTPUT))
    return observation


def _ran(observation: Observation, output: Json) -> None:
    """A tool's result, or its error, out of the repr of Agno's own result."""
    match = _RAN.match(output) if isinstance(output, str) else None
    if match is None:
        return
    said = match["result"]
    observation.result = None if said == "None" or _LAZY.match(said) else literal(said)
    if match["status"] == "failure":
        observation.error = observation.error or str(literal(match["error"]))
