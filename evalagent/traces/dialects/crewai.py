"""CrewAI under OpenLLMetry (0.62): crews, tasks, agents and LiteLLM calls; tools and native model calls have no span.

Crew, task and agent are all `invoke_agent` there. What a crew spent is known as a Python repr on the crew's span alone;
a reply that asks for tools is the Python repr of LiteLLM's objects. (CrewAI under OpenInference is OpenInference.)
"""

import ast
from collections.abc import Mapping

from evalagent.model import Json, Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, openllmetry
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse

_SCOPE = "opentelemetry.instrumentation.crewai"
_KICKOFF = "crewai.workflow"
_CALLS = ("[ChatCompletionMessageToolCall(", "[ChatCompletionDeltaToolCall(")
_LONGEST = 20_000


def speaks(span: Span) -> bool:
    """Its scope, or its own keys."""
    return span.scope.startswith(_SCOPE) or span.name == _KICKOFF or names.CREW_PREFIX in fields.families(span)


def observe(source: Source) -> Observation:
    """A span of OpenLLMetry's, with what CrewAI adds."""
    span, attributes = source.span, source.attributes
    observation = openllmetry.observe(source)
    if span.name == _KICKOFF:
        observation.kind, observation.weak = "workflow", False
        observation.name = fields.text(attributes.get(names.CREW_NAME)) or span.name
        observation.agent = None
        observation.task = _descriptions(attributes)
    elif observation.kind == "node":
        observation.task = fields.text(attributes.get(names.CREW_TASK)) or observation.task
    elif observation.kind == "agent":
        role = fields.text(attributes.get(names.CREW_ROLE))
        if names.AGENT_NAME not in attributes and role is not None:
            observation.name = observation.agent = role
    elif observation.kind == "llm" and observation.reply is not None:
        calls = _calls(observation.reply.text)
        if calls:
            observation.reply = source.reader.one({"role": "assistant", "tool_calls": calls})
    return observation


def _descriptions(attributes: Mapping[str, Json]) -> str | None:
    """What the crew was asked: its tasks, unless they wait for inputs to be filled in."""
    tasks = parse(attributes.get(names.CREW_TASKS)).value
    said = [t["description"] for t in tasks if isinstance(t, dict)] if isinstance(tasks, list) else []
    told = [text for text in said if isinstance(text, str) and text and "{" not in text]
    return "\n".join(told) if told and len(told) == len(said) else None


def _calls(text: str) -> list[Json]:
    """Tool calls out of the repr of LiteLLM's objects; none where it is anything else."""
    text = text.strip()
    if not text.startswith(_CALLS) or len(text) > _LONGEST:
        return []
    try:
        tree = ast.parse(text, mode="eval").body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    found: list[Json] = []
    for item in tree.elts if isinstance(tree, ast.List) else []:
        call = _keywords(item)
        function = _keywords(call.get("function"))
        name, arguments, identity = (
            _constant(n) for n in (function.get("name"), function.get("arguments"), call.get("id"))
        )
        if name is not None:
            found.append({"id": identity, "function": {"name": name, "arguments": arguments}})
    return found


def _keywords(node: ast.expr | None) -> dict[str, ast.expr]:
    return {k.arg: k.value for k in node.keywords if k.arg is not None} if isinstance(node, ast.Call) else {}


def _constant(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
