"""Exports as tables: CSV with a heading row, and JSON column by column as pandas writes it, as one object a row.

A cell that holds JSON, or a Python literal as pandas writes lists and dictionaries, is taken as that; an empty cell is
absent. Which shape a row has is told like that of any other object.
"""

import csv
import io
from collections.abc import Iterator, Mapping

from evalagent.model import Json
from evalagent.traces.unwrapping import literal, structured

_SIGNS = (
    {"context.span_id"}, {"run_type"}, {"parentObservationId"}, {"parent_observation_id"}, {"@message"},
    {"timestamp", "message"}, {"traceId", "spanId"}, {"trace_id", "span_id"}, {"traceId", "type"}, {"trace_id", "type"},
)  # fmt: skip
"""Columns by which a table of spans is told."""
_LONGEST_HEADING = 1 << 16
_LONGEST_CELL = 1 << 28
_COLUMN = "context.span_id"


def is_table(text: bytes) -> bool:
    """Whether this is CSV with columns of a known export, by its heading."""
    start = text.lstrip(b" \t\r\n\0")[:_LONGEST_HEADING]
    if start[:1] in (b"{", b"[", b""):
        return False
    heading, end, _ = start.partition(b"\n")
    if not end or heading.count(b",") < 1:
        return False
    try:
        names = set(next(csv.reader([heading.decode("utf-8", "replace").strip()]), []))
    except csv.Error:
        return False
    return any(sign <= names for sign in _SIGNS)


def rows(text: bytes) -> Iterator[tuple[int, Json, str]]:
    """Line where each row starts (from 1), the row as an object, and why it could not be read ("": it could)."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        reader = csv.reader(io.StringIO(text.decode("utf-8", "replace").replace("\0", ""), newline=""), strict=True)
        heading: list[str] | None = None
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield line, None, f"no row of CSV: {error}"
                continue
            if not any(cells):
                continue
            if heading is None:
                heading = [name.strip() for name in cells]
            elif len(cells) != len(heading):
                yield line, None, f"a row of {len(cells)} cells under a heading of {len(heading)}"
            else:
                pairs = zip(heading, map(_cell, cells), strict=True)
                yield line, {name: value for name, value in pairs if value is not None}, ""
    finally:
        csv.field_size_limit(before)


def _cell(text: str) -> Json:
    if text == "":
        return None
    if text[0] in "{[":
        value = structured(text)
        return literal(text) if value is text else value
    return text


def is_columns(value: Mapping[str, Json]) -> bool:
    """Whether this is a table written column by column, each an object from row to value."""
    return type(value.get(_COLUMN)) is dict


def rows_of_columns(value: Mapping[str, Json]) -> list[Json]:
    """Such a table as its rows, by the order of the column that every row has."""
    columns = [(name, held) for name, held in value.items() if type(held) is dict]
    found: list[Json] = []
    for row in value[_COLUMN]:
        cells = {name: held[row] for name, held in columns if held.get(row) is not None}
        found.append(cells)
    return found
