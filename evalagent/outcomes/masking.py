"""What of the world may change freely: `table`, `table.column`, and globs of files."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from evalagent.model import WorldChange
from evalagent.outcomes.snapshots import is_file


def masked_part(change: WorldChange, masks: Sequence[str]) -> tuple[WorldChange | None, WorldChange | None]:
    """The part of a change that masks cover, and the part that they do not; either may be None.

    A row of a database is masked by its table's name or, column by column of an update, by `table.column`, always as
    written: a glob such as `*.log`, meant for files, must never hide a column named `log`. A file is masked by its
    folder's name or by a glob of its path, in the folder or with it: `*` stays within one folder, `**` does not, and a
    glob without `/` is held against the file's name at any depth.
    """
    table = change.table.rstrip("/")
    if any(mask.rstrip("/") == table for mask in masks):
        return change, None
    if is_file(change.after or change.before):
        path = str(change.key)
        return (change, None) if any(_covers(mask, table, path) for mask in masks) else (None, change)
    if change.change != "update":
        return None, change
    hidden = {mask.removeprefix(f"{change.table}.") for mask in masks if mask.startswith(f"{change.table}.")}
    return _columns(change, hidden, inside=True), _columns(change, hidden, inside=False)


def _columns(change: WorldChange, names: set[str], *, inside: bool) -> WorldChange | None:
    before = {c: v for c, v in (change.before or {}).items() if (c in names) == inside}
    after = {c: v for c, v in (change.after or {}).items() if (c in names) == inside}
    return replace(change, before=before, after=after) if before or after else None


def _covers(mask: str, folder: str, path: str) -> bool:
    glob = _glob(mask.removeprefix("./"))
    if "/" not in mask:
        return glob.fullmatch(path.rsplit("/", 1)[-1]) is not None
    return glob.fullmatch(path) is not None or glob.fullmatch(f"{folder}/{path}") is not None


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    said = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(said.get(part, re.escape(part)) for part in parts), re.DOTALL)
