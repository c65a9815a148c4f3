"""A record whose every free text is hostile, ids included, and still holds together."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from evalagent.records import RunRecord
from evalagent.suites import Case

FIXED = frozenset(
    {"kind", "aspect", "via", "severity", "verdict", "own_fault", "change", "exit", "role", "status", "exit_code"}
    | {"case_id", "trial", "started", "held_out", "budgets", "cases"}
)
"""Fields of a closed set of words, or whose form the suite's parser already holds."""


def poisoned(record: RunRecord, text: str) -> RunRecord:
    """Every other text with `text` after it; the same text stays the same, so that references still meet."""
    made: RunRecord = _with(record, text)
    cases = {
        name: Case.model_validate(
            {**case.model_dump(), "input": text, "expected": {**case.expected.model_dump(), "behaviour": text}}
        )
        for name, case in record.cases.items()
    }
    return replace(made, cases=cases)


def _with(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value + text
    if isinstance(value, tuple | list):
        return type(value)(_with(part, text) for part in value)
    if isinstance(value, dict):
        return {_with(name, text): _with(part, text) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: _with(getattr(value, f.name), text) for f in fields(value) if f.name not in FIXED}
        if "change" in {f.name for f in fields(value)} and isinstance(value.change, dict):  # type: ignore[attr-defined]
            changed["change"] = {name: _with(part, text) for name, part in value.change.items()}  # type: ignore[attr-defined]
        return replace(value, **changed)
    return value
