"""Changes that keep the structure of a file: values, keys, ids, times, JSON within text, and how it is packed."""

import gzip
import json
import random
import zlib
from collections.abc import Callable, Sequence

import zstandard

from evalagent.model import Json
from evalagent.traces import attributes as names

ATTRIBUTES: list[str] = sorted(
    {
        key
        for value in vars(names).values()
        for key in ((value,) if isinstance(value, str) else value if isinstance(value, tuple) else ())
        if isinstance(key, str) and "." in key and "\n" not in key
    }
)
"""Every attribute name that a dialect reads."""
WIRE = [
    "traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano", "attributes", "events",
    "links", "status", "code", "key", "value", "stringValue", "intValue", "doubleValue", "boolValue", "arrayValue",
    "kvlistValue", "values", "bytesValue", "resourceSpans", "scopeSpans", "spans", "scope", "resource", "traceID",
    "spanID", "references", "tags", "processes", "logs", "fields", "context", "trace_id", "span_id", "parent_id",
    "start_time", "end_time", "messages", "role", "content", "tool_calls", "id", "function", "arguments", "type",
    "text", "tool_use_id", "input", "output", "body", "timeUnixNano", "eventName", "observations", "run_type",
    "inputs", "outputs", "child_runs", "parent_run_id", "dotted_order", "parentObservationId", "traceId", "usage",
    "usageDetails", "metadata", "extra", "info", "data", "annotations", "duration", "localEndpoint", "timestamp",
]  # fmt: skip
_DEEP: Json = None
for _ in range(80):
    _DEEP = [_DEEP]
ODD: list[Json] = [
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 2**70, 10**39, 0.0, -0.0, 0.5, 1e15,
    1e18, 1e308, -1e308, "", " ", "0", "-1", "NaN", "null", "true", "{", "[", '{"a":',
    '[{"role":"assistant","content":"',
    "\0", "\ud800", "é", "a" * 300, "00000000000000000000000000000000", "0000000000000000", "AAAAAAAAAAA=", [], {},
    [[]], [{}],
    [None], {"": None}, {"role": "assistant"}, [{"role": "tool", "content": None}], {"kwargs": {}, "args": []},
    {"lc": 1, "id": ["AIMessage"], "kwargs": {"content": [1, None], "tool_calls": [{}]}}, _DEEP, "[" * 500, '"' * 50,
    '{"output":' * 60 + "1" + "}" * 60, "transfer_to_x", "handoff to y", "assistant", "tool", "ERROR",
    1750000000000000000,
    "1750000000000000000", "2026-01-01T00:00:00Z", "2026-13-41T99:00:00Z", "9999-12-31T23:59:59.999999999+14:00",
    "-inf", [1, 2], {"type": "text", "text": 5}, {"type": "tool_call", "name": None}, "STATUS_CODE_ERROR",
    "GraphInterrupt",
    {"input_tokens": -5}, {"input": 1e30}, "1e400", [["human", "hi"], ["ai", None]],
]  # fmt: skip
MOST = 24_000
"""Bytes that a mutated file has at most."""


def mutated(data: bytes, seed: int, other: bytes, fallback: Callable[[bytes], bytes]) -> bytes:
    """The file changed by a few steps. `other`: a file to take pieces from; `fallback` changes what is no JSON."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    plain = _unpacked(data)
    documents = _documents(plain)
    if not documents or chance.random() < 0.1:
        return fallback(data)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        _step(chance, documents, _documents(_unpacked(other)) if chance.random() < 0.15 else [])
    return _packed(chance, documents)[:MOST]


def _unpacked(data: bytes) -> bytes:
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:4] == b"\x28\xb5\x2f\xfd":
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=MOST)
    except (OSError, EOFError, MemoryError, zlib.error, zstandard.ZstdError):
        return data
    return data


def _documents(data: bytes) -> list[Json]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return []
    for pieces in ([text], text.splitlines()):
        try:
            return [json.loads(piece) for piece in pieces if piece.strip()]
        except (ValueError, RecursionError):
            continue
    return []


Place = tuple[Json, Json]
"""A list or object, and the index or key in it."""


def _places(documents: list[Json]) -> list[Place]:
    found: list[Place] = []
    todo: list[Json] = [documents]
    while todo and len(found) < 20_000:
        held = todo.pop()
        keys: Sequence[Json] = list(held) if isinstance(held, dict) else range(len(held))
        for key in keys:
            found.append((held, key))
            if isinstance(held[key], dict | list) and held[key]:
                todo.append(held[key])
    return found


def _at(held: Json, key: Json) -> Json:
    """What stands there, if it still does."""
    return held[key] if (key in held if isinstance(held, dict) else key < len(held)) else None


def _copied(value: Json) -> Json:
    try:
        return json.loads(json.dumps(value))
    except (ValueError, RecursionError):
        return None


def _step(chance: random.Random, documents: list[Json], others: list[Json]) -> None:
    places = _places(documents)
    if not places:
        return
    held, key = chance.choice(places)
    value = held[key]
    kind = chance.randrange(12)
    if kind == 0:
        held[key] = _copied(chance.choice(ODD))
    elif kind == 1:
        del held[key]
    elif kind == 2 and isinstance(held, dict):
        held[chance.choice(WIRE if chance.random() < 0.5 else ATTRIBUTES)] = held.pop(key)
    elif kind == 3 and isinstance(held, list):
        held.insert(chance.randrange(len(held) + 1), _copied(value))
    elif kind == 4:
        there, at = chance.choice(places)
        held[key] = _copied(_at(there, at))
    elif kind == 5 and isinstance(value, str):
        held[key] = _inside(chance, value)
    elif kind == 6:
        same = [(h, k) for h, k in places if k == key and isinstance(key, str) and k in h]
        if len(same) > 1:
            (a, k), (b, j) = chance.sample(same, 2)
            a[k], b[j] = b[j], a[k]
    elif kind == 7 and isinstance(value, str) and value in ATTRIBUTES:
        held[key] = chance.choice(ATTRIBUTES)
    elif (
        kind == 8 and isinstance(value, int | str) and str(value)[:40].lstrip("-").isdecimal() and len(str(value)) < 40
    ):
        moved = int(value) + chance.choice((-1, 1, 10**6, -(10**6), 10**9, -(10**18), 10**18))
        held[key] = str(moved) if isinstance(value, str) else moved
    elif kind == 9 and others:
        there, at = chance.choice(_places(others) or [(["x"], 0)])
        held[key] = _copied(_at(there, at))
    elif kind == 10 and isinstance(held, list):
        chance.shuffle(held)
    else:
        ids = [(h, k) for h, k in places if isinstance(k, str) and k in h and k.lower().endswith("id")]
        if len(ids) > 1:
            (a, k), (b, j) = chance.sample(ids, 2)
            a[k] = b[j]


def _inside(chance: random.Random, text: str) -> Json:
    """Text that holds JSON, changed within or cut; other text cut or doubled."""
    if text[:1] in ("{", "["):
        inner = _documents(text.encode("utf-8", "replace"))
        if inner and chance.random() < 0.7:
            _step(chance, inner, [])
            return json.dumps(inner[0]) if inner else ""
    if chance.random() < 0.7:
        return text[: chance.randrange(len(text) + 1)]
    return (text + text)[:5000]


def _packed(chance: random.Random, documents: list[Json]) -> bytes:
    way = chance.randrange(20)
    try:
        if way == 0:
            text = json.dumps(documents)
        elif way == 1:
            text = "\n".join(json.dumps(document, indent=1) for document in documents)
        elif way == 2:
            text = "".join(json.dumps(document) for document in documents)
        elif way == 3:
            text = "\ufeff" + "\r\n".join(map(json.dumps, documents))
        else:
            text = "\n".join(map(json.dumps, documents))
    except (ValueError, RecursionError):
        text = "{}"
    data = text.encode("utf-8", "replace")
    if way == 4:
        data = data[: chance.randrange(len(data) + 1)]
    elif way == 5:
        data = gzip.compress(data, 1)
    elif way == 6:
        data = zstandard.compress(data, 1)
    elif way == 7:
        data = data.decode("utf-8", "replace").encode("utf-16")
    return data
