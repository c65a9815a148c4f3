"""What a suite may say of the checks: switch one off, or tune it."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalagent.checks.codes import CODES
from evalagent.errors import UsageError
from evalagent.model import Json, Severity

_OPTIONS: Mapping[str, Mapping[str, type]] = {
    "loop": {"times": int},
    "repeated_failing_call": {"times": int},
    "ungrounded_value": {"digits": int},
}
_SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Settings:
    """The checks as the suite wants them."""

    off: frozenset[str] = frozenset()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    loop_times: int = 4
    """So many equal calls with equal results are a loop."""
    repeat_times: int = 1
    """So many unchanged repetitions of a failed call are a finding."""
    digits: int = 3
    """Numbers with fewer significant digits are not asked where they come from."""


def read_settings(said: Mapping[str, Json] | None) -> Settings:
    """The `checks` of a suite: code -> `off`, `on`, a severity, or {option: value}; UsageError names the key."""
    off: set[str] = set()
    severities: dict[str, Severity] = {}
    options: dict[tuple[str, str], Any] = {}
    for code, value in (said or {}).items():
        if code not in CODES:
            near = difflib.get_close_matches(str(code), CODES, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(sorted(CODES))}"
            raise UsageError(f"no such check; {hint}", key=f"checks.{code}")
        if value is False or value == "off":
            off.add(code)
        elif value is True or value == "on" or value is None:
            continue
        elif isinstance(value, str) and value in _SEVERITIES:
            severities[code] = value  # type: ignore[assignment]
        elif isinstance(value, Mapping):
            _read_options(code, value, severities, options)
        else:
            raise UsageError(
                f"expected `on`, `off`, {', '.join(f'`{s}`' for s in _SEVERITIES)} or options (got {value!r:.60})",
                key=f"checks.{code}",
            )
    return Settings(
        off=frozenset(off),
        severities=severities,
        loop_times=options.get(("loop", "times"), 4),
        repeat_times=options.get(("repeated_failing_call", "times"), 1),
        digits=options.get(("ungrounded_value", "digits"), 3),
    )


def _read_options(
    code: str, value: Mapping[str, Json], severities: dict[str, Severity], options: dict[tuple[str, str], Any]
) -> None:
    known = _OPTIONS.get(code, {})
    for name, chosen in value.items():
        key = f"checks.{code}.{name}"
        if name == "severity":
            if chosen not in _SEVERITIES:
                raise UsageError(f"expected one of {', '.join(_SEVERITIES)} (got {chosen!r:.60})", key=key)
            severities[code] = chosen
        elif name not in known:
            raise UsageError(f"no such option; known are {', '.join(['severity', *known])}", key=key)
        elif not isinstance(chosen, int) or isinstance(chosen, bool) or chosen < 1:
            raise UsageError(f"expected a whole number of at least 1 (got {chosen!r:.60})", key=key)
        else:
            options[code, name] = chosen
