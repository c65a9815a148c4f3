"""Secrets out of values before anything is stored: each becomes `[masked:` + 8 hex digits of its SHA-256 + `]`.

The same secret gives the same mark everywhere, so that equality survives: an argument that was copied still equals its
source. Masking twice changes nothing.

Caught:
* whatever stands under a key that names a secret (`authorization`, `x-api-key`, `db.password`, `clientSecret`,
  `refresh_token`, …) in objects, in OTLP's and Jaeger's `{key, value}` pairs, in header lists of `{name, value}`, and
  in JSON or Python text inside a text, however often it was escaped and even where it was cut off; counts such as
  `max_tokens` and `input_tokens`, paging (`next_page_token`) and log probabilities are no secrets;
* by their form: keys of Anthropic, OpenAI, Stripe, AWS, Google, GitHub, GitLab, Slack, Hugging Face, npm, LangSmith
  and their like, `Bearer …`, JSON web tokens, private key blocks, passwords in URLs, `name=value` and header lines
  whose name is that of a secret, and what the suite's own regular expressions match.

Not caught: a secret of no known form under a harmless key (a password in a sentence without digits), one that is split
over several values or encoded once more (base64 of a header), or in an image. The mark hides a strong secret; a short
one can be found again by trying all, so a mark is no way to publish passwords. A suite's expression that matches JSON's
own punctuation breaks that JSON.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import orjson

from evalagent.model import Event, Json, Link, LogRecord, Span

DEEPEST = 300
"""Nesting beyond which a value is not looked into but left out: nothing unseen may pass."""
_TOO_DEEP = "[masked: nested too deeply]"

_NAMES = (
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
    "clientsecret",
    "connectionstring",
    "authorization",
    "cookie",
    "pwd",
    "sessionkey",
    "sharedkey",
    "webhooksecret",
)
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
def _names_a_secret(key: str) -> bool:
    last = re.split(r"[./\s]", key.strip())[-1] if key else ""
    bare = re.sub(r"[^a-z0-9]", "", last.lower())
    if bare.endswith(_NAMES):
        return True
    return bare.endswith("token") and not bare.removesuffix("token").endswith(_HARMLESS_TOKENS)


@lru_cache(maxsize=8192)
def _is_strong(key: str) -> bool:
    return re.sub(r"[^a-z0-9]", "", key.lower()).endswith(_STRONG)


_MASKED = re.compile(r"(?:[A-Za-z]+ )?\[masked:[0-9a-f]{8}\]").fullmatch
_SCHEME = re.compile(r"(?i)(bearer|basic|token|digest|negotiate)\s+(?=\S)").match


def mark(secret: str) -> str:
    """What stands in a secret's place."""
    return f"[masked:{hashlib.sha256(secret.encode('utf-8', 'replace')).hexdigest()[:8]}]"


def _seal(secret: str) -> str:
    """A whole value masked; the scheme of a header (`Bearer`) stays, and so the token alone makes the mark."""
    if not secret.strip() or _MASKED(secret):
        return secret
    scheme = _SCHEME(secret)
    return secret[: scheme.end()] + mark(secret[scheme.end() :]) if scheme else mark(secret)


# --- by form -------------------------------------------------------------------------------------

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""Where a word begins; an escaped line end counts as one (`\\nsk-…` in JSON text)."""
_BEARER = r"[A-Za-z0-9._~+/-]{8,}={0,2}"
_PEM_NAME = r"[A-Z0-9 ]{0,30}PRIVATE KEY-----"
_FORMS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (hints, re.compile(_EDGE + pattern))
    for hints, pattern in (
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
        (("eyj",), r"eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?"),
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
        (
            ("passw", "passphrase", "api", "secret", "token"),
            r"(?i:password|passwd|passphrase|api[_ -]?key|secret[_ ]?key|client[_ ]?secret|access[_ ]?token)"
            r"\s*(?::|\b(?i:is)\b)\s*[`(]?(?!\[masked:)(?P<s>(?=[^\s\"'`,;\\]*\d)[^\s\"'`,;\\]{4,})",
        ),
    )
)
_KEY_HINTS = ("key", "token", "secret", "passw", "passphrase", "pwd", "authorization", "cookie", "connection")
_ASSIGNED = re.compile(r"(?<![\w.-])(?P<name>[\w.-]{2,64})=(?!\[masked:)(?P<s>[^\s&;,\"'<>\\(){}\[\]]{4,})")
_KEY = re.compile(r"(?<!\\)(\\*+)([\"'])([\w .$/-]{2,80})\1\2\s*:\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?").match
_BETWEEN = re.compile(r"\s*,\s*").match


class _Masker:
    """Masks values with the built-in rules and the suite's own patterns."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.patterns = [re.compile(pattern) for pattern in patterns]
        self.short = lru_cache(maxsize=1 << 15)(self._by_rules)

    def value(self, value: Json, depth: int = 0) -> Json:
        """The value with its secrets masked; the very same object if there are none."""
        kind = type(value)
        if kind is str:
            return self.text(value)
        if kind is dict:
            return self._object(value, depth) if depth < DEEPEST else _TOO_DEEP
        if kind is list or kind is tuple:
            if depth >= DEEPEST:
                return _TOO_DEEP
            items = [self.value(item, depth + 1) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def _object(self, value: Mapping[str, Json], depth: int) -> Json:
        named = value.get("key", value.get("name"))
        pair = named if type(named) is str and "value" in value and _names_a_secret(named) else None
        items: dict[str, Json] = {}
        changed = False
        for key, old in value.items():
            name = self.text(key)
            told = pair if pair and key == "value" else key
            if _names_a_secret(told) and not (key == "token" and "logprob" in value):
                new = self._sealed(old, _is_strong(told), depth + 1)
            else:
                new = self.value(old, depth + 1)
            items[name] = new
            changed = changed or new is not old or name != key
        return items if changed else value

    def _sealed(self, value: Json, strong: bool, depth: int) -> Json:
        """A value under a secret's key; an object there is looked into, for it may only describe one (a schema)."""
        if type(value) is str:
            return _seal(value)
        if strong and type(value) in (int, float):
            return mark(str(value))
        if depth >= DEEPEST:
            return _TOO_DEEP
        if type(value) is list:
            return [self._sealed(item, strong, depth + 1) for item in value]
        if type(value) is dict:
            if len(value) == 1:
                (kind, inner), *_ = value.items()
                if kind in ("stringValue", "string_value", "bytesValue", "bytes_value", "vStr"):
                    return {kind: _seal(inner)} if type(inner) is str else value
                if kind in ("intValue", "int_value", "doubleValue", "double_value"):
                    return {"stringValue": mark(str(inner))} if strong else value
                if kind in ("arrayValue", "array_value", "values"):
                    return {kind: self._sealed(inner, strong, depth + 1)}
            return self.value(value, depth + 1)
        return value

    def text(self, text: str) -> str:
        """A text with the secrets in it masked, those in JSON inside it too, which stays JSON."""
        masked = self.short(text) if len(text) < 48 else self._by_rules(text)
        for pattern in self.patterns:
            masked = pattern.sub(_whole, masked)
        return text if masked == text else masked

    def _by_rules(self, text: str) -> str:
        for _ in range(16):  # a mark may be the edge at which the next secret begins
            if len(text) < 8:
                break
            masked = _masked_once(text)
            if masked == text:
                break
            text = masked
        return text


@lru_cache(maxsize=64)
def _masker(patterns: tuple[str, ...]) -> _Masker:
    return _Masker(patterns)


def _masked_once(text: str) -> str:
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
    return text


def _found(match: re.Match[str]) -> str:
    groups = match.groupdict()
    for name in ("s", "t"):
        secret = groups.get(name)
        if secret:
            start = match.start(name) - match.start()
            whole = match.group()
            return whole[:start] + mark(secret) + whole[start + len(secret) :]
    return mark(match.group())


def _assigned(match: re.Match[str]) -> str:
    return f"{match['name']}={mark(match['s'])}" if _names_a_secret(match["name"]) else match.group()


def _whole(match: re.Match[str]) -> str:
    return mark(match.group()) if match.group() and not _MASKED(match.group()) else match.group()


# --- by key, inside a text -----------------------------------------------------------------------


def _keyed(text: str) -> str:
    """A text that holds JSON (or Python's way of writing it) with the values of secret keys masked.

    Works on the text itself, so it may be cut off anywhere, and nothing else of it changes.
    """
    pieces: list[str] = []
    done = 0
    for match in _KEY.finditer(text):
        if match.start() < done or not _names_a_secret(match[3]):
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
        number = _NUMBER(text, position) if _is_strong(match[3]) else None
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
    sealed = _seal(secret)
    return raw if sealed == secret else sealed


# --- doors ---------------------------------------------------------------------------------------


def mask(value: Json, patterns: Sequence[str] = ()) -> Json:
    """The value with its secrets masked; the very same object where there are none.

    `patterns` are the suite's own regular expressions; re.error for one that is none.
    """
    return _masker(tuple(patterns)).value(value)


def mask_span(span: Span, patterns: Sequence[str] = ()) -> Span:
    """The span with the secrets masked in its name, status, attributes, events, links and resource."""
    masker = _masker(tuple(patterns))
    attributes, resource = masker.value(span.attributes), masker.value(span.resource)
    name, message = masker.text(span.name), masker.text(span.status_message)
    events = tuple(_event(event, masker.value) for event in span.events)
    links = tuple(_link(link, masker.value) for link in span.links)
    same = attributes is span.attributes and resource is span.resource and name == span.name
    if same and message == span.status_message and events == span.events and links == span.links:
        return span
    return replace(
        span,
        attributes=attributes,
        resource=resource,
        name=name,
        status_message=message,
        events=events,
        links=links,
    )


def mask_log(log: LogRecord, patterns: Sequence[str] = ()) -> LogRecord:
    """The log record with the secrets masked in its body and attributes."""
    masker = _masker(tuple(patterns))
    body, attributes = masker.value(log.body), masker.value(log.attributes)
    if body is log.body and attributes is log.attributes:
        return log
    return replace(log, body=body, attributes=attributes)


def _event(event: Event, value: Callable[[Json], Json]) -> Event:
    attributes, name = value(event.attributes), value(event.name)
    same = attributes is event.attributes and name == event.name
    return event if same else replace(event, attributes=attributes, name=name)


def _link(link: Link, value: Callable[[Json], Json]) -> Link:
    attributes = value(link.attributes)
    return link if attributes is link.attributes else replace(link, attributes=attributes)
