"""Langfuse exports: a trace with its observations, and observations by themselves.

Read as the API answers (`traces/{id}`, `observations`, v2), as the UI downloads a trace (`{"trace", "observations"}`)
and exports a table, and as the export to blob storage writes them (names in snake case, values as JSON text). Each
observation becomes a span with the attributes that Langfuse's own OpenTelemetry SDK would have given it. What a trace
says beside its observations is given to each of them.
"""

from collections.abc import Mapping
from dataclasses import replace

from evalagent.model import Json, Span
from evalagent.traces.anyvalues import plain
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.identifiers import NO_TRACE_ID, any_time, span_id, trace_id
from evalagent.traces.otlp_json import content_id, first
from evalagent.traces.unwrapping import structured

SCOPE = "langfuse"
_KINDS = frozenset(
    {"span", "generation", "event", "agent", "tool", "chain", "retriever", "evaluator", "embedding", "guardrail"}
)
_STARTS = ("startTime", "start_time")


def is_observation(value: Mapping[str, Json]) -> bool:
    """Whether this is one observation."""
    kind = value.get("type")
    return (
        type(kind) is str
        and kind.lower() in _KINDS
        and any(name in value for name in _STARTS)
        and any(name in value for name in ("id", "observationId"))
        and any(name in value for name in ("traceId", "trace_id"))
    )


def is_trace(value: Mapping[str, Json]) -> bool:
    """Whether this is a trace with its observations, or one whose observations are only named."""
    held = value.get("observations")
    if type(held) is list and any(name in value for name in ("trace", "id", "scores")):
        return True
    return "htmlPath" in value and "id" in value


def read_trace(value: Mapping[str, Json], harvest: Harvest) -> None:
    """A trace; an observation that could not be read is rejected alone."""
    told = value.get("trace")
    trace: Mapping[str, Json] = told if type(told) is dict else value
    held = value.get("observations")
    if type(held) is not list or (held and all(type(item) is str for item in held)):
        harvest.reject("a Langfuse trace without its observations: export the observations, or the trace one by one")
        return
    for number, observation in enumerate(held):
        try:
            harvest.spans.append(to_span(observation, trace))
        except BAD_CONTENT as error:
            harvest.refuse(f"observations[{number}] is no observation", error)


def read_observation(value: Mapping[str, Json], harvest: Harvest) -> None:
    """An observation that stands alone."""
    harvest.spans.append(to_span(value))


def to_span(raw: Json, trace: Mapping[str, Json] | None = None) -> Span:
    """The span of an observation. `trace`: what is known of the trace it belongs to."""
    if type(raw) is not dict:
        raise ValueError("an object was expected")
    trace = trace or {}
    start, end = any_time(first(raw, *_STARTS)), any_time(first(raw, "endTime", "end_time"))
    level, message = str(raw.get("level") or ""), _text(first(raw, "statusMessage", "status_message"))
    span = Span(
        trace_id=trace_id(first(raw, "traceId", "trace_id") or first(trace, "id", "traceId", "trace_id"))
        or NO_TRACE_ID,
        span_id=span_id(first(raw, "id", "observationId")) or content_id(raw),
        parent_id=span_id(first(raw, "parentObservationId", "parent_observation_id")),
        name=_text(raw.get("name")),
        start_ns=start or end,
        end_ns=end or None,
        status="error" if level.upper() == "ERROR" else "unset",
        status_message=message,
        attributes=_attributes(raw, trace),
        scope=SCOPE,
    )
    resource = _structured(_metadata(raw).get("resourceAttributes"))
    return replace(span, resource=plain(resource)) if type(resource) is dict else span


def _attributes(raw: Mapping[str, Json], trace: Mapping[str, Json]) -> dict[str, Json]:
    prefix = "langfuse.observation."
    found: dict[str, Json] = {
        f"{prefix}type": str(raw.get("type") or "span").lower(),
        f"{prefix}input": plain(raw.get("input")),
        f"{prefix}output": plain(raw.get("output")),
        f"{prefix}model.name": _text(
            first(raw, "providedModelName", "provided_model_name", "model", "internalModel", "internal_model")
        ),
        f"{prefix}model.parameters": plain(_structured(first(raw, "modelParameters", "model_parameters"))),
        f"{prefix}usage_details": _usage(raw),
        f"{prefix}cost_details": _cost(raw),
        f"{prefix}level": _text(raw.get("level")),
        f"{prefix}status_message": _text(first(raw, "statusMessage", "status_message")),
        "langfuse.trace.name": _text(first(raw, "traceName", "trace_name") or trace.get("name")),
        "session.id": _text(first(raw, "sessionId", "session_id") or first(trace, "sessionId", "session_id")),
        "user.id": _text(first(raw, "userId", "user_id") or first(trace, "userId", "user_id")),
        "langfuse.environment": _text(raw.get("environment") or trace.get("environment")),
        "langfuse.version": _text(raw.get("version") or trace.get("version")),
    }
    found = {key: value for key, value in found.items() if value is not None and value != ""}
    for key, value in _metadata(raw).items():
        if key not in ("resourceAttributes", "attributes"):
            found[f"{prefix}metadata.{key}"] = plain(value)
    inner = _structured(_metadata(raw).get("attributes"))
    if type(inner) is dict:
        # What OpenTelemetry said and Langfuse did not understand; keys that would make it another dialect stay out.
        for key, value in inner.items():
            if key.startswith(("gen_ai.", "langfuse.", "thread_id", "langgraph_")):
                found.setdefault(key, plain(value))
    return found


def _metadata(raw: Mapping[str, Json]) -> Mapping[str, Json]:
    held = _structured(raw.get("metadata"))
    return held if type(held) is dict else {}


def _usage(raw: Mapping[str, Json]) -> Json:
    """Tokens by kind; None where nobody counted (older servers then say 0 of everything)."""
    details = _structured(first(raw, "usageDetails", "usage_details"))
    if type(details) is dict and details:
        return plain(details)
    usage = _structured(raw.get("usage"))
    told = {
        "input": first(raw, "promptTokens", "prompt_tokens", "inputTokens"),
        "output": first(raw, "completionTokens", "completion_tokens", "outputTokens"),
    }
    if type(usage) is dict:
        told = {key: first(usage, key, f"{key}Tokens") if value is None else value for key, value in told.items()}
    told = {key: value for key, value in told.items() if value is not None}
    return plain(told) if any(_positive(value) for value in told.values()) else None


def _cost(raw: Mapping[str, Json]) -> Json:
    """US dollars by kind with their `total`; None where nothing is known to have been spent."""
    details = _structured(first(raw, "costDetails", "cost_details"))
    if type(details) is dict and details:
        return plain(details)
    total = first(raw, "calculatedTotalCost", "calculated_total_cost", "totalCost", "total_cost")
    return {"total": plain(total)} if _positive(total) else None


def _positive(value: Json) -> bool:
    try:
        return float(value) > 0
    except (TypeError, ValueError, OverflowError):
        return False


def _structured(value: Json) -> Json:
    return structured(value) if type(value) is str else value


def _text(value: Json) -> str:
    return value if type(value) is str else "" if value is None or isinstance(value, dict | list) else str(value)
