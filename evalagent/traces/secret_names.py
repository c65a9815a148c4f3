"""By what names secrets go, and the mark that stands in a secret's place."""

import hashlib
import re
from functools import lru_cache

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
