"""Whether a call failed: by its status, or by what its result says in spite of its status.

A result says so by its shape (`status: error`, `success: false`, `isError`, an HTTP status) or by its first words. One
that talks of errors, such as the hits of a log search, a document or `errors: 0`, is no failure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import orjson

from evalagent.model import Json, OwnFault, Step

Cause = Literal["not_found", "invalid", "access", "unavailable", "refused"]


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call failed."""

    text: str
    soft: bool
    """The span knows nothing of it; only the result says so."""
    cause: Cause

    @property
    def own_fault(self) -> OwnFault:
        """Whether the fault arose in the tool: yes where the service failed, no where the arguments were bad."""
        return {"unavailable": "yes", "access": "yes", "invalid": "no"}.get(self.cause, "unknown")  # type: ignore[return-value]

    @property
    def category(self) -> str:
        return {"unavailable": "F22", "access": "F25"}.get(self.cause, "F24")


_BAD_STATUS = frozenset({"error", "errored", "failed", "failure", "fail", "exception"})
_GOOD_STATUS = frozenset({"ok", "success", "succeeded", "successful", "completed", "done"})
_FALSE_FLAGS = ("success", "ok", "succeeded", "successful", "is_success", "issuccess")
_TRUE_FLAGS = ("iserror", "is_error", "haserror", "has_error")
_HTTP_KEYS = ("status", "status_code", "statuscode", "http_status", "httpstatus", "http_status_code", "httpstatuscode")
_NOTHING = frozenset({"", "none", "null", "no error", "no errors", "false", "0", "n/a", "ok", "success"})
_WRAPPERS = ("result", "output", "response", "content", "data", "body", "return", "value", "text", "artifact")
_REASONS = (
    "error",
    "message",
    "msg",
    "reason",
    "detail",
    "details",
    "error_message",
    "errormessage",
    "error_code",
    "code",
)
_MAX_UNWRAPPED = 6
_MAX_TEXT = 1_000_000

_OPENING = re.compile(
    r"""\s*["'`*\[(<]{0,3}(?:
        (?:an?\s+)?(?:fatal\s+|unexpected\s+|internal\s+)?(?:error|exception)\s*(?::|\]|[-–—]\s)
      | error\s+(?:executing|calling|invoking|running|while|occurred|during|\d{3}\b)
      | Traceback\s\(most\srecent\scall\slast\)
      | HTTP(?:/\d(?:\.\d)?)?\s*(?:error\s*)?[:]?\s*[45]\d\d\b
      | [45]\d\d\s+(?:bad\srequest|unauthorized|payment\srequired|forbidden|not\sfound|method\snot\sallowed|conflict|
          gone|unprocessable|too\smany\srequests|internal\sserver|not\simplemented|bad\sgateway|service\sunavailable|
          gateway\stime-?out)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
# `KeyError:` and its like are told from `terror:` by their capital, so this one heeds case
_CAMEL_ERROR = re.compile(r"""\s*["'`*\[(<]{0,3}(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\s*[:(]""")

_CAUSES: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    (
        "unavailable",
        re.compile(
            r"\b5\d\d\s+(?:internal|bad gateway|service|gateway|server)|\b(?:http|status|code)\D{0,12}5\d\d\b|"
            r"time[d -]?\s?out|unavailable|"
            r"connection|unreachable|internal\s(?:server\s)?error|overloaded|try again later|temporar",
            re.I,
        ),
    ),
    (
        "access",
        re.compile(
            r"\b40[13]\b|\b429\b|unauthori[sz]ed|forbidden|permission|access denied|rate.?limit|quota|"
            r"too many requests|credential|api key",
            re.I,
        ),
    ),
    ("not_found", re.compile(r"\b404\b|not[ _-]?found|no such|does ?n.t exist|does not exist|unknown|no match", re.I)),
    (
        "invalid",
        re.compile(
            r"\b4(?:00|22)\b|invalid|validation|malformed|required|must be|missing|expected|schema|unexpected keyword|"
            r"should (?:be|match)|bad request|type ?error|value ?error|pars(?:e|ing)",
            re.I,
        ),
    ),
)


def failure_of(step: Step) -> Failure | None:
    """How this tool, hand-off or retrieval step failed; None if it did not, or nothing shows that it did."""
    if step.error is not None:
        said = _says_failure(step.result) if step.result is not None else None
        text = said or step.error or "error"
        return Failure(_short(text), False, cause_of(f"{step.error}\n{text}"))
    if step.result is None or step.kind == "retrieval":
        return None
    said = _says_failure(step.result)
    return None if said is None else Failure(_short(said), True, cause_of(said))


def cause_of(text: str) -> Cause:
    """The kind of failure that a message tells of, by generic words of HTTP and exceptions."""
    for cause, pattern in _CAUSES:
        if pattern.search(text[:2000]):
            return cause
    return "refused"


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:299] + "…"


def _says_failure(result: Json) -> str | None:
    """What a result says of its own failure; None if it says nothing of that kind."""
    value = result
    for _ in range(_MAX_UNWRAPPED):
        if isinstance(value, str):
            opened = _opened(value)
            if opened is None:
                return value.strip() if _opens_with_error(value) else None
            value = opened
        elif isinstance(value, Mapping):
            said = _object_failure(value)
            if said is not None:
                return said
            inner = [key for key in value if str(key).lower() in _WRAPPERS and value[key] is not None]
            if len(inner) != 1 or _says_success(value):
                return None
            value = value[inner[0]]
        elif isinstance(value, list) and len(value) == 1:
            value = value[0]
        else:
            return None
    return None


def _opened(text: str) -> Json:
    """The object or list that a text is; None if it is no JSON."""
    bare = text.strip()
    if len(bare) > _MAX_TEXT or bare[:1] not in "{[" or not bare:
        return None
    try:
        opened: Json = orjson.loads(bare)
    except orjson.JSONDecodeError:
        return None
    return opened


def _opens_with_error(text: str) -> bool:
    return _OPENING.match(text[:300]) is not None or _CAMEL_ERROR.match(text[:300]) is not None


def _says_success(value: Mapping[str, Json]) -> bool:
    low = {str(key).lower(): item for key, item in value.items()}
    status = low.get("status")
    return any(low.get(flag) is True for flag in _FALSE_FLAGS) or (
        isinstance(status, str) and status.strip().lower() in _GOOD_STATUS
    )


def _object_failure(value: Mapping[str, Json]) -> str | None:
    low = {str(key).lower(): item for key, item in value.items()}
    reason = _reason(low)
    if any(low.get(flag) is True for flag in _TRUE_FLAGS):
        return reason or "the result is marked as an error"
    if _says_success(value):
        return None
    if any(low.get(flag) is False for flag in _FALSE_FLAGS):
        return reason or "the result says that it did not succeed"
    status = low.get("status", low.get("state") if len(low) <= 3 else None)
    if isinstance(status, str) and status.strip().lower() in _BAD_STATUS:
        word = status.strip().lower()
        # a record of something that failed is a good answer to a question about it
        if word in ("error", "exception") or reason is not None or len(low) <= 2:
            return reason or f"status {word}"
    for key in _HTTP_KEYS:
        code = low.get(key)
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599:
            return f"HTTP {code}" + (f": {reason}" if reason else "")
    error = low.get("error")
    if _filled(error):
        return _text(error)
    errors = low.get("errors")
    if isinstance(errors, list) and errors and not any(_filled(item) for key, item in low.items() if key != "errors"):
        return _text(errors)
    return None


def _reason(low: Mapping[str, Json]) -> str | None:
    said = [_text(low[key]) for key in _REASONS if key in low and _filled(low[key])]
    if said:
        return ": ".join(dict.fromkeys(said[:2]))
    content = low.get("content")
    return _text(content) if _filled(content) else None


def _filled(value: Json) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _NOTHING
    if isinstance(value, bool):
        return value
    return not isinstance(value, int | float) and bool(value)


def _text(value: Json) -> str:
    """One line of text for a value found in a result, bounded."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and value:
        return _text(value[0]) if isinstance(value[0], str) else _dumped(value)
    if isinstance(value, Mapping):
        for key in ("message", "text", "detail", "reason", "type"):
            if isinstance(value.get(key), str) and value[key].strip():
                return str(value[key]).strip()
    return _dumped(value)


def _dumped(value: Json) -> str:
    try:
        return orjson.dumps(value).decode()[:300]
    except TypeError:
        return "an error that cannot be shown"
