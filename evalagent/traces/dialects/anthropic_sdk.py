"""The Anthropic Python SDK's own spans (2.14 and later): usually the twin of an instrumentor's."""

from evalagent.model import Span
from evalagent.traces.dialects import genai
from evalagent.traces.observing import Observation, Source

_SCOPE = "com.anthropic.sdk.python"


def speaks(span: Span) -> bool:
    """Its scope, or its span name."""
    return span.scope == _SCOPE or span.name == "anthropic.messages.create"


def observe(source: Source) -> Observation:
    """A model call without content."""
    observation = genai.observe(source)
    observation.native = True
    return observation
