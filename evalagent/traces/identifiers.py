"""Ids, numbers, times and enums as the wire formats spell them.

Nothing here raises for a bad value: what cannot be read is None (an id), 0 (a time) or the default (an enum).
"""

import base64
import binascii
import hashlib
import math
import re
from datetime import UTC, datetime
from functools import lru_cache

from evalagent.model import Json, Status


class InexactId(ValueError):
    """An id came as a floating-point number: the text must be parsed again with exact integers."""


_HEX = re.compile(r"[0-9a-fA-F]+").fullmatch
_BASE64 = re.compile(r"[0-9A-Za-z+/_-]+={0,2}").fullmatch
_XRAY = re.compile(r"1-[0-9a-fA-F]{8}-[0-9a-fA-F]{24}").fullmatch
NO_TRACE_ID = hashlib.sha256(b"no trace id").hexdigest()[:32]
"""Where spans without any trace id go together, so that their parent ids still mean something."""


def trace_id(value: Json) -> str | None:
    """32 lower-case hex characters from hex, base64, `0x…`, a UUID, X-Ray's form, a decimal integer; None: none."""
    return _known_trace_id(value) if type(value) is str and len(value) == 32 else _trace_id(value)


def _trace_id(value: Json) -> str | None:
    if type(value) is str and len(value) == 32 and _HEX(value):
        return _nonzero(value.lower())
    if type(value) is str and _XRAY(value):
        return value[2:].replace("-", "").lower()
    return _id(value, 16)


_known_trace_id = lru_cache(maxsize=1024)(_trace_id)


def span_id(value: Json) -> str | None:
    """16 lower-case hex characters, spelled in as many ways as a trace id; None for absent or all zero."""
    if type(value) is str and len(value) == 16 and _HEX(value):
        return _nonzero(value.lower())
    return _id(value, 8)


def _nonzero(text: str) -> str | None:
    return text if text.strip("0") else None


def _id(value: Json, size: int) -> str | None:
    """An id of `size` bytes. A text of no known spelling is hashed, so that equal texts stay equal ids."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float):
        raise InexactId("an id written as a number with a fraction or exponent")
    if isinstance(value, int):
        return format(value, f"0{size * 2}x") if 0 < value < 1 << (8 * size) else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text[:2] in ("0x", "0X") and (len(text) == 2 or _HEX(text[2:])):
        text = text[2:].lstrip("0")
        return text.lower().rjust(size * 2, "0")[-size * 2 :] if text else None
    bare = text.replace("-", "") if len(text) == 36 else text
    if not bare:
        return None
    if bare == text and bare.isdecimal() and bare.isascii() and 2 * size < len(bare) <= 40:
        number = int(bare)
        return format(number, f"0{size * 2}x") if 0 < number < 1 << (8 * size) else _nonzero(_hashed(text, size))
    if len(bare) <= 2 * size and _HEX(bare):
        return _nonzero(bare.lower().rjust(size * 2, "0"))
    if (len(bare.rstrip("=")) * 3) // 4 == size and _BASE64(bare):
        try:
            padded = bare.rstrip("=").replace("-", "+").replace("_", "/")
            raw = base64.b64decode(padded + "=" * (-len(padded) % 4))
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) == size:
            return _nonzero(raw.hex())
    return _hashed(text, size) if bare.strip("0") else None


def _hashed(text: str, size: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[: size * 2]


_DIGITS = re.compile(r"[+-]?[0-9]{1,40}").fullmatch
_LAST_NS = 1 << 63


def integer(value: Json) -> int | None:
    """A whole number from a number or a text of digits; None for anything else."""
    if type(value) is int:
        return value
    if type(value) is str:
        if len(value) <= 40 and value.isdecimal() and value.isascii():
            return int(value)
        return int(value) if _DIGITS(value.strip()) else None
    if type(value) is float:
        return int(value) if math.isfinite(value) and abs(value) < 1e38 else None
    return None


def nanoseconds(value: Json) -> int:
    """A time of OTLP, in ns: number or text; also ISO 8601 and JavaScript's [seconds, nanoseconds]. 0: unknown."""
    if type(value) is int:
        return value if 0 <= value < _LAST_NS else 0
    found = integer(value)
    if found is None:
        if isinstance(value, list) and len(value) == 2:
            whole, part = integer(value[0]), integer(value[1])
            found = None if whole is None or part is None else whole * 1_000_000_000 + part
        elif isinstance(value, str):
            found = _iso_nanoseconds(value)
    return found if found is not None and 0 <= found < _LAST_NS else 0


_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,12}))?\s*(Z|z|[+-]\d\d:?\d\d)?").fullmatch
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _iso_nanoseconds(text: str) -> int | None:
    match = _ISO(text.strip())
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in (None, 'Z', 'z') else zone}")
    except ValueError:
        return None
    since = moment - _EPOCH
    return (since.days * 86400 + since.seconds) * 1_000_000_000 + int((fraction or "0").ljust(9, "0")[:9])


def any_time(value: Json) -> int:
    """A time of no declared unit (SDK dumps): ISO 8601, or seconds, ms, µs or ns, told by the magnitude. In ns."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        for limit, factor in ((1e11, 1_000_000_000), (1e14, 1_000_000), (1e17, 1_000)):
            if value < limit:
                return nanoseconds(int(value) * factor + (round(value % 1 * factor) if isinstance(value, float) else 0))
    return nanoseconds(value)


_STATUS: dict[Json, Status] = {
    0: "unset",
    1: "ok",
    2: "error",
    "0": "unset",
    "1": "ok",
    "2": "error",
    "UNSET": "unset",
    "OK": "ok",
    "ERROR": "error",
}


def status(code: Json) -> Status:
    """A status code by number or name, with or without the prefix `STATUS_CODE_` or `StatusCode.`."""
    if type(code) is int:
        return _STATUS.get(code, "unset")
    if isinstance(code, str):
        return _STATUS.get(code.strip().upper().removeprefix("STATUS_CODE_").removeprefix("STATUSCODE."), "unset")
    return "unset"
