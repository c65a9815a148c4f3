"""CloudWatch Logs: how its answers and exports wrap documents.

Spans of the group `aws/spans` and the log records beside them are OTLP, one document an event.
"""

import re
from collections.abc import Mapping

from evalagent.model import Json

_STAMPED = re.compile(
    rb"(?m)^\d{4}-\d\d-\d\d[T ][0-9:.,]{5,20}(?:Z|[+-]\d\d:?\d\d)?(?: [^\s{\[\"]{1,512})?[ \t]+(?=\{)"
)


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
