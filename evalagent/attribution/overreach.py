"""Changes beyond what a call was asked for, and changes that no call's values explain.

A tool that was asked for one row and wrote to others as well is at fault itself: its arguments do not ask for them. So
a change that no call's arguments ask for goes, by weaker evidence, to

1. the call that names the row and whose tool made another change like it;
2. the call that made another change of the same table and kind: of the same row, or of the same columns;
3. the only call of the run;
4. no call.

Where several calls are as likely they are listed, and none is blamed. Each change looks at a bounded number of calls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal

from evalagent.attribution.writers import Index, Writer, key_marks
from evalagent.checks.marks import whole
from evalagent.model import ExpectedChange, Json, Outcome, Step, WorldChange

_LOOKED_AT = 200
"""So many calls that wrote to a table are weighed for one change."""
_LISTED = 20
"""So many equally likely calls are listed."""
_COMPARED = 50


@dataclass(frozen=True, slots=True)
class Made:
    """A change that the arguments of a call ask for."""

    call: int
    table: str
    key: Json
    change: str
    columns: frozenset[str]
    marks: frozenset[str]
    """What tells it: the row's key; of a new row its values."""
    expected: bool


@dataclass(frozen=True, slots=True)
class Culprit:
    """What is known of the call that made an unexpected change."""

    calls: tuple[Step, ...]
    """One, or several that are equally likely; empty if nothing in the trace explains the change."""
    basis: Literal["values", "like_change", "only_call", "none"]
    asked: Made | None = None
    """A change of the call that its arguments do ask for, while they do not ask for this one."""
    repeated: bool = False

    @property
    def call(self) -> Step | None:
        return self.calls[0] if len(self.calls) == 1 else None


@dataclass(slots=True)
class _Deeds:
    """What each call is known to have been asked to change."""

    of_call: dict[tuple[int, str, str], list[Made]] = field(default_factory=dict)
    """(call, table, kind) -> the first of its changes, the expected ones before the others."""
    first: dict[int, Made] = field(default_factory=dict)
    of_row: dict[tuple[str, str, frozenset[str]], list[int]] = field(default_factory=dict)
    """(table, kind, what tells the row) -> calls that made its expected change."""
    of_column: dict[tuple[str, str, str], dict[int, None]] = field(default_factory=dict)
    """(table, kind, column) -> calls; the column is "" but for updates."""

    def add(self, made: Made) -> None:
        self.first.setdefault(made.call, made)
        mine = self.of_call.setdefault((made.call, made.table, made.change), [])
        if len(mine) < _LISTED:
            mine.append(made)
        if made.expected:
            self.of_row.setdefault((made.table, made.change, made.marks), []).append(made.call)
        for column in made.columns if made.change == "update" else ("",):
            self.of_column.setdefault((made.table, made.change, column), {})[made.call] = None


def culprits(index: Index, outcome: Outcome, writers: Sequence[Writer | None]) -> list[Culprit]:
    """For each unexpected change the call that made it, or those that may have; `writers` is what values explain."""
    numbers = {step.step_id: number for number, step in enumerate(index.steps)}
    deeds = _Deeds()
    for wanted in outcome.expected:
        if wanted.met:
            for call in index.makers(wanted)[:_LISTED]:
                deeds.add(_wanted(call, wanted))
    for change, writer in zip(outcome.unexpected, writers, strict=True):
        if writer is not None:
            deed = _written(numbers[writer.step.step_id], change)
            if index.holds(deed.call, deed.marks):
                deeds.add(deed)
    found = []
    for change, writer in zip(outcome.unexpected, writers, strict=True):
        if writer is None:
            found.append(_unexplained(index, deeds, change))
        else:
            found.append(_explained(index, deeds, change, writer, numbers[writer.step.step_id]))
    return _settled(outcome.unexpected, found)


def _explained(index: Index, deeds: _Deeds, change: WorldChange, writer: Writer, call: int) -> Culprit:
    marks = _written(call, change).marks
    named = index.holds(call, marks)
    plain = Culprit((writer.step,), "values", repeated=writer.repeated)
    if change.change == "insert":
        # one call, two rows of the same values: the second is the tool's
        twin = (m for m in _like(deeds, call, change) if m.expected and m.marks and m.marks <= whole(change.after))
        return replace(plain, asked=next(twin, None)) if writer.sole and not writer.repeated else plain
    asked = next((m for m in _like(deeds, call, change) if index.holds(call, m.marks) > named), None)
    if asked is not None:
        return replace(plain, asked=asked)
    alike = [other for other in _alike(index, deeds, change) if other != call]
    if not named:
        # only its result shows the row: it may have read what an earlier call wrote
        earlier = [other for other in alike if other < call]
        if len(earlier) == 1:
            return _beyond(index, deeds, change, earlier)
    elif alike and index.steps[call].name not in {index.steps[other].name for other in alike}:
        new = whole(change.after) - whole(change.before) - marks
        if not index.shows(call, new):
            return _named_only(index, deeds, change, (call,), alike, new)
    return plain


def _named_only(
    index: Index, deeds: _Deeds, change: WorldChange, naming: Sequence[int], alike: Sequence[int], new: frozenset[str]
) -> Culprit:
    """Between calls of which all that is known is that the row's key stands in them, and calls that did the like."""
    key, under = key_marks(change.table, change.key), set[str]()
    for call in alike[:_LISTED]:
        under |= {n for made in islice(_like(deeds, call, change), 1) for n in index.under(call, made.marks)}
    meant = [call for call in naming if index.under(call, key) & under]
    if not meant:  # a limit of 10 names no row
        return _beyond(index, deeds, change, alike)
    if len(meant) == 1 and not any(index.holds(call, new) for call in alike[:_LISTED]):
        return Culprit((index.steps[meant[0]],), "values")
    return Culprit(tuple(index.steps[call] for call in sorted({*meant, *alike})[:_LISTED]), "like_change")


def _unexplained(index: Index, deeds: _Deeds, change: WorldChange) -> Culprit:
    alike = _alike(index, deeds, change)
    naming = () if change.change == "insert" else index.naming(change)
    if naming and alike:
        tools = {index.steps[call].name for call in alike}
        same = tuple(call for call in naming if index.steps[call].name in tools)
        if same:
            return Culprit(tuple(index.steps[call] for call in same[:_LISTED]), "like_change")
        return _named_only(index, deeds, change, naming, alike, whole(change.after) - whole(change.before))
    if alike:
        return _beyond(index, deeds, change, alike)
    ran = list(islice((n for n, step in enumerate(index.steps) if step.kind == "tool" and step.executed), 2))
    if len(ran) == 1:
        return Culprit((index.steps[ran[0]],), "only_call", deeds.first.get(ran[0]))
    return Culprit(tuple(index.steps[call] for call in naming[:_LISTED]), "like_change" if naming else "none")


def _beyond(index: Index, deeds: _Deeds, change: WorldChange, calls: Sequence[int]) -> Culprit:
    steps = tuple(index.steps[call] for call in calls[:_LISTED])
    if len(calls) > 1:
        return Culprit(steps, "like_change")
    asked = next(_like(deeds, calls[0], change), deeds.first[calls[0]])
    return Culprit(steps, "like_change", asked)


def _like(deeds: _Deeds, call: int, change: WorldChange) -> Iterator[Made]:
    """Other changes that this call was asked for, of the same table and kind, and of the same row or columns."""
    this = _written(call, change)
    for made in deeds.of_call.get((call, this.table, this.change), ()):
        near = this.change != "update" or made.columns & this.columns or made.marks == this.marks
        if near and (made.expected or made.marks != this.marks):
            yield made


def _alike(index: Index, deeds: _Deeds, change: WorldChange) -> list[int]:
    """The calls, ascending, that made such a change elsewhere: of the same row, else those that hold most of the new
    values."""
    this = _written(-1, change)
    if this.change == "update" and (same := deeds.of_row.get((this.table, this.change, this.marks))):
        return sorted(set(same[:_LOOKED_AT]))
    new = sorted(whole(change.after) - whole(change.before))[:_COMPARED]
    weight: dict[int, int] = {}
    for column in sorted(this.columns)[:_COMPARED] if this.change == "update" else ("",):
        calls = deeds.of_column.get((this.table, this.change, column), {})
        for call in islice(calls, _LOOKED_AT):
            weight.setdefault(call, 0)
    for mark in new:
        holders = index.said_whole.get(mark, set[int]())
        for call in weight.keys() & holders:
            weight[call] += 1
    most = max(weight.values(), default=0)
    return sorted(call for call, held in weight.items() if held == most)


def _settled(changes: Sequence[WorldChange], found: list[Culprit]) -> list[Culprit]:
    """Of several likely calls the one that is known to have done the same to another row."""
    known: dict[tuple[str, str], dict[str, Culprit]] = {}
    for change, culprit in zip(changes, found, strict=True):
        if culprit.call is not None and culprit.asked is not None:
            known.setdefault((change.table, change.change), {}).setdefault(culprit.call.step_id, culprit)
    settled = []
    for change, culprit in zip(changes, found, strict=True):
        if len(culprit.calls) > 1:
            did = known.get((change.table, change.change), {})
            left = [did[step.step_id] for step in culprit.calls if step.step_id in did]
            settled.append(replace(left[0], basis="like_change") if len(left) == 1 else culprit)
        else:
            settled.append(culprit)
    return settled


def _written(call: int, change: WorldChange) -> Made:
    columns = frozenset({*(change.before or {}), *(change.after or {})})
    marks = whole(change.after) if change.change == "insert" else key_marks(change.table, change.key)
    return Made(call, change.table, change.key, change.change, columns, marks, False)


def _wanted(call: int, wanted: ExpectedChange) -> Made:
    said = wanted.change
    values = said.get("insert") or said.get("set")
    columns = frozenset(map(str, values)) if isinstance(values, Mapping) else frozenset[str]()
    change = "insert" if said.get("insert") else "update" if said.get("set") else "delete"
    table, key = str(said.get("table", "")), said.get("key")
    marks = whole(values) if change == "insert" else key_marks(table, key)
    return Made(call, table, key, change, columns, marks, True)
