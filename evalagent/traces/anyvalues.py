"""Attribute values: OTLP's AnyValue and plain JSON, made safe for everything that comes after.

What comes out holds None, bool, int, float, str, list, dict with text keys and no more; numbers are finite, integers
fit 64 bits, and nothing is nested deeper than `DEEPEST` levels: what was deeper is text. A number that is not finite
(`NaN`, `Infinity`, a null double) is None: not known.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping

import orjson

from evalagent.model import Json
from evalagent.traces.identifiers import integer

DEEPEST = 64
_INT64 = 1 << 63
_NOTHING = object()


def attributes(raw: Json) -> tuple[dict[str, Json], int]:
    """Attributes from a list of `{key, value}` or a flat object, and how many of them could not be read.

    The last of two values with one key wins.
    """
    if not raw:
        return {}, 0
    if type(raw) is dict:
        return {key: plain(value) for key, value in raw.items()}, 0
    if type(raw) is not list:
        return {}, 1
    found: dict[str, Json] = {}
    lost = 0
    for pair in raw:
        try:
            key, value = pair["key"], pair["value"]
        except (KeyError, TypeError):
            key, value = (pair.get("key"), None) if type(pair) is dict else (None, None)
        if type(key) is not str:
            lost += 1
            continue
        if type(value) is dict:
            # The commonest value by far; any_value() says the same, three times slower.
            text = value.get("stringValue")
            found[key] = text if type(text) is str else any_value(value)
        else:
            found[key] = plain(value)
    return found, lost


def any_value(value: Json, depth: int = 1) -> Json:
    """The plain value of an AnyValue (`{"stringValue": …}` and so on); an empty or unknown one is None."""
    if type(value) is not dict:
        return plain(value, depth)
    for kind, inner in value.items():
        reader = _READERS.get(kind)
        if reader is not None:
            return reader(inner, depth)
    return None


def _string(inner: Json, depth: int) -> Json:
    return inner if type(inner) is str else plain(inner, depth)


def _int(inner: Json, depth: int) -> Json:
    number = integer(inner)
    return plain(inner if number is None else number)


def _bool(inner: Json, depth: int) -> bool | None:
    return inner if type(inner) is bool else {"true": True, "false": False}.get(str(inner).lower())


def _array(inner: Json, depth: int) -> Json:
    values = inner.get("values") if type(inner) is dict else inner
    if type(values) is not list:
        return []
    return [any_value(item, depth + 1) for item in values] if depth < DEEPEST else as_text(values)


def _kvlist(inner: Json, depth: int) -> Json:
    values = inner.get("values") if type(inner) is dict else inner
    if type(values) is dict:
        return plain(values, depth)
    if type(values) is not list:
        return {}
    if depth >= DEEPEST:
        return as_text(values)
    return {
        pair["key"]: any_value(pair.get("value"), depth + 1)
        for pair in values
        if type(pair) is dict and type(pair.get("key")) is str
    }


def _bytes(inner: Json, depth: int) -> str | None:
    return inner if type(inner) is str else None


def _double(inner: Json, depth: int) -> float | int | None:
    if type(inner) is str:
        try:
            inner = float(inner)
        except ValueError:
            return None
    if isinstance(inner, bool) or not isinstance(inner, int | float) or not math.isfinite(inner):
        return None
    return inner if isinstance(inner, float) or -_INT64 <= inner < _INT64 else float(inner)


_READERS: dict[str, Callable[[Json, int], Json]] = {
    f"{kind}{spelling}": reader
    for kind, reader in (
        ("string", _string),
        ("int", _int),
        ("bool", _bool),
        ("double", _double),
        ("array", _array),
        ("kvlist", _kvlist),
        ("bytes", _bytes),
    )
    for spelling in ("Value", "_value")
}
KINDS = frozenset(_READERS)
"""The one key of an AnyValue."""


def plain(value: Json, depth: int = 1) -> Json:
    """A JSON value as it stands, made safe (see above); an integer of more than 64 bits becomes text."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return value if -_INT64 <= value < _INT64 else str(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is list:
        return [plain(item, depth + 1) for item in value] if depth < DEEPEST else as_text(value)
    if kind is dict:
        return {key: plain(item, depth + 1) for key, item in value.items()} if depth < DEEPEST else as_text(value)
    return None


def shallow(value: Json) -> Json:
    """The very same value if it is nested no deeper than what `plain` keeps, else with what is deeper as text."""
    level = [value] if type(value) in (list, dict) else []
    for _ in range(DEEPEST - 1):
        inner = [item for held in level for item in (held.values() if type(held) is dict else held)]
        level = [item for item in inner if type(item) is list or type(item) is dict]
        if not level:
            return value
    return plain(value)


def as_text(value: Json) -> str:
    """JSON text of a value, however deeply it is nested."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return "".join(_pieces(value))


def _pieces(value: Json) -> Iterator[str]:
    """The same text piece by piece, for what the fast writer refuses: what is nested beyond its limit, integers beyond
    64 bits, halves of surrogate pairs."""
    todo: list[tuple[str, Json]] = [("", value)]
    while todo:
        before, item = todo.pop()
        yield before
        if isinstance(item, list | tuple) and item:
            todo.append(("]", _NOTHING))
            todo.extend((("," if number else "["), item[number]) for number in range(len(item) - 1, -1, -1))
        elif isinstance(item, Mapping) and item:
            todo.append(("}", _NOTHING))
            names = (f"{',' if number else '{'}{_scalar(str(key))}:" for number, key in enumerate(item))
            todo.extend(reversed([*zip(names, item.values(), strict=True)]))
        elif item is not _NOTHING:
            yield _scalar(item)


def _scalar(value: Json) -> str:
    known = type(value) is not float or math.isfinite(value)
    return json.dumps(value if known else None, ensure_ascii=False, default=str)
