"""How the report writes numbers, values and foreign text: the same everywhere, always bounded."""

import json
import re
from collections.abc import Mapping

from evalagent.model import Json
from evalagent.statistics.intervals import Interval

RULINGS = {"pass": "pass", "fail": "fail", "not_judged": "not judged"}
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


HELD_OUT = (
    "Held-out cases are those that nobody looks at while changing the agent: they show whether it got better, or only "
    "fits the other cases."
)
_TRACE = re.compile(r"\btrace ([0-9a-f]{32})\b")
_TOLD_ELSEWHERE = frozenset({"category", "own_fault"})


def bounded(text: str, limit: int) -> str:
    """A text without characters that cannot be shown (or that turn the order of others), cut with the rest counted."""
    rest = len(text) - limit
    cut = text[:limit] if rest > 0 else text
    said = f"… ({rest:,} more characters)" if rest > 0 else ""
    return printable(cut) + said


def printable(text: str) -> str:
    """A text with each character that cannot be shown, or that turns the order of others, replaced."""
    return _UNPRINTABLE.sub("\ufffd", text)


def line(text: str, limit: int = 200) -> str:
    """A text on one line."""
    return bounded(" ".join(text[: limit * 4].split()) if len(text) > limit * 4 else " ".join(text.split()), limit)


def value(content: Json, limit: int) -> str:
    """Any JSON value as people read it: a text as it is, the rest as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return bounded(content, limit)
    try:
        return bounded(json.dumps(content, ensure_ascii=False, indent=None, sort_keys=True, default=str), limit)
    except (ValueError, RecursionError, TypeError):
        return "(too deep to be shown)"


def quotes(evidence: Json, limit: int = 300, most: int = 4) -> tuple[str, ...]:
    """The words in a piece of evidence: its texts if it is a list or object of them, else the whole as JSON."""
    if evidence is None or evidence in ("", [], {}):
        return ()
    if isinstance(evidence, dict):
        told = {name: part for name, part in evidence.items() if name not in _TOLD_ELSEWHERE}
        parts = [f"{name}: {value(part, limit)}" for name, part in told.items() if part not in (None, "", [], {})]
    elif isinstance(evidence, list | tuple):
        parts = [value(part, limit) for part in evidence]
    else:
        parts = [value(evidence, limit)]
    shown = [bounded(part, limit) for part in parts[:most]]
    return (*shown, f"… and {len(parts) - most} more") if len(parts) > most else tuple(shown)


def percent(share: float | None) -> str:
    """0.8 as `80 %`; with a digit where rounding would say all or nothing: 0.9996 is `99.9 %`, never `100 %`."""
    if share is None:
        return "not known"
    whole = round(share * 100)
    if whole in (0, 100) and share not in (0, 1):
        return f"{min(max(share * 100, 0.1), 99.9):.1f} %"
    return f"{whole} %"


def span(interval: Interval | None) -> str:
    """`95 % interval 60–93 %`, or that there is none."""
    if interval is None:
        return "no interval from so few"
    return f"95 % interval {ends(interval)}"


def ends(interval: Interval | None) -> str:
    """`60–93 %`, or a dash for none."""
    return "–" if interval is None else f"{round(interval.low * 100)}–{round(interval.high * 100)} %"


def number(amount: float | None, digits: int = 2) -> str:
    """12,345 or 0.08; below 0.01 with two significant digits, so that little is never shown as nothing; `not known` for
    None."""
    if amount is None:
        return "not known"
    if float(amount).is_integer():
        return f"{int(amount):,}"
    if abs(amount) < 0.01:
        power = int(f"{amount:e}".partition("e")[2])
        return f"{amount:.{min(1 - power, 15)}f}".rstrip("0").rstrip(".")
    small = 0 < abs(amount) < 0.1
    return f"{amount:,.{4 if small else digits}f}".rstrip("0").rstrip(".")


def money(amount: float | None) -> str:
    """$12.35, $0.083, $0.000035; `cost not known` for None."""
    if amount is None:
        return "cost not known"
    return f"${amount:,.2f}" if abs(amount) >= 1 else f"${number(amount, 4)}"


def beside(trace_id: str, session: str | None) -> str:
    """A trace's id with the session that it belongs to: `4bf92f… (session refund-17)`."""
    return f"{trace_id} (session {shortened(session)})" if session else trace_id


def with_sessions(text: str, sessions: Mapping[str, str | None]) -> str:
    """A sentence with the session beside each trace that it names as `trace ID`; `sessions` by the trace's id."""
    return _TRACE.sub(lambda found: f"trace {beside(found[1], sessions.get(found[1]))}", text)


def shortened(session: str, most: int = 36) -> str:
    """A session's id on one line; of a longer one the beginning and the end, in which ids differ."""
    flat = line(session, 200)
    tail = most // 2
    return flat if len(flat) <= most else f"{flat[: most - tail - 1]}…{flat[-tail:]}"


def brief(identity: str) -> str:
    """The first eight characters of a trace's id; the last eight where those are zeros, as in ids of 64 bits."""
    if len(identity) <= 12:
        return identity
    return f"…{identity[-8:]}" if not identity[:8].strip("0") else f"{identity[:8]}…"


def seconds(amount: float | None) -> str:
    if amount is None:
        return "not known"
    if amount < 1:
        return f"{amount * 1000:.0f} ms"
    return f"{amount:.1f} s" if amount < 120 else f"{amount / 60:.1f} min"


def counted(count: int, what: str, many: str = "") -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {what if count == 1 else many or what + 's'}"
