"""MLflow traces as `Trace.to_dict` and `to_json` write them: `{"info": …, "data": {"spans": […]}}`.

MLflow 3 writes spans in OTLP's words with ids in base64 and attributes that are JSON text; MLflow 2 in the words of
the SDK. What the trace's info says of the session is given to each span.
"""

from collections.abc import Mapping
from dataclasses import replace

from evalagent.model import Json, Span
from evalagent.traces import sdk_dump
from evalagent.traces.harvest import BAD_CONTENT, Harvest
from evalagent.traces.otlp_json import Origin, first, to_span

_SAID = {"session.id": "mlflow.trace.session", "user.id": "mlflow.trace.user"}
SCOPE = "mlflow"


def is_trace(value: Mapping[str, Json]) -> bool:
    """Whether this is a trace of MLflow."""
    data = value.get("data")
    return type(value.get("info")) is dict and type(data) is dict and type(data.get("spans")) is list


def read_trace(value: Mapping[str, Json], harvest: Harvest) -> None:
    """One trace; a span that could not be read is rejected alone."""
    held = first(value["info"], "trace_metadata", "request_metadata")
    metadata: Mapping[str, Json] = held if type(held) is dict else {}
    for number, raw in enumerate(value["data"]["spans"]):
        try:
            harvest.spans.append(_span(raw, metadata))
        except BAD_CONTENT as error:
            harvest.refuse(f"data.spans[{number}] is no span", error)


def _span(raw: Json, metadata: Mapping[str, Json]) -> Span:
    old = type(raw) is dict and sdk_dump.is_span(raw)
    span = sdk_dump.to_span(raw) if old else to_span(raw, Origin(SCOPE))
    said = {key: metadata[name] for key, name in _SAID.items() if type(metadata.get(name)) is str}
    return replace(span, attributes={**said, **span.attributes}) if said else span
