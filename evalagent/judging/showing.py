"""Values of a trace as text that a judge can read: nothing hidden, nothing endless, every cut known."""

import json
import re
from collections.abc import Iterable

import orjson

from evalagent.judging.questions import Piece
from evalagent.model import Json, Message, Step

SCANNED = 2_000_000
"""Characters of a text that are looked at at all; the middle of a longer one is cut unseen."""

LOOKED_AT = 20_000
"""Characters of a text in which words are looked for."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_TERM = re.compile(r"[^\W_][\w@./:+-]{2,60}")


def visible(text: str) -> str:
    r"""The text with every character that cannot be seen (controls, zero-width, direction marks, lone surrogates)
    written as \uXXXX: what a person would not see must not speak to a judge."""
    return _HIDDEN.sub(lambda hit: f"\\u{ord(hit[0]):04x}", text.replace("\r\n", "\n"))


def text_of(value: Json) -> str:
    """A text as it is, everything else as compact JSON in its own order; the empty text for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return visible(value)
    try:
        return visible(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode())
    except TypeError:  # numbers beyond 64 bits, lone surrogates, too deep
        pass
    try:
        return visible(json.dumps(value, default=str, separators=(",", ":")))
    except (RecursionError, TypeError, ValueError):
        return "(too deeply nested to be shown)"


def telling_terms(text: str) -> dict[str, None]:
    """The ids, amounts, dates and addresses in a text, in order of appearance: words with a digit or a sign in them."""
    found: dict[str, None] = {}
    for hit in _TERM.finditer(text[:LOOKED_AT]):
        word = hit[0].rstrip(".:/-")
        if len(word) > 3 and (any(char.isdigit() for char in word) or "@" in word):
            found.setdefault(word)
    return found


def terms_of(texts: Iterable[str], most: int = 40) -> tuple[str, ...]:
    """The words of some texts by which a place in another text is found again: the telling ones first, then names with
    an underscore and long words; in order of appearance."""
    telling: dict[str, None] = {}
    plain: dict[str, None] = {}
    for text in texts:
        telling |= telling_terms(text)
        for hit in _TERM.finditer(text[:LOOKED_AT]):
            word = hit[0].rstrip(".:/-")
            if word not in telling and (len(word) > 6 or "_" in word):
                plain.setdefault(word)
    return (*telling, *plain)[:most]


def piece(place: str, title: str, text: str, limit: int, terms: Iterable[str] = ()) -> Piece:
    """A text of at most `limit` characters: whole, or its beginning, its end and what stands around `terms`."""
    total = len(text)
    if total <= limit:
        return Piece(place, title, (text,) if text else (), total)
    head, tail = limit * 4 // 10, limit * 2 // 10
    spans = [(0, head), (total - tail, total)]
    left = limit - head - tail
    width = max(40, min(300, left // 4))
    for term in terms:
        at = text.find(term, head, min(total - tail, SCANNED))
        if at < 0 or any(start <= at and at + len(term) <= end for start, end in spans):
            continue
        start, end = max(head, at - width // 2), min(total - tail, at + len(term) + width // 2)
        if end - start > left:
            continue
        left -= end - start
        spans.append((start, end))
    if left > width:  # nothing more to look for: a longer beginning
        spans[0] = (0, head + left)
    return Piece(place, title, tuple(text[start:end] for start, end in _merged(spans)), total)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def message_text(message: Message) -> str:
    """What a message says and asks for; one line of JSON for each tool call in it."""
    calls = (text_of({"call": request.name, "arguments": request.arguments}) for request in message.requests)
    return "\n".join(part for part in (text_of(message.text), *calls) if part)


def output_text(step: Step) -> str:
    """What a step gave out: reply and calls of a model, error and result of anything else."""
    if step.kind == "llm" and step.reply is not None:
        return message_text(step.reply)
    result = step.result if step.result is not None else step.output
    return "\n".join(part for part in (f"error: {visible(step.error)}" if step.error else "", text_of(result)) if part)


def header(step: Step) -> str:
    """One line of JSON: what a step is called and what it was given."""
    named = {"name": step.name, "agent": step.agent, "arguments": step.arguments}
    return text_of({key: value for key, value in named.items() if value is not None})
