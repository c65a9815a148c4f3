"""What changed in the world between two snapshots."""

from collections import Counter
from collections.abc import Iterable, Mapping

from evalagent.model import Json, WorldChange
from evalagent.outcomes.snapshots import Snapshot, key_text, read_key, same

Rows = Mapping[str, Mapping[str, Json]]


def diff(before: Snapshot, after: Snapshot) -> tuple[WorldChange, ...]:
    """Every row that was inserted, updated or deleted, by table and key; one pass over both snapshots.

    A table that is absent holds no rows. A column that is absent differs from one that is NULL, so that an altered
    table shows. An update carries only the columns that changed; a column that is new or gone stands on one side alone.
    """
    changes: list[WorldChange] = []
    for table in sorted(before.keys() | after.keys()):
        old, new = _by_key(before.get(table, {})), _by_key(after.get(table, {}))
        for text in sorted(old.keys() | new.keys()):
            key = read_key(text)
            if text not in new:
                changes.append(WorldChange(table, key, "delete", dict(old[text]), None))
            elif text not in old:
                changes.append(WorldChange(table, key, "insert", None, dict(new[text])))
            else:
                was, now = old[text], new[text]
                columns = [c for c in sorted(was.keys() | now.keys()) if not _kept(was, now, c)]
                if columns:
                    changes.append(WorldChange(table, key, "update", _only(was, columns), _only(now, columns)))
    return tuple(sorted(changes, key=order))


def order(change: WorldChange) -> tuple[str, int, float, str, str]:
    """The place of a change among others: by table, then numbers before texts, then kind of change."""
    number = isinstance(change.key, int | float) and not isinstance(change.key, bool)
    return (
        change.table,
        0 if number else 1,
        _float(change.key) if number else 0.0,
        key_text(change.key),
        change.change,
    )


def _by_key(rows: Rows) -> Rows:
    """The rows under their canonical keys, so that 1 and 1.0 are one key; where two would fall together, as written."""
    canonical = {text: key_text(read_key(text)) for text in rows}
    twins = Counter(canonical.values())
    return {(canonical[text] if twins[canonical[text]] == 1 else text): row for text, row in rows.items()}


def _kept(was: Mapping[str, Json], now: Mapping[str, Json], column: str) -> bool:
    return column in was and column in now and same(was[column], now[column])


def _only(row: Mapping[str, Json], columns: Iterable[str]) -> dict[str, Json]:
    return {column: row[column] for column in columns if column in row}


def _float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
