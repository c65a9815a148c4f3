"""Which of many tests a span meets first, remembered by what the tests looked at.

Spans of one kind have the same scope, name and keys, and most tests look no further. Where one asks for a value, the
answer is remembered for that value; so a test may ask for whatever it likes, and the memory is never wrong.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evalagent.model import Json, Span

_REMEMBERED = 4096
"""Answers; with more than that, as where each span has a name of its own, all are forgotten."""
_MANY = 64
"""Spans with more keys than this (messages spread over them) are seldom alike."""


class _Asked(Mapping[str, Json]):
    """Attributes that know which of their values were asked for."""

    def __init__(self, attributes: Mapping[str, Json]) -> None:
        self._attributes = attributes
        self.keys_asked: dict[str, None] = {}

    def __getitem__(self, key: str) -> Json:
        value = self._attributes[key]
        self.keys_asked[key] = None
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)


class Recognizer:
    """Tests in their order. They are shown a span's scope, name and attributes, and nothing else of it."""

    def __init__(self, tests: Sequence[Callable[[Span], bool]]) -> None:
        self._tests = tests
        self._known: dict[Any, Any] = {}
        self._learnt = 0

    def first(self, span: Span) -> int:
        """The place of the first test that the span meets; -1 where it meets none."""
        attributes = span.attributes
        if len(attributes) > _MANY:
            return self._look(span)[0]
        kind = (span.scope, span.name, tuple(attributes))
        found = self._known.get(kind)
        while type(found) is tuple:  # (key, {value: what follows})
            try:
                found = found[1].get(_value(attributes[found[0]]))
            except TypeError:  # a list or an object, which is no key
                return self._look(span)[0]
        return self._learn(kind, span) if found is None else int(found)

    def _look(self, span: Span) -> tuple[int, list[str]]:
        asked = _Asked(span.attributes)
        bare = Span("", "", None, span.name, 0, None, attributes=asked, scope=span.scope)
        place = next((at for at, test in enumerate(self._tests) if test(bare)), -1)
        return place, list(asked.keys_asked)

    def _learn(self, kind: Any, span: Span) -> int:
        place, asked = self._look(span)
        self._learnt += 1
        if self._learnt > _REMEMBERED:
            self._known.clear()
            self._learnt = 1
        into, key = self._known, kind
        for name in asked:
            try:
                value = _value(span.attributes[name])
                hash(value)
            except TypeError:
                return place
            into, key = into.setdefault(key, (name, {}))[1], value
        into[key] = place
        return place


def _value(value: Json) -> Any:
    """A value as a key: 1, 1.0 and True are three."""
    return value if type(value) is str else (type(value), value)
