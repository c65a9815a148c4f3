"""The shortest sign of each form of secret: text that shows none holds no secret, and needs no closer look.

Most text holds no secret, so `may_hold_a_secret` decides about nearly all of it, in one pass of an automaton whose time
is linear in the text whatever the text is. It may only err on one side: each sign below stands in every match of the
rule in `secret_forms` that it is named after. Three things keep that so:

* a sign is looser than its rule: what a rule looks ahead or behind for is left out or widened, a letter outside of
  ASCII passes for any letter, digit or space, and the few that case folding turns into ASCII stand with those;
* a sign is counted in bytes of UTF-8 and a rule in characters, and no character is less than a byte;
* a sign is at most `REACH` characters long, so that of a text that continues one without signs only what is new and
  `REACH` characters before it need be looked at.
"""

import re2

from evalagent.traces.secret_names import NAMES, names_a_secret

REACH = 400
"""Characters. The longest sign is a URL with a password (21 + 3 + 80 + 1 + 256 + 1)."""

_FOLDED = {"i": r"(?:[iI]|\xc4[\xb0\xb1])", "k": r"(?:[kK]|\xe2\x84\xaa)", "s": r"(?:[sS]|\xc5\xbf)"}
"""Letters that others, outside of ASCII, are equal to when case is ignored (U+0130, U+0131, U+212A, U+017F)."""
_SPACE = r"[\x09-\x0d\x1c-\x20\x80-\xff]"
_WORD = r"[\w\x80-\xff]"
_FEW = rf"(?:{_SPACE}{{0,2}}%s|{_SPACE}{{3}})"
"""Spaces and then %s: how many spaces there are is not known, so three will do."""
_BETWEEN = r"[_$\-\x80-\xff]*"
"""What may stand between the letters of a name, for names are compared by letters and digits alone."""


def _any_case(word: str, between: str = "") -> str:
    return between.join(_FOLDED.get(c, f"[{c}{c.upper()}]" if c.isalpha() else c) for c in word)


def _names() -> str:
    names = sorted({*NAMES, "token"})
    shortest = [name for name in names if not any(name != other and name.endswith(other) for other in names)]
    return "|".join(_any_case(name, _BETWEEN) for name in shortest)


_EDGE = r"(?:^|[^A-Za-z0-9]|\\[nrt])"
_HEADERS = "|".join(_any_case(word) for word in ("authorization", "api-key", "auth-token", "cookie"))
_SPOKEN = "|".join(
    gap.join(_any_case(part) for part in parts)
    for gap, *parts in (
        ("", "password"),
        ("", "passwd"),
        ("", "passphrase"),
        ("[_ -]?", "api", "key"),
        ("[_ ]?", "secret", "key"),
        ("[_ ]?", "client", "secret"),
        ("[_ ]?", "access", "token"),
    )
)
_SAID = rf"(?::|{_any_case('is')}(?:$|[^A-Za-z0-9_]))"
_COLON = rf"[\"']{_FEW % ':'}"
_AFTER_KEY = rf"(?:\\(?:\\|{_COLON})|{_COLON}|=[^\t-\r \x1c-\x1f&;,\"'<>\\(){{}}\[\]]{{4}})"
"""The end of a quoted key, or the `=` of an assignment."""

SIGNS: dict[str, str] = {
    "sk": rf"sk-(?:{_WORD}|-){{8}}",
    "stripe": r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{8}",
    "bearer": rf"(?:Bearer|BEARER|bearer){_SPACE}(?:{_SPACE}{{0,2}}[A-Za-z0-9._~+/-]{{8}}|{_SPACE}{{2}})",
    "aws": r"A[KS]IA[0-9A-Z]{12}",
    "github": rf"(?:gh[pousr]_[A-Za-z0-9]{{10}}|github_pat_{_WORD}{{10}})",
    "gitlab": rf"glpat-(?:{_WORD}|-){{10}}",
    "slack": rf"xox[abeoprs]-(?:{_WORD}|-){{8}}",
    "google": rf"(?:AIza(?:{_WORD}|-){{20}}|ya29\.(?:{_WORD}|-){{10}})",
    "registries": rf"(?:(?:hf|gsk|npm|r8|lsv2_(?:pt|sk)|dop_v1)_{_WORD}{{16}}|pypi-(?:{_WORD}|-){{20}})",
    "sendgrid": rf"SG\.(?:{_WORD}|-){{12}}",
    "json web token": rf"eyJ(?:{_WORD}|-){{6}}",
    "private key": r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----",
    "url": r"[A-Za-z0-9+.-]://[^\t-\r \x1c-\x1f/@:\"'\\]*:[^\t-\r \x1c-\x1f/@\"'\\]+@",
    "header": rf"(?:{_HEADERS}){_FEW % ':'}",
    "spoken": rf"(?:{_SPOKEN}){_FEW % _SAID}",
    "key": rf"(?:{_names()}){_BETWEEN} *{_AFTER_KEY}",
}
"""By the rule that each belongs to. Only `url` and `key` may stand within a word; of them nothing is asked before."""
_WITHIN = ("url", "key")


def _automaton() -> re2._Regexp:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.log_errors = False
    edged = "|".join(sign for name, sign in SIGNS.items() if name not in _WITHIN)
    within = "|".join(SIGNS[name] for name in _WITHIN)
    return re2.compile(f"{_EDGE}(?:{edged})|{within}".encode(), options)


_search = _automaton().search
_MOST_PASSED = 64
"""Signs that turn out to be none; of a text with more nothing is said, which bounds the time."""
_NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$-") | frozenset(
    range(128, 256)
)


def may_hold_a_secret(text: str) -> bool:
    """Whether a sign of a secret is in the text. False is certain, True is not.

    Texts may be joined by NUL and asked about together.
    """
    data = text.encode("utf-8", "surrogatepass")
    match = _search(data)
    for _ in range(_MOST_PASSED):
        if match is None:
            return False
        start, end = match.span()
        if not _is_harmless(data, start):
            return True
        match = _search(data, max(start + 1, end - 2))  # what ends this one may be the edge before the next
    return match is not None


def _is_harmless(data: bytes, start: int) -> bool:
    """Whether the sign that starts here is the quoted name of a harmless token, such as that of the next page."""
    if data[start : start + 5].lower() != b"token" or data[start + 5] not in b"\"'\\":
        return False
    first = start
    while first > start - 80 and first > 0 and data[first - 1] in _NAME_BYTES:
        first -= 1
    return not names_a_secret(data[first : start + 5].decode("utf-8", "replace"))
