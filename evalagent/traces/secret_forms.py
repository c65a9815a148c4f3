"""What secrets look like: the names they go by, their forms, and where they stand inside a text."""

import hashlib
import re
from functools import lru_cache

import orjson

NAMES = (
    "apikey",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secretkey",
    "secretaccesskey",
    "accesskey",
    "accesskeyid",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "connectionstring",
    "authorization",
    "cookie",
    "pwd",
    "sessionkey",
    "sharedkey",
)
"""What the name of a secret ends in, letters and digits alone; beside these there is `token`, with exceptions."""
_STRONG = ("password", "passwd", "passphrase", "pwd", "secret")
"""Under these a number is a secret too."""
_HARMLESS_TOKENS = (
    "next",
    "nextpage",
    "page",
    "continuation",
    "cursor",
    "sync",
    "stop",
    "eos",
    "bos",
    "pad",
    "unk",
    "sep",
    "cls",
    "mask",
    "start",
    "end",
    "first",
    "last",
    "per",
    "output",
    "input",
    "prompt",
    "completion",
    "cached",
    "reasoning",
    "special",
    "added",
    "top",
    "decoded",
)


@lru_cache(maxsize=8192)
def names_a_secret(key: str) -> bool:
    """Whether what stands under this key is a secret: its last part, letters and digits alone, ends like one."""
    last = re.split(r"[./\s]", key.strip())[-1] if key else ""
    bare = re.sub(r"[^a-z0-9]", "", last.lower())
    if bare.endswith(NAMES):
        return True
    return bare.endswith("token") and not bare.removesuffix("token").endswith(_HARMLESS_TOKENS)


@lru_cache(maxsize=8192)
def holds_numbers(key: str) -> bool:
    """Whether a number under this key of a secret is one too."""
    return re.sub(r"[^a-z0-9]", "", key.lower()).endswith(_STRONG)


is_mark = re.compile(r"(?:[A-Za-z]+ )?\[masked:[0-9a-f]{8}\]").fullmatch
"""Whether a text is a mark already, with or without the scheme of a header."""
_SCHEME = re.compile(r"(?i)(bearer|basic|token|digest|negotiate)\s+(?=\S)").match


def mark(secret: str) -> str:
    """What stands in a secret's place."""
    return f"[masked:{hashlib.sha256(secret.encode('utf-8', 'replace')).hexdigest()[:8]}]"


def seal(secret: str) -> str:
    """A whole value masked; the scheme of a header (`Bearer`) stays, and so the token alone makes the mark."""
    if not secret.strip() or is_mark(secret):
        return secret
    scheme = _SCHEME(secret)
    return secret[: scheme.end()] + mark(secret[scheme.end() :]) if scheme else mark(secret)


# --- by form -------------------------------------------------------------------------------------

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""Where a word begins; an escaped line end counts as one (`\\nsk-…` in JSON text)."""
_BEARER = r"[A-Za-z0-9._~+/-]{8,}={0,2}"
_PEM_NAME = r"[A-Z0-9 ]{0,30}PRIVATE KEY-----"
_PATTERNS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sk-",), r"(?:sk-(?=[\w-]{0,60}\d)[\w-]{8,}|sk-[\w-]{20,})"),
    (("k_live_", "k_test_", "whsec_"), r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{8,}"),
    (("bearer",), rf"(?:(?:Bearer|BEARER)\s+(?P<s>{_BEARER})|bearer\s+(?P<t>(?=[^\s\"']*\d){_BEARER}))"),
    (("akia", "asia"), r"A[KS]IA[0-9A-Z]{12,}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{10,}"),
    (("github_pat_",), r"github_pat_\w{10,}"),
    (("glpat-",), r"glpat-[\w-]{10,}"),
    (("xox",), r"xox[abeoprs]-[\w-]{8,}"),
    (("aiza",), r"AIza[\w-]{20,}"),
    (("ya29.",), r"ya29\.[\w-]{10,}"),
    (("hf_", "gsk_", "npm_", "r8_", "lsv2_", "dop_v1_"), r"(?:hf|gsk|npm|r8|lsv2_(?:pt|sk)|dop_v1)_\w{16,}"),
    (("pypi-",), r"pypi-[\w-]{20,}"),
    (("sg.",), r"SG\.[\w-]{12,}\.[\w-]{12,}"),
    (
        ("eyj",),
        # guarded by what has to follow the first part, and from that part's beginning: it is gone through only twice
        rf"(?<![\w-])(?=[\w-]++\.[\w-]{{6}})[\w-]*?{_EDGE}(?P<s>eyJ[\w-]{{6,}}\.[\w-]{{6,}}(?:\.[\w-]*)?)",
    ),
    (
        ("private key",),
        rf"-----BEGIN {_PEM_NAME}(?:[^-\"\\]|\\++[nr]|-(?!----))*+(?:-----END {_PEM_NAME})?",
    ),
    (("://",), r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/@:\"'\\]{0,80}:(?!\[masked:)(?P<s>[^\s/@\"'\\]{1,256})@"),
    (
        ("authorization", "-key", "auth-token", "cookie"),
        r"(?i:(?:proxy-)?authorization|(?:x-)?(?:[a-z]{1,20}-)?api-key|x-auth-token|(?:set-)?cookie)\s*:\s*"
        r"(?i:(?:bearer|basic|token|digest)\s+)?+(?!\[masked:)(?P<s>[^\s\"'\\,;]{4,})",
    ),
)
_FORMS = tuple((hints, re.compile(pattern if hints == ("eyj",) else _EDGE + pattern)) for hints, pattern in _PATTERNS)
_SPOKEN_HINTS = ("passw", "passphrase", "api", "secret", "token")
_SPOKEN = re.compile(
    _EDGE + r"(?i:password|passwd|passphrase|api[_ -]?key|secret[_ ]?key|client[_ ]?secret|access[_ ]?token)"
    r"\s*(?::|\b(?i:is)\b)\s*[`(]?(?!\[masked:)(?=[^\s\"'`,;\\]{4})"
)
_UNBROKEN = re.compile(r"[^\s\"'`,;\\]++")
_DIGIT = re.compile(r"\d")
_KEY_HINTS = ("key", "token", "secret", "passw", "passphrase", "pwd", "authorization", "cookie", "connection")
_ASSIGNED = re.compile(r"(?<![\w.-])(?P<name>[\w.-]{2,64})=(?!\[masked:)(?P<s>[^\s&;,\"'<>\\(){}\[\]]{4,})")
_KEY = re.compile(r"(?<!\\)(\\*+)([\"'])([\w .$/-]{2,80})\1\2\s*:\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?").match
_BETWEEN = re.compile(r"\s*,\s*").match


def mask_text(text: str) -> str:
    """A text with what looks like a secret masked, once over."""
    low = text.lower()
    for hint in _KEY_HINTS:
        if hint in low:
            text = _keyed(text)
            if "=" in text:
                text = _ASSIGNED.sub(_assigned, text)
            break
    for hints, form in _FORMS:
        for hint in hints:
            if hint in low:
                text = form.sub(_found, text)
                break
    return _spoken(text) if any(hint in low for hint in _SPOKEN_HINTS) else text


def _found(match: re.Match[str]) -> str:
    groups = match.groupdict()
    for name in ("s", "t"):
        secret = groups.get(name)
        if secret:
            start = match.start(name) - match.start()
            whole = match.group()
            return whole[:start] + mark(secret) + whole[start + len(secret) :]
    return mark(match.group())


def _spoken(text: str) -> str:
    """What a sentence says a password or key is (`the password is …`), if it has a digit."""
    pieces: list[str] = []
    done = digitless = 0
    for match in _SPOKEN.finditer(text):
        start = match.end()
        if match.start() < done or start < digitless:
            continue
        run = _UNBROKEN.match(text, start)
        end = run.end() if run else start
        if _DIGIT.search(text, start, end):
            pieces += [text[done:start], mark(text[start:end])]
            done = end
        else:
            digitless = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _assigned(match: re.Match[str]) -> str:
    return f"{match['name']}={mark(match['s'])}" if names_a_secret(match["name"]) else match.group()


# --- by key, inside a text -----------------------------------------------------------------------


def _keyed(text: str) -> str:
    """A text that holds JSON (or Python's way of writing it) with the values of secret keys masked.

    Works on the text itself, so it may be cut off anywhere, and nothing else of it changes.
    """
    pieces: list[str] = []
    done = 0
    for match in _KEY.finditer(text):
        if match.start() < done or not names_a_secret(match[3]):
            continue
        slashes, quote, position = len(match[1]), match[2], match.end()
        delimiter = match[1] + quote
        listed = text[position : position + 1] == "["
        position += listed
        while text.startswith(delimiter, position):
            start = position + len(delimiter)
            end, after = _closing(text, start, quote, slashes)
            secret = text[start:end]
            if not (match[3] == "token" and "logprob" in text[after : after + 24]):
                pieces += [text[done:start], _resealed(secret, slashes, quote)]
                done = end
            more = _BETWEEN(text, after) if listed else None
            position = more.end() if more else len(text)
        number = _NUMBER(text, position) if holds_numbers(match[3]) else None
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
