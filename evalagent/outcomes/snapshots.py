"""What a snapshot of the world is, and when two values in it are the same."""

import json
from collections.abc import Mapping

from evalagent.model import Json

Snapshot = Mapping[str, Mapping[str, Mapping[str, Json]]]
"""table -> key -> column -> value.

A key is the canonical JSON text (`key_text`) of the row's key: of the scalar, or of an object {column: value} for a
key of several columns. A folder is a table too: its rows are files, keyed by their path in it, with the columns
`text` (None if not UTF-8), `sha256` and `bytes`.
"""

FILE_COLUMNS = frozenset({"text", "sha256", "bytes"})


def key_text(key: Json) -> str:
    """The canonical JSON of a key: sorted names, no spaces, 25.0 written as 25. Equal keys have equal texts."""
    return json.dumps(_canonical(key), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_key(text: str) -> Json:
    """The key that a text of `key_text` stands for; a text that is no JSON stands for itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def same(left: Json, right: Json) -> bool:
    """Typed equality: 25 is 25.0 but neither "25" nor True; None is None; lists by order, objects by name."""
    pairs = [(left, right)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, Mapping):
            if not isinstance(b, Mapping) or a.keys() != b.keys():
                return False
            pairs.extend((a[name], b[name]) for name in a)
        elif isinstance(a, list | tuple):
            if not isinstance(b, list | tuple) or len(a) != len(b):
                return False
            pairs.extend(zip(a, b, strict=True))
        elif _number(a):
            if not _number(b) or not (a == b or (a != a and b != b)):  # NaN is the same as NaN: it did not change
                return False
        elif type(a) is not type(b) or a != b:
            return False
    return True


def is_file(columns: Mapping[str, Json] | None) -> bool:
    """Whether the columns of a row, or those of it that changed, are those of a file."""
    return bool(columns) and "sha256" in columns and columns.keys() <= FILE_COLUMNS  # type: ignore[union-attr, operator]


def _number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _canonical(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(name): _canonical(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(part) for part in value]
    return value
