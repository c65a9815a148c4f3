"""LangSmith runs: as the API and `list_runs` give them, with their children inside, and as rows of a bulk export.

Each run becomes a span with the attributes that LangSmith's own OpenTelemetry export would have given it. A row of a
bulk export holds inputs, outputs and extras as JSON text.
"""

import re
from collections.abc import Iterator, Mapping

from evalagent.model import Event, Json, Span
from evalagent.traces.anyvalues import plain
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.identifiers import NO_TRACE_ID, any_time, integer, span_id, trace_id
from evalagent.traces.otlp_json import content_id, first
from evalagent.traces.unwrapping import structured

SCOPE = "langsmith"
_RAISED = re.compile(r"([A-Za-z_][\w.]{0,200})\(").match
_SEGMENT = re.compile(r"[^.Z]*Z([0-9A-Za-z-]+)").fullmatch


def is_run(value: Mapping[str, Json]) -> bool:
    """Whether this is a run."""
    return type(value.get("run_type")) is str and "id" in value


def read_run(value: Mapping[str, Json], harvest: Harvest) -> None:
    """A run and, where it holds them, its child runs."""
    todo: list[tuple[Json, Json, Json]] = [(value, None, None)]
    while todo:
        raw, trace, parent = todo.pop()
        try:
            harvest.spans.append(to_span(raw, trace, parent))
        except BAD_CONTENT as error:
            harvest.refuse("no run", error)
        if type(raw) is dict and type(raw.get("child_runs")) is list:
            trace = first(raw, "trace_id") or trace or raw.get("id")
            todo.extend((child, trace, raw.get("id") or parent) for child in reversed(raw["child_runs"]))


def to_span(raw: Json, trace: Json = None, parent: Json = None) -> Span:
    """The span of a run. `trace` and `parent` are what the run that holds it says of it."""
    if type(raw) is not dict:
        raise ValueError("an object was expected")
    path = _path(raw.get("dotted_order"))
    above = first(raw, "parent_run_id") or parent or (path[-2] if len(path) > 1 else None)
    root = first(raw, "trace_id") or trace or (path[0] if path else None) or (raw.get("id") if above is None else None)
    error = raw.get("error")
    said = error if type(error) is str else ""
    failed = bool(error) or raw.get("status") == "error"
    start, end = any_time(raw.get("start_time")), any_time(raw.get("end_time"))
    return Span(
        trace_id=trace_id(root) or NO_TRACE_ID,
        span_id=span_id(raw.get("id")) or content_id({key: raw[key] for key in raw if key != "child_runs"}),
        parent_id=span_id(above),
        name=str(raw.get("name") or ""),
        start_ns=start or end,
        end_ns=end or None,
        status="error" if failed else "unset",
        status_message=said,
        attributes=_attributes(raw, said),
        events=tuple(_events(structured(raw.get("events")))),
        scope=SCOPE,
    )


def _path(dotted: Json) -> list[str]:
    """The ids of a dotted order, from the root to the run itself."""
    if type(dotted) is not str:
        return []
    found = [_SEGMENT(segment) for segment in dotted.split(".")]
    return [match.group(1) for match in found if match]


def _attributes(raw: Mapping[str, Json], error: str) -> dict[str, Json]:
    kind = str(raw["run_type"] if type(raw.get("run_type")) is str else "chain").lower()
    inputs, outputs, extra = (structured(raw.get(name)) for name in ("inputs", "outputs", "extra"))
    held = _dict(extra)
    metadata = _dict(held.get("metadata"))
    asked = _dict(held.get("invocation_params")) or _dict(metadata.get("invocation_params"))
    raised = _RAISED(error)
    found: dict[str, Json] = {
        "langsmith.span.kind": kind,
        "langsmith.trace.name": raw.get("name"),
        "langsmith.trace.session_name": raw.get("session_name"),
        "gen_ai.prompt": inputs or None,
        "gen_ai.completion": outputs or None,
        "gen_ai.request.model": _model(asked, metadata, inputs),
        "gen_ai.tool.definitions": asked.get("tools") or None,
        "error.type": raised.group(1) if raised else None,
    }
    if kind == "tool":
        found["gen_ai.tool.name"] = raw.get("name")
        found["gen_ai.tool.call.id"] = first(held, "tool_call_id") or first(metadata, "tool_call_id")
    found |= _usage(raw, outputs)
    found |= {f"langsmith.metadata.{key}": value for key, value in metadata.items()}
    tags = structured(raw.get("tags"))
    if type(tags) is list and tags:
        found["langsmith.span.tags"] = ", ".join(map(str, tags))
    return {key: plain(value) for key, value in found.items() if value is not None}


def _model(asked: Mapping[str, Json], metadata: Mapping[str, Json], inputs: Json) -> Json:
    found = first(asked, "model", "model_name", "model_id") or metadata.get("ls_model_name")
    found = found or (inputs.get("model") if type(inputs) is dict else None)
    return found if type(found) is str else None


def _usage(raw: Mapping[str, Json], outputs: Json) -> dict[str, Json]:
    """Tokens of the run as LangSmith counted them, else as the reply itself says; nothing where nobody counted."""
    counted = {
        "input_tokens": integer(raw.get("prompt_tokens")),
        "output_tokens": integer(raw.get("completion_tokens")),
        "cache_read": _dict(structured(raw.get("prompt_token_details"))).get("cache_read"),
        "cache_write": _dict(structured(raw.get("prompt_token_details"))).get("cache_creation"),
    }
    if not (counted["input_tokens"] or counted["output_tokens"]):
        usage = _reported(outputs)
        details = _dict(usage.get("input_token_details"))
        counted = {
            "input_tokens": first(usage, "input_tokens", "prompt_tokens"),
            "output_tokens": first(usage, "output_tokens", "completion_tokens"),
            "cache_read": details.get("cache_read"),
            "cache_write": details.get("cache_creation"),
        }
    keys = {"cache_read": "cache_read.input_tokens", "cache_write": "cache_creation.input_tokens"}
    return {f"gen_ai.usage.{keys.get(key, key)}": value for key, value in counted.items() if value is not None}


def _reported(outputs: Json) -> Mapping[str, Json]:
    """The usage that stands somewhere in a model's reply."""
    held = _dict(outputs)
    message: Json = held.get("generations")
    while type(message) is list and message:
        message = message[0]
    inner = _dict(_dict(message).get("message"))
    inner = _dict(inner.get("kwargs")) or _dict(inner.get("data")) or inner
    places = (
        held.get("usage_metadata"), held.get("usage"), inner.get("usage_metadata"),
        _dict(held.get("llm_output")).get("token_usage"), _dict(held.get("llm_output")).get("usage"),
    )  # fmt: skip
    return next((place for place in places if type(place) is dict and place), {})


def _events(raw: Json) -> Iterator[Event]:
    for event in raw if type(raw) is list else ():
        if type(event) is dict and event.get("name") not in ("start", "end", "new_token"):
            told = {key: plain(value) for key, value in event.items() if key not in ("name", "time")}
            yield Event(str(event.get("name") or ""), any_time(event.get("time")), told)


def _dict(value: Json) -> Mapping[str, Json]:
    return value if type(value) is dict else {}
