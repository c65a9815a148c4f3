"""How many spans and log records a text holds, counted on parsed JSON by other code than the readers'.

Written against the public descriptions of the formats, so that a reader that loses or doubles something disagrees.
"""

import csv
import io
import json
import re
from typing import NamedTuple

from evalagent.model import Json

_DECODER = json.JSONDecoder()
_BLANK = re.compile("[ \\t\\r\\n\\0\\ufeff]*+").match
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
    """Every JSON value of a text, one after the other; [] where it holds anything else."""
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return []
    found: list[Json] = []
    at = 0
    while True:
        at = _BLANK(text, at).end()
        if at >= len(text):
            return found
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        found.append(value)


def least_pieces(data: bytes) -> int:
    """Spans and log records of OTLP requests in the text: each must be read or rejected. A text among them makes its
    line one bad line, whatever follows there."""
    held = values(data)
    return sum(map(in_request, held)) if all(isinstance(value, dict | list) for value in held) else 0


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


class Count(NamedTuple):
    """Spans and log records."""

    spans: int = 0
    logs: int = 0

    def plus(self, other: "Count") -> "Count":
        return Count(self.spans + other.spans, self.logs + other.logs)


def count(data: bytes) -> Count:
    """What a text holds in all."""
    held = values(data) or _table(data)
    if held and all(_is_message(value) for value in held):
        return _conversation(held)
    total = Count()
    for value in held:
        total = total.plus(_count(value))
    return total


def _table(data: bytes) -> list[Json]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))


def _count(value: Json) -> Count:
    if isinstance(value, str):
        return count(value.encode()) if value[:1] in "{[" else Count()
    if isinstance(value, list):
        if any(_is_message(item) for item in value):
            return _conversation(value)
        total = Count()
        for item in value:
            total = total.plus(_count(item))
        return total
    if not isinstance(value, dict):
        return Count()
    if any(key in value for key in ("resourceSpans", "resource_spans", "batches", "resourceLogs")):
        logs = in_request({key: held for key, held in value.items() if "ogs" in key})
        return Count(in_request(value) - logs, logs)
    keys = set(value)
    if isinstance(value.get("context.span_id"), dict):
        return Count(len(value["context.span_id"]))
    if "run_type" in keys:
        return Count(1).plus(_count(value.get("child_runs") or []))
    if {"traceId", "spanId"} <= keys or {"trace_id", "span_id"} <= keys:
        return Count(0, 1) if "body" in keys else Count(1)
    if "context" in keys or "context.span_id" in keys or {"traceID", "spanID"} <= keys:
        return Count(1).plus(_count(value.get("child_spans") or []))
    if keys & {"startTime", "start_time", "localEndpoint"}:
        return Count(1)
    if isinstance(value.get("messages") or value.get("contents"), list):
        return _conversation(value.get("messages") or value["contents"])
    if isinstance(value.get("input"), list):
        return _conversation([*value["input"], *value.get("output", [])])
    total = Count()
    for key in (
        "data",
        "spans",
        "observations",
        "runs",
        "trace",
        "events",
        "logEvents",
        "results",
        "message",
        "@message",
    ):
        if isinstance(value.get(key), dict | list | str):
            total = total.plus(_count(value[key]))
    return total.plus(_count(value["value"])) if value.get("field") == "@message" else total


def _is_message(value: Json) -> bool:
    if not isinstance(value, dict):
        return False
    kinds = ("human", "ai", "system", "tool", "constructor", "function_call", "function_call_output", "reasoning")
    return "role" in value or value.get("type") in kinds


def _conversation(messages: list[Json]) -> Count:
    """One span for the conversation, one for each time that the model spoke, one for each answer of a tool."""
    spoke = answers = 0
    before = ""
    for message in messages:
        held = message.get("data") or message.get("kwargs") or message
        told = str(message.get("role") or held.get("type") or message.get("type")).lower()
        blocks = held.get("content") or held.get("parts") or []
        ran = sum("result" in str(sorted(b)).lower() + str(b.get("type")) or "functionResponse" in b
                  for b in blocks if isinstance(b, dict)) if isinstance(blocks, list) else 0  # fmt: skip
        item = ("role" not in message and told in ("function_call", "reasoning")) or held.get("type") == "message"
        if told in ("assistant", "ai", "model", "function_call", "reasoning"):
            spoke += not (item and before == "item")
            before = "item" if item else "message"
        else:
            before = ""
            answers += 1 if told in ("tool", "function_call_output") else ran
    return Count(1 + spoke + answers)
