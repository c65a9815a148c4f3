"""What the environment says, read once into one frozen value.

Every setting is a field here, its variable in the field's metadata and in `.env.example`. Keys and passwords are not
settings: only the names of the variables that hold them are known, and they are read where they are used.
"""

# ruff: noqa: RUF009 -- _setting makes dataclass fields

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from evalagent.errors import UsageError
from evalagent.judging.prompting import Form

PREFIX = "EVALAGENT_"


def _text(value: str) -> str:
    return value


def _path(value: str) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError as error:  # ~name of nobody
        raise ValueError(f"no such folder: {error}") from error


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected a URL such as https://host:port")
    if parts.username or parts.password:
        raise ValueError("a URL must not hold a name or password")
    return value.rstrip("/")


def _switch(value: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if value.lower() not in known:
        raise ValueError("expected on or off")
    return known[value.lower()]


def _whole(least: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) < least:
            raise ValueError(f"expected a whole number from {least}")
        return int(value)

    return read


def _amount(value: str) -> float:
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        raise ValueError("expected a number above 0")
    return number


def _temperature(value: str) -> float:
    number = float(value)
    if not 0 <= number <= 2:
        raise ValueError("expected a number from 0 to 2")
    return number


def _choice(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return value

    return read


def _setting(variable: str, read: Callable[[str], Any], default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"variable": PREFIX + variable, "read": read, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A judge's endpoint that has a name of its own: `--judge NAME`."""

    base_url: str
    """Speaks the Messages protocol at /v1/messages."""
    cheap: str
    """Model id."""
    strong: str | None = None
    """Model id; None: the cheap one has the last word."""
    form: Form = "tool"
    key_env: str | None = None
    """Name of the variable that holds its key; None: it needs none. The key of the vendor is never sent to it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set from outside, with its default."""

    home: Path | None = _setting(
        "HOME", _path, None, "Folder for runs, warehouse and judge replies; default: .evalagent beside the suite."
    )
    judge: str = _setting(
        "JUDGE",
        _text,
        "auto",
        "Judge where --judge is not given: auto (anthropic with a key, else rules), rules, none, anthropic, bedrock.",
    )
    judge_cheap: str | None = _setting(
        "JUDGE_CHEAP", _text, None, "Model that is asked first; default: the newest Haiku that the SDK knows."
    )
    judge_strong: str | None = _setting(
        "JUDGE_STRONG", _text, None, "Model asked where the first is unsure; default: the newest Sonnet it knows."
    )
    judge_base_url: str | None = _setting(
        "JUDGE_BASE_URL", _url, None, "Endpoint of the anthropic or bedrock judge; default: the vendor's own."
    )
    judge_form: Form = _setting(
        "JUDGE_FORM",
        _choice("schema", "tool"),
        "schema",
        "How replies are held to their form: schema (structured output) or tool (forced tool call).",
    )
    judge_max_tokens: int = _setting(
        "JUDGE_MAX_TOKENS", _whole(200), 8_000, "Tokens that one reply may take, thinking included."
    )
    judge_temperature: float | None = _setting(
        "JUDGE_TEMPERATURE", _temperature, None, "Sent only if set: current Claude models refuse it, local ones want 0."
    )
    judge_effort: str | None = _setting(
        "JUDGE_EFFORT",
        _choice("low", "medium", "high", "xhigh", "max"),
        None,
        "How long a model thinks; default: its own. Models without it refuse it.",
    )
    judge_timeout_s: float = _setting("JUDGE_TIMEOUT_S", _amount, 120.0, "Seconds that one try of one call may take.")
    judge_retries: int = _setting(
        "JUDGE_RETRIES", _whole(0), 4, "Further tries after 408, 409, 429, 5xx, 529, a timeout or a lost connection."
    )
    judge_max_calls: int | None = _setting(
        "JUDGE_MAX_CALLS", _whole(1), None, "Calls to models that one run may make; default: no limit."
    )
    judge_max_cost_usd: float | None = _setting(
        "JUDGE_MAX_COST_USD", _amount, None, "US dollars that judging one run may cost; default: no limit."
    )
    judge_concurrency: int = _setting("JUDGE_CONCURRENCY", _whole(1), 8, "Calls to models under way at once.")
    bedrock_region: str | None = _setting(
        "BEDROCK_REGION", _text, None, "AWS region of the bedrock judge; default: that of the AWS configuration."
    )
    bedrock_api: str = _setting(
        "BEDROCK_API",
        _choice("messages", "invoke"),
        "messages",
        "messages: Bedrock's own Messages endpoint; invoke: InvokeModel, whose model ids may need a region prefix.",
    )
    max_node_tasks: int = _setting(
        "MAX_NODE_TASKS", _whole(0), 200, "Steps of a run that are judged in a Prefect task each; above it in chunks."
    )
    node_chunk: int = _setting("NODE_CHUNK", _whole(1), 100, "Steps in a chunk, where steps are judged in chunks.")
    parallel_trials: int = _setting("PARALLEL_TRIALS", _whole(1), 4, "Trials under way at once.")
    collector: str = _setting(
        "COLLECTOR",
        _choice("auto", "docker", "embedded"),
        "auto",
        "Where spans go: docker (the OpenTelemetry Collector), embedded, or auto (docker where it is ready).",
    )
    warm: bool = _setting("WARM", _switch, True, "Start trials from a warm Python where the sandbox can.")
    judges: Mapping[str, Endpoint] = field(default_factory=lambda: MappingProxyType({}))
    """Named endpoints, from EVALAGENT_JUDGE_NAME_BASE_URL and its like."""
    unknown: tuple[str, ...] = ()
    """Variables that begin with EVALAGENT_ and mean nothing here; `doctor` shows them."""


_NAMED = re.compile(r"EVALAGENT_JUDGE_([A-Z0-9]+(?:_[A-Z0-9]+)*?)_(BASE_URL|CHEAP|STRONG|FORM|KEY_ENV)")
_NAMED_READ: Mapping[str, Callable[[str], Any]] = {
    "BASE_URL": _url,
    "CHEAP": _text,
    "STRONG": _text,
    "FORM": _choice("schema", "tool"),
    "KEY_ENV": _text,
}
_OF_A_TRIAL = (
    "EVALAGENT_CHECKOUT",
    "EVALAGENT_RUN",
    "EVALAGENT_CASE",
    "EVALAGENT_TRIAL",
    "EVALAGENT_ATTEMPT",
    "EVALAGENT_HOOK",
)


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings in an environment (`os.environ`). A variable that is set to nothing counts as not set; one that
    cannot be read is a UsageError that names it."""
    known = {f.metadata["variable"]: f for f in fields(Settings) if f.metadata}
    values: dict[str, Any] = {}
    named: dict[str, dict[str, Any]] = {}
    unknown = []
    for variable in sorted(name for name in environment if name.startswith(PREFIX)):
        text = environment[variable].strip()
        if not text:
            continue
        if variable in known:
            setting = known[variable]
            values[setting.name] = _read(variable, text, setting.metadata["read"])
        elif hit := _NAMED.fullmatch(variable):
            of_name = named.setdefault(hit[1].lower().replace("_", "-"), {})
            of_name[hit[2].lower()] = _read(variable, text, _NAMED_READ[hit[2]])
        elif not variable.startswith(_OF_A_TRIAL):
            unknown.append(variable)
    judges = {name: _endpoint(name, said) for name, said in sorted(named.items())}
    return Settings(**values, judges=MappingProxyType(judges), unknown=tuple(unknown))


def load() -> Settings:
    """The settings of this process's environment."""
    return read_settings(os.environ)


def described() -> tuple[tuple[str, str, str], ...]:
    """(variable, default, meaning) of every setting, in order; an empty default is none."""
    rows = []
    for f in fields(Settings):
        if not f.metadata:
            continue
        default = "" if f.default in (None, MISSING) else str(f.default)
        if isinstance(f.default, bool):
            default = "on" if f.default else "off"
        rows.append((f.metadata["variable"], default, f.metadata["meaning"]))
    return tuple(rows)


def _read(variable: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        message = str(error)
        if message.startswith("could not convert"):
            message = "expected a number"
        raise UsageError(f"{message} (got {text[:60]!r})", key=variable) from None


def _endpoint(name: str, said: dict[str, Any]) -> Endpoint:
    variable = f"{PREFIX}JUDGE_{name.upper().replace('-', '_')}"
    for part in ("base_url", "cheap"):
        if part not in said:
            raise UsageError(
                f"the judge {name!r} needs {variable}_{part.upper()} too", key=f"{variable}_{part.upper()}"
            )
    if name in ("rules", "none", "anthropic", "bedrock"):
        raise UsageError(f"{name!r} is the name of a judge that is built in; choose another", key=variable)
    return Endpoint(**said)
