"""CloudWatch Logs: how its answers and exports wrap documents, and what AgentCore's log documents say.

Spans of the group `aws/spans` and the log records beside them are OTLP, one document an event. The distribution of
OpenTelemetry that AgentCore starts takes the messages out of the spans and puts them into the body of such a log
record, as `{"input": {"messages"}, "output": {"messages"}}`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from evalagent.model import Json, LogRecord
from evalagent.traces.anyvalues import plain
from evalagent.traces.attributes import (
    EVENT_DETAILS,
    INPUT_MESSAGES,
    OUTPUT_MESSAGES,
    TOOL_ARGUMENTS,
    TOOL_CALL_ID,
    TOOL_RESULT,
)

_STAMPED = re.compile(
    rb"(?m)^\d{4}-\d\d-\d\d[T ][0-9:.,]{5,20}(?:Z|[+-]\d\d:?\d\d)?(?: [^\s{\[\"]{1,512})?[ \t]+(?=\{)"
)
_MESSAGE = ("@message", "message")


def unstamped(text: bytes) -> bytes:
    """The text without the time (and stream) that an export task or `aws logs tail` writes before each document."""
    return _STAMPED.sub(b"", text) if _STAMPED.match(text) else text


def messages(value: Mapping[str, Json]) -> list[Json] | None:
    """What the events of an answer hold: texts or objects. None where this is no answer of CloudWatch.

    `filter-log-events` (`events`), a subscription (`logEvents`), `get-query-results` (`results`, rows of fields), and a
    single event or row of an exported table.
    """
    for name in ("events", "logEvents"):
        events = value.get(name)
        if type(events) is list and any(type(event) is dict and "message" in event for event in events):
            return [event.get("message") if type(event) is dict else event for event in events]
    rows = value.get("results")
    if type(rows) is list and any(type(row) is list for row in rows):
        return [_fields(row).get("@message") for row in rows]
    if "@message" in value:
        return [value["@message"]]
    if "message" in value and "timestamp" in value and type(value["message"]) in (str, dict):
        return [value["message"]]
    return None


def _fields(row: Json) -> dict[Json, Json]:
    return {
        field["field"]: field.get("value")
        for field in (row if type(row) is list else ())
        if type(field) is dict and type(field.get("field")) is str
    }


def understood(record: LogRecord) -> LogRecord:
    """A log record of AgentCore as the event of the conventions that says the same; any other as it is.

    The messages of a tool's span are its arguments and its result.
    """
    body = record.body
    if type(body) is not dict or not ({"input", "output"} & body.keys()) or not (body.keys() <= {"input", "output"}):
        return record
    given, answered = _messages(body.get("input")), _messages(body.get("output"))
    if given is None and answered is None:
        return record
    told: dict[str, Json] = {}
    if given:
        told[INPUT_MESSAGES] = given
    if answered:
        told[OUTPUT_MESSAGES] = answered
    if given and answered and len(given) == 1 and given[0]["role"] == "tool":
        told |= {TOOL_ARGUMENTS: given[0]["content"], TOOL_RESULT: answered[-1]["content"]}
        if given[0].get("tool_call_id"):
            told[TOOL_CALL_ID] = given[0]["tool_call_id"]
    return replace(record, event_name=EVENT_DETAILS, body=plain(told))


def _messages(side: Json) -> list[dict[str, Json]] | None:
    held = side.get("messages") if type(side) is dict else side
    if type(held) is str:
        held = [{"content": held}]
    if type(held) is not list:
        return None
    return [_message(one) for one in held]


def _message(one: Json) -> dict[str, Json]:
    if type(one) is not dict:
        return {"role": "user", "content": one}
    content, role = one.get("content"), one.get("role")
    found: dict[str, Json] = {"role": role if type(role) is str else "user"}
    if type(content) is dict and ({"content", "message"} & content.keys()):
        if content.get("id"):
            found["tool_call_id"] = content["id"]
        content = content.get("message", content.get("content"))
    found["content"] = content
    return found
