"""Small hand-made spans, and how a test reads what was built of them."""

import json
from collections.abc import Sequence

from evalagent.model import Json, LogRecord, Span, Step, Trace
from evalagent.traces.building import Built, build
from tests.traces.loans import MODEL, span

AGENT = {"gen_ai.operation.name": "invoke_agent"}


def places(built: Built) -> int:
    """Spans found again: in steps, containers, ignored, duplicates."""
    kept = sum(sum(len(s.span_ids) for s in t.steps) + len(t.containers) + len(t.ignored) for t in built.traces)
    return kept + built.duplicates


def only(spans: Sequence[Span], logs: Sequence[LogRecord] = ()) -> Trace:
    (trace,) = build(spans, logs).traces
    return trace


def pairs(trace: Trace) -> set[tuple[str, str]]:
    """Edges by the last digits of the ids."""
    return {(edge.step_id.lstrip("0"), step.step_id.lstrip("0")) for step in trace.steps for edge in step.parents}


def codes(trace: Trace) -> list[str]:
    return [finding.code for finding in trace.health]


def step(trace: Trace, number: int) -> Step:
    return next(s for s in trace.steps if int(s.step_id.partition("#")[0], 16) == number and not s.virtual)


def said(text: str, role: str = "assistant") -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def asks(*calls: tuple[str | None, str, Json]) -> Json:
    return {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": i, "name": name, "arguments": arguments} for i, name, arguments in calls],
    }


def answers(*results: tuple[str | None, Json]) -> Json:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": i, "response": r} for i, r in results]}


def chat(
    number: int, parent: int | None, start: float, end: float, given: Sequence[Json], reply: Json | None, **more: Json
) -> Span:
    attributes: dict[str, Json] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL}
    if given:
        attributes["gen_ai.input.messages"] = json.dumps(list(given))
    if reply is not None:
        attributes["gen_ai.output.messages"] = json.dumps([reply])
    return span(number, parent, "chat", start, end, attributes | more.pop("attributes", {}), **more)


def tool(
    number: int,
    parent: int | None,
    name: str,
    start: float,
    end: float,
    call: str | None = None,
    arguments: Json = None,
    result: Json = None,
    **more: Json,
) -> Span:
    attributes: dict[str, Json] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if call is not None:
        attributes["gen_ai.tool.call.id"] = call
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = json.dumps(arguments)
    if result is not None:
        attributes["gen_ai.tool.call.result"] = result if isinstance(result, str) else json.dumps(result)
    return span(number, parent, f"execute_tool {name}", start, end, attributes | more.pop("attributes", {}), **more)
