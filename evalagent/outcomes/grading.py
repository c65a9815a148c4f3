"""The end state of the world held against what a case expects of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evalagent.model import ExpectedChange, Json, Outcome, WorldChange
from evalagent.outcomes.diffing import order
from evalagent.outcomes.masking import masked_part
from evalagent.outcomes.matching import faults, fits, is_any
from evalagent.outcomes.pairing import pair
from evalagent.outcomes.snapshots import FILE_COLUMNS, Snapshot, is_file, key_text, read_key
from evalagent.suites import Case, Change


def grade(
    case: Case,
    trial: int,
    changes: Sequence[WorldChange] | None,
    masks: Sequence[str] = (),
    after: Snapshot | None = None,
) -> Outcome:
    """The outcome of one trial: every expected change must be there, and nothing else may have changed.

    * `set`: the named columns of that row have the named values. A column that did not change can only be told with
      the snapshot `after`; without it, it counts as missing (`{"any": true}` allows it).
    * `insert`: a new row of that table has the named values; its other columns are free, and a row answers for one
      expectation only.
    * `delete`: that row is gone.

    Everything else that changed is unexpected, other columns of an expected row too, or masked if a mask covers it.
    A case without `changes`, or with changes that cannot be read, and a world that was not observed (`changes` None)
    are not judged. Reading the world leaves no change, so it is free.
    """
    wanted = case.expected.changes
    if wanted is None:
        seen = f"; {len(changes)} changes were seen" if changes else ""
        return Outcome(case.id, trial, "not_judged", reason=f"the case does not say what may change{seen}")
    if changes is None:
        return Outcome(case.id, trial, "not_judged", reason="the world was not observed before and after")
    unreadable = faults(case)
    if unreadable:
        return Outcome(case.id, trial, "not_judged", reason="; ".join(unreadable))
    results, left = _settle(wanted, sorted(changes, key=order), after)
    unexpected, masked = [], []
    for change in left:
        hidden, open_ = masked_part(change, masks)
        masked.extend([hidden] if hidden else [])
        unexpected.extend([open_] if open_ else [])
    missing = sum(not result.met for result in results)
    said = [f"{missing} of {len(results)} expected changes missing"] if missing else []
    said += [f"{len(unexpected)} unexpected {'change' if len(unexpected) == 1 else 'changes'}"] if unexpected else []
    return Outcome(
        case.id,
        trial,
        "fail" if said else "pass",
        tuple(results),
        tuple(unexpected),
        tuple(masked),
        "; ".join(said) or ("all expected changes, and no other" if results else "nothing changed, as expected"),
    )


def _settle(
    wanted: Sequence[Change], changes: Sequence[WorldChange], after: Snapshot | None
) -> tuple[list[ExpectedChange], list[WorldChange]]:
    """Each expectation with whether it is met, and what of the changes none of them accounts for."""
    by_key = {(change.table, _key(change.key)): number for number, change in enumerate(changes)}
    results: dict[int, ExpectedChange] = {}
    taken: set[int] = set()  # changes accounted for as a whole
    columns: dict[int, set[str]] = {}  # columns of updates accounted for
    for number, want in enumerate(wanted):
        if want.insert is not None:
            continue
        at = by_key.get((want.table, _key(want.key)))
        change = changes[at] if at is not None else None
        reason = _undeleted(change) if want.delete else _unset(want, change, after)
        if reason and change is None:
            reason += _near(want, changes)
        results[number] = _result(want, reason)
        if at is None or change is None:
            continue
        if change.change == "update" and want.set:
            columns.setdefault(at, set()).update(_right_columns(want.set, change))
        elif not reason:
            taken.add(at)
    results.update(_inserts(wanted, changes, taken))
    left = []
    for number, change in enumerate(changes):
        rest = _without(change, columns.get(number, set()))
        if number not in taken and rest is not None:
            left.append(rest)
    return [results[number] for number in range(len(wanted))], left


def _inserts(wanted: Sequence[Change], changes: Sequence[WorldChange], taken: set[int]) -> dict[int, ExpectedChange]:
    """The inserts, each with a row of its own wherever that is possible for all of them; marks those rows as taken."""
    asks = [number for number, want in enumerate(wanted) if want.insert is not None]
    rows = [n for n, change in enumerate(changes) if change.change == "insert" and n not in taken]
    choices = {ask: [row for row in rows if not _uninserted(wanted[ask], changes[row])] for ask in asks}
    chosen = pair(choices)
    taken.update(chosen.values())
    results = {}
    for ask in asks:
        reason = "" if ask in chosen else _no_row(wanted[ask], [changes[row] for row in rows if row not in taken])
        results[ask] = _result(wanted[ask], reason)
    return results


def _unset(want: Change, change: WorldChange | None, after: Snapshot | None) -> str:
    """Why a `set` is not met; "" if it is."""
    assert want.set is not None
    if change is not None and change.change == "delete":
        return "the row was deleted"
    now = dict(change.after or {}) if change is not None else {}
    whole = _row(after, want.table, want.key) if after is not None else None
    if after is not None and whole is None:
        return "there is no such row"
    gone = (change.before or {}).keys() - now.keys() if change is not None and change.change == "update" else set()
    for column, value in want.set.items():
        if column in now:
            if not fits(value, now[column]):
                return f"`{column}` became {_show(now[column])}, wanted is {_show(value)}"
        elif column in gone:
            return f"`{column}` is gone"
        elif whole is not None:
            if not (column in whole and fits(value, whole[column])):
                return f"`{column}` stayed {_show(whole.get(column))}, wanted is {_show(value)}"
        elif change is None:
            return "the row did not change"
        elif not is_any(value):
            return f"`{column}` did not change, wanted is {_show(value)}"
    return ""


def _undeleted(change: WorldChange | None) -> str:
    if change is None:
        return "the row was not deleted"
    return "" if change.change == "delete" else f"the row was not deleted but {change.change.rstrip('e')}ed"


def _uninserted(want: Change, change: WorldChange) -> str:
    """Why a row does not answer an `insert`; "" if it does."""
    row = change.after or {}
    if change.table != want.table:
        return "another table"
    if want.key is not None and _key(want.key) != _key(change.key):
        return f"the new row has the key {_show(change.key)}"
    for column, value in (want.insert or {}).items():
        if column not in row:
            return f"the new row has no `{column}`"
        if not fits(value, row[column]):
            return f"`{column}` of the new row is {_show(row[column])}, wanted is {_show(value)}"
    return ""


def _no_row(want: Change, rows: Sequence[WorldChange]) -> str:
    """Why no row answers an `insert`, told of the new row that comes nearest."""
    rows = [row for row in rows if row.table == want.table]
    if not rows:
        return "no other row was inserted"
    asked = (want.insert or {}).items()
    nearest = max(rows, key=lambda row: sum(c in (row.after or {}) and fits(v, (row.after or {})[c]) for c, v in asked))
    return _uninserted(want, nearest) or "the row that fits answers for another expectation"


def _near(want: Change, changes: Sequence[WorldChange]) -> str:
    """A hint where only the type of the key differs."""
    for change in changes:
        if change.table == want.table and str(change.key) == str(want.key):
            return f"; the row that changed has the key {_show(change.key)}: a number is not a text"
    return ""


def _right_columns(wanted: Mapping[str, Json], change: WorldChange) -> set[str]:
    now = change.after or {}
    right = {c for c, value in wanted.items() if (fits(value, now[c]) if c in now else is_any(value))}
    # The content of a file is one thing: who expects its text expects its hash and size to follow.
    return set(FILE_COLUMNS) if right & FILE_COLUMNS and right >= wanted.keys() and is_file(now) else right


def _without(change: WorldChange, columns: set[str]) -> WorldChange | None:
    if not columns:
        return change
    before = {c: v for c, v in (change.before or {}).items() if c not in columns}
    after = {c: v for c, v in (change.after or {}).items() if c not in columns}
    return replace(change, before=before, after=after) if before or after else None


def _row(after: Snapshot, table: str, key: Json) -> Mapping[str, Json] | None:
    rows = after.get(table, {})
    exact = rows.get(key_text(key))
    if exact is not None:
        return exact
    return next((row for text, row in rows.items() if _key(read_key(text)) == _key(key)), None)


def _key(key: Json) -> str:
    """The text under which keys are compared: {"id": 5} names the same row as 5."""
    if isinstance(key, Mapping) and len(key) == 1:
        key = next(iter(key.values()))
    return key_text(key)


def _result(want: Change, reason: str) -> ExpectedChange:
    return ExpectedChange(want.model_dump(exclude_unset=True), not reason, reason or "as expected")


def _show(value: Json) -> str:
    text = key_text(value)
    return text if len(text) <= 120 else f"{text[:117]}…"
