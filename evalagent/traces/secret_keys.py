"""Secrets under their names in JSON (or Python's way of writing it) that stands inside a text."""

import re

import orjson

from evalagent.traces.secret_names import holds_numbers, mark, names_a_secret, seal

_KEY = re.compile(r"([\"'])([\w .$/-]{2,80})(\\*+)\1\s*:\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?").match
_BETWEEN = re.compile(r"\s*,\s*").match


def mask_keyed(text: str) -> str:
    """A text that holds JSON (or Python's way of writing it) with the values of secret keys masked.

    Works on the text itself, so it may be cut off anywhere, and nothing else of it changes.
    """
    pieces: list[str] = []
    done = 0
    for match in _KEY.finditer(text):
        if not names_a_secret(match[2]):
            continue
        first = match.start()
        while first > 0 and text[first - 1] == "\\":
            first -= 1
        slashes, quote, position = match.start() - first, match[1], match.end()
        if first < done or slashes != len(match[3]):
            continue
        delimiter = match[3] + quote
        listed = text[position : position + 1] == "["
        position += listed
        while text.startswith(delimiter, position):
            start = position + len(delimiter)
            end, after = _closing(text, start, quote, slashes)
            secret = text[start:end]
            if not (match[2] == "token" and "logprob" in text[after : after + 24]):
                pieces += [text[done:start], _resealed(secret, slashes, quote)]
                done = end
            more = _BETWEEN(text, after) if listed else None
            position = more.end() if more else len(text)
        number = _NUMBER(text, position) if holds_numbers(match[2]) else None
        if number:
            pieces += [text[done:position], delimiter, mark(number.group()), delimiter]
            done = number.end()
    return "".join([*pieces, text[done:]]) if pieces else text


def _closing(text: str, start: int, quote: str, slashes: int) -> tuple[int, int]:
    """Where the content of a quoted text ends, and where its closing quote ends; the end of the text if it was cut.

    A quote in a JSON text that was itself quoted `n` times has `2^n - 1` backslashes; one inside the content has more,
    by other numbers.
    """
    position = text.find(quote, start)
    while position >= 0:
        before = position
        while before > start and text[before - 1] == "\\":
            before -= 1
        run = position - before
        if run % (2 * (slashes + 1)) == slashes or run < slashes:
            return position - min(run, slashes), position + 1
        position = text.find(quote, position + 1)
    return len(text), len(text)


def _resealed(raw: str, slashes: int, quote: str) -> str:
    """The mark for a secret as it was before it was quoted, so that it is the same as elsewhere."""
    secret = raw
    levels = (slashes + 1).bit_length()
    while "\\" in secret and levels and quote == '"':
        try:
            secret = orjson.loads(f'"{secret}"')
        except orjson.JSONDecodeError:
            break
        levels -= 1
    sealed = seal(secret)
    return raw if sealed == secret else sealed
