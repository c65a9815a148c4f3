"""Rows of a query on standard output, in a form for people or for programs."""

import csv
import sys
from collections.abc import Callable, Sequence
from typing import Any

from evalagent.adapters.files import dump

WIDE = 60
"""Characters of a cell in the form for people; what is cut ends in an ellipsis."""


def as_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Aligned columns; long cells are cut."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[n]) for row in cells)]) for n, name in enumerate(columns)]
    for row in [list(columns), *cells]:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    writer.writerows(rows)


def as_jsonl(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    for row in rows:
        sys.stdout.buffer.write(dump(dict(zip(columns, row, strict=True))) + b"\n")


def _cell(value: Any) -> str:
    text = "" if value is None else "".join(c if c.isprintable() else " " for c in str(value))
    return text if len(text) <= WIDE else text[: WIDE - 1] + "…"


WRITERS: dict[str, Callable[[Sequence[str], Sequence[Sequence[Any]]], None]] = {
    "table": as_table,
    "csv": as_csv,
    "jsonl": as_jsonl,
}
