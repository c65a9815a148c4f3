"""The report as JSON, for programs: every name as in `reporting.report`, shares rounded to 6 digits."""

import json
from dataclasses import asdict

from evalagent.model import Json
from evalagent.reporting.report import Report

VERSION = 1
"""Raised when a name goes or changes its meaning; new names do not raise it."""


def render(report: Report) -> str:
    """One object, indented, keys in the order of the report; ends with a newline."""
    content = {"report_version": VERSION, **asdict(report)}
    return json.dumps(_plain(content), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _plain(value: Json) -> Json:
    """JSON can hold no NaN, no tuple and no lone half of a character; a record may."""
    if isinstance(value, float):
        return round(value, 6) if value == value and abs(value) != float("inf") else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_plain(str(name)): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
