"""The shapes that an object of a trace file may have: how each is told by its content, and who reads it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from evalagent.model import Json
from evalagent.traces import (
    jaeger,
    langfuse_export,
    langsmith_runs,
    mlflow_export,
    otlp_json,
    sdk_dump,
    zipkin,
)
from evalagent.traces.formats import FORMATS
from evalagent.traces.harvest import Harvest

_REQUEST = frozenset({*otlp_json.SPAN_LISTS, *otlp_json.LOG_LISTS, *otlp_json.METRIC_LISTS})
_RESOURCE = frozenset({*otlp_json.SCOPE_SPANS, *otlp_json.SCOPE_LOGS})


class Shape(NamedTuple):
    """One shape of object. `name` is what a reading calls it."""

    name: str
    holds: Callable[[Mapping[str, Json]], bool]
    read: Callable[[Mapping[str, Json], Harvest], None]


def _flat(value: Mapping[str, Json]) -> bool:
    return ("traceId" in value and "spanId" in value) or ("trace_id" in value and "span_id" in value)


SHAPES: tuple[Shape, ...] = (
    Shape("tempo", lambda value: "batches" in value, otlp_json.read_request),
    Shape("otlp", lambda value: not _REQUEST.isdisjoint(value), otlp_json.read_request),
    Shape("otlp", lambda value: not _RESOURCE.isdisjoint(value), otlp_json.read_resource),
    Shape("mlflow", mlflow_export.is_trace, mlflow_export.read_trace),
    Shape("langfuse", langfuse_export.is_trace, langfuse_export.read_trace),
    Shape("langsmith", langsmith_runs.is_run, langsmith_runs.read_run),
    Shape("jaeger", jaeger.is_trace, jaeger.read_trace),
    Shape("jaeger", jaeger.is_span, jaeger.read_span),
    Shape("sdk", sdk_dump.is_span, sdk_dump.read_span),
    Shape("sdk", sdk_dump.is_log, sdk_dump.read_log),
    Shape("otlp", _flat, otlp_json.read_flat),
    Shape("langfuse", langfuse_export.is_observation, langfuse_export.read_observation),
    Shape("zipkin", zipkin.is_span, zipkin.read_span),
    Shape("sdk", sdk_dump.is_list, sdk_dump.read_list),
    Shape("otlp", lambda value: type(value.get("spans")) is list, otlp_json.read_spans),
)
"""In this order; the first that holds is the object's shape."""


def shape_of(value: Mapping[str, Json]) -> Shape | None:
    """The shape of an object, transcripts aside; None where it has none of these."""
    for shape in SHAPES:
        if shape.holds(value):
            return shape
    return None


def refusal(shape: str, format: str) -> str:
    """Why a value of this shape was not read, and what would read it."""
    own = next((name for name, shapes in FORMATS.items() if name == shape), "auto")
    also = "" if own == "auto" else f"--format {own} or "
    return f"this is {shape}, which --format {format} does not take: use {also}--format auto"
