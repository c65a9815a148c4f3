"""Texts that steps put out, found again in what later steps were given."""

import re
from bisect import bisect_right
from dataclasses import dataclass

from evalagent.traces.unwrapping import collapsed

_LINE = 3
_ANCHOR = 12
CANDIDATES = 16
"""At most so many makers, and outputs that begin alike, are looked at for one text."""
_ALIKE = 256
_SINCE = 64
"""So many new outputs are looked for one by one in a text that was searched before; for more it is searched anew."""
_WORD = re.compile(r"\w+")
_SAID = re.compile(r"\[[^\]]{1,80}\] said: ")
"""How ADK tells one agent what another answered."""


@dataclass(slots=True)
class Sighting:
    """What was found in a text when `known` outputs were known; `whole` is the text, collapsed."""

    known: int
    whole: str
    found: list[str]


class Producers:
    """Texts that steps put out, found again as a line or inside a longer text.

    A longer text is searched by anchors: the first 12 characters of each output from its first word on; outputs that
    begin alike are told apart by longer anchors.
    """

    def __init__(self) -> None:
        self._texts: dict[str, list[tuple[int, int, int]]] = {}
        self._order: list[str] = []
        self._loose: set[str] = set()
        self._anchors: dict[int, dict[str, list[tuple[str, int]]]] = {}

    def put(self, text: str, start: int, end: int, number: int) -> None:
        """A step's output; `start` and `end` in ns, `number` its place."""
        text = collapsed(text)
        if len(text) < _LINE:
            return
        known = self._texts.get(text)
        if known is None:
            known = self._texts[text] = []
            self._order.append(text)
            self._anchor(text)
        entry = (end, start, number)
        if known and entry < known[-1]:
            self._loose.add(text)
        known.append(entry)

    def _anchor(self, text: str) -> None:
        word = _WORD.search(text)
        lead = word.start() if word is not None else len(text)
        size = _ANCHOR
        while lead + size <= len(text):
            bucket = self._anchors.setdefault(size, {}).setdefault(text[lead : lead + size], [])
            last = lead + 2 * size > len(text)
            if len(bucket) < (_ALIKE if last else CANDIDATES):
                bucket.append((text, lead))
                return
            size *= 2

    def makers(self, text: str, moment: int) -> list[int]:
        """Of the steps with exactly this output that had ended by then, the latest and those at the same time."""
        known = self._texts.get(text)
        if known and text in self._loose:
            known.sort()
            self._loose.discard(text)
        upto = bisect_right(known, (moment, moment, 1 << 62)) if known else 0
        if not known or not upto:
            return []
        near = known[max(0, upto - CANDIDATES) : upto]
        latest = max(start for _, start, _ in near)
        return [number for end, start, number in near if end > latest or start == latest]

    def again(self, text: str, last: Sighting | None) -> Sighting:
        """What `inside` finds in a text that may have been searched before: only outputs put in since then can change
        that, and only if they stand in it."""
        if last is not None:
            since = self._order[last.known :] if len(self._order) - last.known <= _SINCE else None
            if since is not None and not any(new in last.whole for new in since):
                last.known = len(self._order)
                return last
        whole = collapsed(text)
        return Sighting(len(self._order), text if whole == text else whole, self.inside(text))

    def inside(self, text: str) -> list[str]:
        """The outputs that stand in a text, as a line of it or as a part of 12 characters or more; not those that stand
        inside another one found."""
        whole = collapsed(text)
        if len(self._order) <= _SINCE and not any(known in whole for known in self._order):
            return []
        found: dict[str, None] = {}
        for line in text.splitlines():
            line = collapsed(line)
            said = _SAID.match(line)
            for heard in (line, line[said.end() :]) if said is not None else (line,):
                if heard in self._texts:
                    found[heard] = None
        if whole in self._texts:
            found[whole] = None
        upto = -1
        # An output told apart by a longer anchor has filled the bucket of its first 12 characters before.
        shortest = self._anchors.get(_ANCHOR, {})
        for word in _WORD.finditer(whole) if shortest else ():
            at = word.start()
            if whole[at : at + _ANCHOR] in shortest:
                for size, anchors in self._anchors.items():
                    for known, lead in anchors.get(whole[at : at + size], ()):
                        if at >= lead and at - lead + len(known) > upto and whole.startswith(known, at - lead):
                            found[known] = None
                            upto = at - lead + len(known)
            if len(found) >= 4 * CANDIDATES:
                break
        if len(found) < 2:
            return list(found)
        longest = sorted(found, key=lambda t: (-len(t), t))[: 4 * CANDIDATES]
        return [t for at, t in enumerate(longest) if not any(t in longer for longer in longest[:at])][:CANDIDATES]
