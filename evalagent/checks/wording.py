"""The few plain words that the checks read: admissions of failure, claims, and the words in a name.

Of no domain: what an answer in any trade says when something did, or did not, go well. English only; where an answer
is in another language, the checks that need these words stay silent.
"""

import re

_NOT = r"(?:n't|n’t| not)"
_ADMITS = re.compile(
    rf"\bun(?:able|fortunately|available|successful(?:ly)?|reachable)\b|\b(?:cannot|can'?t|can’t)\b"
    rf"|\b(?:could|did|was|were|does|do|is|has|have|had|wo|would){_NOT}\b"
    rf"|\bnot (?:able|found|possible|available|allowed|eligible|permitted|be|been|have|yet|valid|exist|match)\b"
    rf"|\bno (?:such|matching|records?|account|results?|longer|way)\b"
    rf"|\b(?:fail(?:s|ed|ure|ures|ing)?|errors?|exception|sorry|regret|apologi[sz]e|apolog(?:y|ies)|trouble|issues?"
    rf"|problems?|declined?|denied|rejected|refused?|insufficient|invalid|impossible|down|pending|incomplete)\b",
    re.IGNORECASE,
)
_CLAIMS = re.compile(
    r"\b(?:done|success(?:ful|fully)?|complete[d]?|all set|confirmed|taken care of|on its way|good to go)\b"
    r"|\b(?:has|have|had|was|were|is|are|i've|i’ve|we've|we’ve|i|we)\s+(?:now\s+|just\s+|already\s+|been\s+|being\s+)*"
    r"(?!need|unfortunat)\w{3,}(?:ed|ent|old|aid|ut|et)\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(r"\b(?:anything|something) (?:else|more)\b[^.!?]*\?$", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def admits(text: str) -> bool:
    """Whether a text tells of something that did not go as wished."""
    return _ADMITS.search(text) is not None


def claims(text: str) -> bool:
    """Whether a text says that something was done."""
    return _CLAIMS.search(text) is not None


def asks(text: str) -> bool:
    """Whether a text ends in a question, and so hands the turn back; "Anything else?" is none."""
    bare = text.rstrip().rstrip("*_`\"')”’")
    return bare.endswith("?") and _COURTESY.search(bare[-200:]) is None


def name_words(name: str) -> list[str]:
    """The words in a name written with underscores, hyphens, dots or capitals, lower-case."""
    return [word.lower() for word in _WORDS.findall(name[:200])]
