"""Secrets among the arguments of a program, where OpenTelemetry's process detector tells how it was started:
`--api-key hunter2` names its secret by the argument before it."""

import re
from collections.abc import Mapping
from itertools import pairwise

from evalagent.model import Json
from evalagent.traces.secret_names import names_a_secret, seal

COMMAND_KEYS = ("process.command_line", "process.command_args")
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_FLAG_AND_VALUE = re.compile(r"(?<!\S)(--?[A-Za-z][\w-]*)(\s+)([^\s-]\S*)")


def mask_command(value: Json) -> Json:
    """A command line, as a text, a list, or OTLP's AnyValue of either, with what follows a flag that names a secret
    masked; the very same object where there is none."""
    if isinstance(value, Mapping) and len(value) == 1:
        return _typed(value)
    if isinstance(value, str):
        masked = _FLAG_AND_VALUE.sub(_sealed, value)
        return value if masked == value else masked
    if not isinstance(value, list | tuple):
        return value
    told = list(value)
    for at, (flag, argument) in enumerate(pairwise(value), 1):
        if isinstance(flag, str) and isinstance(argument, str) and not argument.startswith("-") and _is_secret(flag):
            told[at] = seal(argument)
    return value if told == list(value) else told


def _typed(value: Mapping[str, Json]) -> Json:
    (kind, inner), *_ = value.items()
    listed = inner.get("values") if isinstance(inner, Mapping) else None
    if isinstance(listed, list) and all(isinstance(one, Mapping) and len(one) == 1 for one in listed):
        plain = [next(iter(one.values())) for one in listed]
        masked = mask_command(plain)
        if masked is plain:
            return value
        told = [{next(iter(one)): new} for one, new in zip(listed, masked, strict=True)]
        return {kind: {**inner, "values": told}}
    if not isinstance(inner, str):
        return value
    masked = mask_command(inner)
    return value if masked is inner else {kind: masked}


def mask_commands(values: Mapping[str, Json]) -> Mapping[str, Json]:
    """Attributes with their command lines masked; the very same object where there is nothing to mask."""
    changed = {key: masked for key in COMMAND_KEYS if (masked := mask_command(values.get(key))) is not values.get(key)}
    return {**values, **changed} if changed else values


def _is_secret(flag: str) -> bool:
    return _FLAG.fullmatch(flag) is not None and names_a_secret(flag.lstrip("-"))


def _sealed(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{seal(match[3])}" if _is_secret(match[1]) else match.group()
