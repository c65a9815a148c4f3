"""One file per dialect, and which of them a span speaks.

The dialect is decided per span and never per file: one trace often mixes several. Attributes decide; the scope's
name breaks ties, since exporters lose it.
"""

from collections.abc import Callable, Mapping, Sequence

from evalagent.model import Event, Span
from evalagent.traces.dialects import (
    adk,
    agent_framework,
    agno,
    anthropic_sdk,
    any_agent,
    autogen,
    claude_code,
    codex,
    crewai,
    gemini_cli,
    genai,
    langfuse,
    langsmith,
    llama_index,
    mastra,
    mcp,
    mlflow,
    openai_agents,
    openinference,
    openllmetry,
    pydantic_ai,
    smolagents,
    strands,
    vercel,
)
from evalagent.traces.dialects import plain as plain_spans
from evalagent.traces.observing import Observation, Source
from evalagent.traces.recognizing import Recognizer

DIALECTS: tuple[tuple[str, Callable[[Span], bool], Callable[[Source], Observation]], ...] = (
    ("anthropic_sdk", anthropic_sdk.speaks, anthropic_sdk.observe),
    ("llama_index", llama_index.speaks, llama_index.observe),
    ("smolagents", smolagents.speaks, smolagents.observe),
    ("vercel", vercel.speaks, vercel.observe),
    ("openinference", openinference.speaks, openinference.observe),
    ("langfuse", langfuse.speaks, langfuse.observe),
    ("mlflow", mlflow.speaks, mlflow.observe),
    ("claude_code", claude_code.speaks, claude_code.observe),
    ("mastra", mastra.speaks, mastra.observe),
    ("codex", codex.speaks, codex.observe),
    ("gemini_cli", gemini_cli.speaks, gemini_cli.observe),
    ("langsmith", langsmith.speaks, langsmith.observe),
    ("mcp", mcp.speaks, mcp.observe),
    ("crewai", crewai.speaks, crewai.observe),
    ("agno", agno.speaks, agno.observe),
    ("openai_agents", openai_agents.speaks, openai_agents.observe),
    ("openllmetry", openllmetry.speaks, openllmetry.observe),
    ("strands", strands.speaks, strands.observe),
    ("adk", adk.speaks, adk.observe),
    ("agent_framework", agent_framework.speaks, agent_framework.observe),
    ("pydantic_ai", pydantic_ai.speaks, pydantic_ai.observe),
    ("autogen", autogen.speaks, autogen.observe),
    ("any_agent", any_agent.speaks, any_agent.observe),
    ("genai", genai.speaks, genai.observe),
    ("plain", plain_spans.speaks, plain_spans.observe),
)
"""In this order; the first that a span speaks is its dialect, and every span speaks the last. To tell it, scope, name
and attributes are all that it is shown of a span."""
_RECOGNIZER = Recognizer([speaks for _, speaks, _ in DIALECTS])


def observe(source: Source) -> Observation:
    """The span as its dialect means it."""
    name, _, understood = DIALECTS[_RECOGNIZER.first(source.span)]
    observation = understood(source)
    observation.dialect = name
    return observation


def addressed(spans: Sequence[Span], events: Mapping[str, list[Event]]) -> Mapping[str, list[Event]]:
    """Log records by span id, moved to the span that they are about where a dialect says that by an id of its own."""
    return codex.addressed(spans, claude_code.addressed(spans, events))
