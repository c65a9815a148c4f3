"""What secrets look like under whatever name: the forms of keys and tokens, and how lines and sentences say them."""

import re
from collections.abc import Iterator, Sequence

from evalagent.traces.secret_keys import mask_keyed
from evalagent.traces.secret_names import mark, names_a_secret

# Each pattern begins with what is searched for fast, a letter or a few, and looks back from there.


def _edge(after: int) -> str:
    """That a word began so many characters before; an escaped line end counts too (`\\nsk-…` in JSON text)."""
    return rf"(?:(?<![A-Za-z0-9](?s:.){{{after}}})|(?<=\\[nrt](?s:.){{{after}}}))"


_BEARER = r"[A-Za-z0-9._~+/-]{8,}={0,2}"
_PEM_NAME = r"[A-Z0-9 ]{0,30}PRIVATE KEY-----"
_FORMS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (hints, re.compile(pattern))
    for hints, pattern in (
        (("sk-",), rf"sk-{_edge(3)}(?:(?=[\w-]{{0,60}}\d)[\w-]{{8,}}|[\w-]{{20,}})"),
        (
            ("k_live_", "k_test_", "whsec_"),
            rf"(?:[sr]k_(?:live|test)_{_edge(8)}|whsec_{_edge(6)})[A-Za-z0-9]{{8,}}",
        ),
        (
            ("bearer",),
            rf"(?:(?:Bearer|BEARER){_edge(6)}\s+(?P<s>{_BEARER})"
            rf"|bearer{_edge(6)}\s+(?P<t>(?=[^\s\"']*\d){_BEARER}))",
        ),
        (("akia", "asia"), rf"A[KS]IA{_edge(4)}[0-9A-Z]{{12,}}"),
        (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), rf"gh[pousr]_{_edge(4)}[A-Za-z0-9]{{10,}}"),
        (("github_pat_",), rf"github_pat_{_edge(11)}\w{{10,}}"),
        (("glpat-",), rf"glpat-{_edge(6)}[\w-]{{10,}}"),
        (("xox",), rf"xox[abeoprs]-{_edge(5)}[\w-]{{8,}}"),
        (("aiza",), rf"AIza{_edge(4)}[\w-]{{20,}}"),
        (("ya29.",), rf"ya29\.{_edge(5)}[\w-]{{10,}}"),
        (
            ("hf_", "gsk_", "npm_", "r8_", "lsv2_", "dop_v1_"),
            rf"(?:(?:hf_|r8_){_edge(3)}|(?:gsk_|npm_){_edge(4)}|lsv2_(?:pt|sk)_{_edge(8)}|dop_v1_{_edge(7)})\w{{16,}}",
        ),
        (("pypi-",), rf"pypi-{_edge(5)}[\w-]{{20,}}"),
        (("sg.",), rf"SG\.{_edge(3)}[\w-]{{12,}}\.[\w-]{{12,}}"),
        (("eyj",), rf"eyJ{_edge(3)}"),
        (
            ("private key",),
            rf"-----BEGIN {_edge(11)}{_PEM_NAME}(?:[^-\"\\]|\\++[nr]|-(?!----))*+(?:-----END {_PEM_NAME})?",
        ),
        (("://",), r"://[^\s/@:\"'\\]{0,80}:(?!\[masked:)(?P<s>[^\s/@\"'\\]{1,256})@"),
    )
)
_JWT = re.compile(r"eyJ[\w-]{6,}+\.[\w-]{6,}+(?:\.[\w-]*)?")
_JWT_PART = re.compile(r"[\w-]*+")
_SCHEME_BEFORE = re.compile(rf"{_edge(0)}[A-Za-z][A-Za-z0-9+.-]{{1,20}}\Z")
_HEADER_WORDS = ("authorization", "api-key", "x-auth-token", "cookie")
_HEADER = re.compile(
    rf"{_edge(0)}(?i:authorization|api-key|x-auth-token|cookie)\s*:\s*"
    r"(?i:(?:bearer|basic|token|digest)\s+)?+(?!\[masked:)(?P<s>[^\s\"'\\,;]{4,})"
)
_SPOKEN_WORDS = ("password", "passwd", "passphrase", "api", "secret", "client", "access")
_SPOKEN = re.compile(
    rf"{_edge(0)}(?i:password|passwd|passphrase|api[_ -]?key|secret[_ ]?key|client[_ ]?secret|access[_ ]?token)"
    r"\s*(?::|\b(?i:is)\b)\s*[`(]?(?!\[masked:)(?=[^\s\"'`,;\\]{4})"
)
_UNBROKEN = re.compile(r"[^\s\"'`,;\\]++")
_DIGIT = re.compile(r"\d")
_KEY_HINTS = ("key", "token", "secret", "passw", "passphrase", "pwd", "authorization", "cookie", "connection")
_ASSIGNS = re.compile(r"=(?!\[masked:)(?=[^\s&;,\"'<>\\(){}\[\]]{4})")
_ASSIGNED = re.compile(r"[^\s&;,\"'<>\\(){}\[\]]++")
_NAME_BEFORE = re.compile(r"[\w.-]+\Z")


def mask_text(text: str) -> str:
    """A text with what looks like a secret masked, once over."""
    low = text.lower()
    if any(hint in low for hint in _KEY_HINTS):
        text = mask_keyed(text)
        if "=" in text:
            text = _assignments(text)
    for hints, form in _FORMS:
        for hint in hints:
            if hint in low:
                text = (
                    _urls(text, form)
                    if hint == "://"
                    else _tokens(text, form)
                    if hint == "eyj"
                    else form.sub(_found, text)
                )
                break
    if any(hint in low for hint in ("authorization", "-key", "auth-token", "cookie")):
        text = _headers(text)
    return _spoken(text) if any(hint in low for hint in ("passw", "passphrase", "api", "secret", "token")) else text


def _places(text: str, words: Sequence[str]) -> Iterator[int]:
    """Where one of these words may begin, in any case, in order."""
    low = text.lower().replace("\u0131", "i").replace("\u017f", "s")
    if len(low) != len(text):  # a letter that is two in lower case: nothing is where it was
        yield from range(len(text))
        return
    found = []
    for word in words:
        at = low.find(word)
        while at >= 0:
            found.append(at)
            at = low.find(word, at + 1)
    yield from sorted(found)


def _found(match: re.Match[str]) -> str:
    groups = match.groupdict()
    for name in ("s", "t"):
        secret = groups.get(name)
        if secret:
            start = match.start(name) - match.start()
            whole = match.group()
            return whole[:start] + mark(secret) + whole[start + len(secret) :]
    return mark(match.group())


def _tokens(text: str, begins: re.Pattern[str]) -> str:
    """JSON web tokens. Where a part is followed by no other, no token begins anywhere in it."""
    pieces: list[str] = []
    done = after = 0
    for match in begins.finditer(text):
        start = match.start()
        if start < after:
            continue
        token = _JWT.match(text, start)
        if token:
            pieces += [text[done:start], mark(token.group())]
            done = after = token.end()
        else:
            part = _JWT_PART.match(text, start)
            after = part.end() if part else start
    return "".join([*pieces, text[done:]]) if pieces else text


def _urls(text: str, form: re.Pattern[str]) -> str:
    """Passwords in URLs; what stands before `://` has to be a scheme."""
    pieces: list[str] = []
    done = 0
    for match in form.finditer(text):
        if _SCHEME_BEFORE.search(text, max(done, match.start() - 21), match.start()):
            pieces += [text[done : match.start("s")], mark(match["s"])]
            done = match.end("s")
    return "".join([*pieces, text[done:]]) if pieces else text


def _headers(text: str) -> str:
    """Header lines whose name is that of a secret."""
    pieces: list[str] = []
    done = 0
    for at in _places(text, _HEADER_WORDS):
        match = _HEADER.match(text, at) if at >= done else None
        if match:
            pieces += [text[done : match.start("s")], mark(match["s"])]
            done = match.end()
    return "".join([*pieces, text[done:]]) if pieces else text


def _spoken(text: str) -> str:
    """What a sentence says a password or key is (`the password is …`), if it has a digit."""
    pieces: list[str] = []
    done = digitless = 0
    for at in _places(text, _SPOKEN_WORDS):
        match = _SPOKEN.match(text, at) if at >= done else None
        if match is None or match.end() < digitless:
            continue
        start = match.end()
        run = _UNBROKEN.match(text, start)
        end = run.end() if run else start
        if _DIGIT.search(text, start, end):
            pieces += [text[done:start], mark(text[start:end])]
            done = end
        else:
            digitless = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _assignments(text: str) -> str:
    """`name=value` where the name is that of a secret."""
    pieces: list[str] = []
    done = after = 0
    for match in _ASSIGNS.finditer(text):
        at = match.start()
        if at < after:
            continue
        name = _NAME_BEFORE.search(text, max(0, at - 65), at)
        if name is None or not 2 <= len(name.group()) <= 64:
            continue
        value = _ASSIGNED.match(text, at + 1)
        after = value.end() if value else at + 1
        if names_a_secret(name.group()):
            pieces += [text[done : at + 1], mark(text[at + 1 : after])]
            done = after
    return "".join([*pieces, text[done:]]) if pieces else text
