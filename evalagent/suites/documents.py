"""YAML and JSON texts that people write → values, of which nothing is dropped, rounded or run.

What the two formats leave open is closed here: keys stand once, numbers are finite and fit into 64 bits, and neither
nesting nor aliases can exhaust the reader. Errors name file and line.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import yaml

from evalagent.errors import UsageError
from evalagent.model import Json

MOST_NODES = 100_000
"""Values in a YAML text, those that aliases repeat counted each time: a few lines of aliases can stand for billions."""
MOST_DEPTH = 64
"""Lists and objects in one another."""

_TAG = "tag:yaml.org,2002:"
_POWER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML text as values of JSON, and where in it they stand."""

    value: Json
    node: yaml.Node | None

    def line_of(self, where: Sequence[str | int]) -> int:
        """The line (from 1) of a place, given by keys and positions; of the nearest thing around it if it is not
        there."""
        node = self.node
        line = node.start_mark.line + 1 if node else 1
        for part in where:
            if isinstance(node, yaml.MappingNode):
                hit = next(((k, v) for k, v in node.value if k.value == str(part)), None)
                if hit is None:
                    return line
                line, node = hit[0].start_mark.line + 1, hit[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = node.start_mark.line + 1
            else:
                return line
        return line


def read_yaml(text: str, file: str) -> Document:
    """The one document in a YAML text; value None if it holds none. UsageError with the line for all that is no JSON
    value (dates, tags of programs, keys that are no text, numbers that are not finite or need more than 64 bits), for
    repeated keys, and for what is nested, or repeated by aliases, beyond MOST_DEPTH and MOST_NODES."""
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        at = text.count("\n", 0, error.position) + 1
        raise UsageError(f"not valid YAML: {error.reason}", file=file, line=at) from error
    try:
        return _Composer(loader, file).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UsageError(f"not valid YAML: {error.problem}", file=file, line=mark.line + 1 if mark else 0) from error
    except (ValueError, OverflowError) as error:  # an escape or a version that the scanner takes for a number
        raise UsageError(f"not valid YAML: {error}", file=file, line=loader.line + 1) from error


def read_json(line: str, file: str, number: int) -> Any:
    """The value in one line of JSON Lines; UsageError names the line by its `number`."""

    def whole(digits: str) -> int:
        if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
            raise UsageError(f"{digits[:60]} does not fit into 64 bits", file=file, line=number)
        return int(digits)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise UsageError("stands twice in one object", file=file, line=number, key=name)
            found[name] = value
        return found

    try:
        if _deep(orjson.loads(line)):
            raise UsageError(f"lists and objects are nested deeper than {MOST_DEPTH}", file=file, line=number)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"not valid JSON: {error}", file=file, line=number) from error
    return json.loads(line, object_pairs_hook=once, parse_int=whole)


def _deep(value: Any) -> bool:
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [part for whole in level for part in _parts(whole)]
    return bool(level)


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True)
class _Part:
    value: Any
    node: yaml.Node
    size: int = 1
    """Values that it stands for, its own included."""
    height: int = 0
    """Lists and objects in one another in it."""


@dataclass(slots=True)
class _Open:
    """A list or an object whose end has not been read."""

    node: yaml.CollectionNode
    anchor: str | None
    parts: list[_Part] = field(default_factory=list)


class _Composer:
    """Events → values, without recursion: no nesting can exhaust the stack."""

    def __init__(self, loader: Any, file: str) -> None:
        self._loader, self._file = loader, file
        self._open: list[_Open] = []
        self._anchors: dict[str, _Part | None] = {}
        self._size = 0
        self._root: _Part | None = None

    def document(self) -> Document:
        while not isinstance(event := self._loader.get_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent) and self._root:
                raise self._wrong(event, "not valid YAML: another document begins here, and one was expected")
            if isinstance(event, yaml.AliasEvent):
                self._add(self._alias(event), None)
            elif isinstance(event, yaml.ScalarEvent):
                self._add(self._scalar(event), event.anchor)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                done = self._open.pop()
                self._add(self._closed(done), done.anchor)
        return Document(self._root.value, self._root.node) if self._root else Document(None, None)

    def _wrong(self, at: Any, message: str, key: str = "") -> UsageError:
        return UsageError(message, file=self._file, line=at.start_mark.line + 1, key=key)

    def _add(self, part: _Part, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = part
        if self._open:
            self._open[-1].parts.append(part)
        else:
            self._root = part

    def _count(self, event: yaml.Event, size: int, height: int) -> None:
        self._size += size
        if self._size > MOST_NODES:
            raise self._wrong(event, f"more than {MOST_NODES} values up to here, repeated ones counted each time")
        if len(self._open) + height > MOST_DEPTH:
            raise self._wrong(event, f"lists and objects are nested deeper than {MOST_DEPTH}")

    def _alias(self, event: Any) -> _Part:
        part = self._anchors.get(event.anchor)
        if part is None and event.anchor in self._anchors:
            raise self._wrong(event, f"not valid here: `*{event.anchor}` stands inside of what it repeats")
        if part is None:
            raise self._wrong(event, f"not valid YAML: there is no `&{event.anchor}` above")
        self._count(event, part.size, part.height)
        return part

    def _begin(self, event: Any) -> None:
        kind = yaml.MappingNode if isinstance(event, yaml.MappingStartEvent) else yaml.SequenceNode
        tag = _TAG + ("map" if kind is yaml.MappingNode else "seq")
        if event.tag not in (None, "!", tag):
            raise self._wrong(event, f"the tag {event.tag} is not taken")
        if event.anchor:
            self._anchors[event.anchor] = None
        self._count(event, 1, 1)
        self._open.append(_Open(kind(tag, [], event.start_mark, event.end_mark), event.anchor))

    def _closed(self, done: _Open) -> _Part:
        size, height = 1 + sum(p.size for p in done.parts), 1 + max((p.height for p in done.parts), default=0)
        if isinstance(done.node, yaml.SequenceNode):
            done.node.value = [part.node for part in done.parts]
            return _Part([part.value for part in done.parts], done.node, size, height)
        pairs = list(zip(done.parts[::2], done.parts[1::2], strict=True))
        done.node.value = [(key.node, value.node) for key, value in pairs]
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in pairs:
            if key.node.tag == _TAG + "merge":
                for source in value.value if isinstance(value.value, list) else [value.value]:
                    if not isinstance(source, dict):
                        raise self._wrong(key.node, "expected an object, or a list of them, to be merged", "<<")
                    merged = source | merged
            elif not isinstance(key.value, str):
                said = key.node.value if isinstance(key.node, yaml.ScalarNode) else "a list or an object"
                raise self._wrong(key.node, f"a key must be text; if it is, put it in quotes (got {said[:60]!r})")
            elif key.value in own:
                raise self._wrong(key.node, "stands here a second time", key.value)
            else:
                own[key.value] = value.value
        return _Part(merged | own, done.node, size, height)

    def _scalar(self, event: Any) -> _Part:
        self._count(event, 1, 0)
        text, tag = event.value, event.tag
        if tag in (None, "!"):
            tag = self._loader.resolve(yaml.ScalarNode, text, event.implicit)
            if event.implicit[0] and _POWER.fullmatch(text):  # 1e-3, which YAML 1.1 takes for text
                tag = _TAG + "float"
        node = yaml.ScalarNode(tag, text, event.start_mark, event.end_mark)
        kind, shown = tag.removeprefix(_TAG), repr(text[:60])
        if kind not in _SCALARS:
            said = "is a date" if kind == "timestamp" else f"has the tag {tag}"
            raise self._wrong(event, f"{shown} {said}, which is not taken; if it is text, put it in quotes")
        named, made = _SCALARS[kind]
        try:
            value = made(self._loader, node)
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise self._wrong(event, f"{shown} is no {named}") from error
        if isinstance(value, float) and not math.isfinite(value):
            raise self._wrong(event, f"{shown} is not finite")
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise self._wrong(event, f"{shown} does not fit into 64 bits")
        return _Part(value, node)


def _text(_loader: Any, node: yaml.ScalarNode) -> str:
    text = str(node.value)
    text.encode()  # an escape may name half of a character
    if "\0" in text:
        raise ValueError(text)
    return text


def _null(_loader: Any, node: yaml.ScalarNode) -> None:
    if node.value.lower() not in ("", "~", "null"):
        raise ValueError(node.value)


_SCALARS: dict[str, tuple[str, Callable[[Any, yaml.ScalarNode], Any]]] = {
    "str": ("readable text", _text),
    "merge": ("readable text", _text),
    "value": ("readable text", _text),
    "null": ("null", _null),
    "bool": ("`true` or `false`", lambda loader, node: loader.construct_yaml_bool(node)),
    "int": ("whole number", lambda loader, node: loader.construct_yaml_int(node)),
    "float": ("number", lambda loader, node: loader.construct_yaml_float(node)),
}
