"""What a case expected of a run, and what the run did to the world, in lines."""

from collections.abc import Iterable, Mapping

from evalagent.model import ExpectedChange, Json, Outcome, WorldChange
from evalagent.outcomes.snapshots import key_text
from evalagent.reporting.report import WorldLine
from evalagent.reporting.wording import bounded, line, value
from evalagent.suites import Case

MOST = 20
"""Lines of one sort that are shown; the rest is counted."""


def expected_of(case: Case | None) -> tuple[str, ...]:
    """What the case expects, one line for each thing."""
    if case is None:
        return ()
    said = case.expected
    found = [bounded(said.behaviour, 600)] if said.behaviour else []
    if said.changes is not None:
        found += [f"World: {_wanted(c.model_dump(exclude_unset=True))}" for c in said.changes[:MOST]]
        found += [f"World: … and {len(said.changes) - MOST} more changes"] if len(said.changes) > MOST else []
        found += [] if said.changes else ["World: nothing changes"]
    found += [f"Answer states {value(v, 120)}" for v in said.reply_values]
    found += [f"Calls {line(t.name, 80)}" + (f" with {value(t.args, 200)}" if t.args else "") for t in said.tools]
    found += ["Calls no tool"] if said.no_tools else []
    found += [f"Never calls {line(name, 80)}" for name in said.forbidden_tools]
    found += [f"Path: {value(said.path, 300)}"] if said.path is not None else []
    return tuple(found)


def world_of(outcome: Outcome | None) -> tuple[WorldLine, ...]:
    """What happened to the world: expected changes (missing ones first), unexpected ones, masked ones."""
    if outcome is None:
        return ()
    asked = [_asked(e) for e in sorted(outcome.expected, key=lambda e: e.met)]
    other = [WorldLine("unexpected", _changed(c), "no expectation covers it") for c in outcome.unexpected[: MOST * 2]]
    hidden = [WorldLine("masked", _changed(c), "the suite masks it") for c in outcome.masked[:MOST]]
    return (*_cut(asked, len(asked)), *_cut(other, len(outcome.unexpected)), *_cut(hidden, len(outcome.masked)))


def _cut(lines: list[WorldLine], of: int) -> Iterable[WorldLine]:
    yield from lines[:MOST]
    if of > MOST:
        yield WorldLine(lines[0].state, f"… and {of - MOST:,} more", "all are in outcomes.jsonl")


def _asked(expected: ExpectedChange) -> WorldLine:
    state = "as expected" if expected.met else "missing"
    return WorldLine(state, _wanted(expected.change), line(expected.reason, 300))


def _wanted(change: Mapping[str, Json]) -> str:
    table = line(str(change.get("table", "")), 60)
    row = f"{table}[{_short(change['key'])}]" if change.get("key") is not None else table
    if change.get("set") is not None:
        return f"{row}: " + ", ".join(f"{line(c, 40)} becomes {_short(v)}" for c, v in change["set"].items())
    if change.get("insert") is not None:
        return f"{row}: a new row with " + ", ".join(f"{line(c, 40)} {_short(v)}" for c, v in change["insert"].items())
    return f"{row}: deleted"


def _changed(change: WorldChange) -> str:
    row = f"{line(change.table, 60)}[{_short(change.key)}]"
    before, after = change.before or {}, change.after or {}
    if change.change == "update":
        columns = sorted(before.keys() | after.keys())
        said = [f"{line(c, 40)} {_side(before, c)} → {_side(after, c)}" for c in columns[:8]]
        return f"{row}: " + ", ".join(said) + (f", … {len(columns) - 8} more" if len(columns) > 8 else "")
    columns = sorted(after or before)
    said = [f"{line(c, 40)} {_short((after or before)[c])}" for c in columns[:8]]
    word = "inserted" if change.change == "insert" else "deleted"
    return f"{row}: {word} with " + ", ".join(said) + (f", … {len(columns) - 8} more" if len(columns) > 8 else "")


def _side(row: Mapping[str, Json], column: str) -> str:
    return _short(row[column]) if column in row else "absent"


def _short(content: Json) -> str:
    return line(key_text(content), 80)
