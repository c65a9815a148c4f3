"""How many spans and log records a text holds, counted on parsed JSON by other code than the readers'.

Written against the public descriptions of the formats, so that a reader that loses or doubles something disagrees.
"""

import json

from evalagent.model import Json

_REQUESTS = (
    ("resourceSpans", "scopeSpans", "spans"),
    ("resource_spans", "scope_spans", "spans"),
    ("batches", "scopeSpans", "spans"),
    ("batches", "scope_spans", "spans"),
    ("batches", "instrumentationLibrarySpans", "spans"),
    ("resourceSpans", "instrumentationLibrarySpans", "spans"),
    ("resourceLogs", "scopeLogs", "logRecords"),
    ("resource_logs", "scope_logs", "log_records"),
)


def values(data: bytes) -> list[Json]:
    """Every JSON value of a text in plain encoding, one a line or one in all; [] where it is something else."""
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return []
    for pieces in ([text], text.splitlines()):
        try:
            return [json.loads(piece) for piece in pieces if piece.strip()]
        except (ValueError, RecursionError):
            continue
    return []


def least_pieces(data: bytes) -> int:
    """Spans and log records of OTLP requests in the text: each must be read or rejected."""
    return sum(in_request(value) for value in values(data))


def in_request(value: Json) -> int:
    """Elements of the span and log lists of one OTLP request, whatever they are."""
    if not isinstance(value, dict):
        return 0
    return sum(
        len(scope[last])
        for first, middle, last in _REQUESTS
        for resource in _dicts(value.get(first))
        for scope in _dicts(resource.get(middle))
        if isinstance(scope.get(last), list)
    )


def _dicts(value: Json) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
