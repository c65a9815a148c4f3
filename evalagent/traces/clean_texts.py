"""Texts that hold no secret, remembered, since histories repeat them."""

from collections.abc import Mapping

WORTH = 512
"""Characters of a text that is worth comparing with the one before; a shorter one is read as fast."""
TAIL = 16
"""Characters at a text's end that the next one may have replaced: the brackets that close it."""
_KEPT = 1 << 24
"""Characters of texts that are remembered in all; then everything is forgotten."""


class CleanTexts:
    """Texts that were found to hold no secret, by the trace and the attribute they stood in.

    The next call of a model repeats the messages of the one before and adds some: only what is new is looked at.
    """

    def __init__(self) -> None:
        self._traces: dict[str, dict[str, str]] = {}
        self._size = 0

    def of(self, trace_id: str) -> Mapping[str, str]:
        """The texts of one trace by attribute."""
        return self._traces.get(trace_id, _NOTHING)

    def keep(self, trace_id: str, texts: Mapping[str, str], grown: int) -> None:
        """Remember texts of a trace; they are `grown` characters longer than those they replace."""
        self._size += grown + 100
        if self._size > _KEPT:
            self._traces = {}
            self._size = 0
        self._traces.setdefault(trace_id, {}).update(texts)


_NOTHING: Mapping[str, str] = {}
