"""What dialects wrap around values, taken off: JSON in text, packed arguments, packed results.

Nothing here raises: what cannot be understood comes back as it was.
"""

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from evalagent.model import Json
from evalagent.traces.anyvalues import DEEPEST, shallow

_DECODER = json.JSONDecoder(strict=False, parse_constant=str)
_SCAN: Callable[[str, int], tuple[Json, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
_NUMBERS = json.JSONDecoder(
    strict=False,
    parse_constant=str,
    parse_float=lambda text: int(float(text)) if float(text).is_integer() else float(text),
)
_FLOAT = re.compile(r"\d(\.\d|[eE][+-]?\d)")
_WHOLE_FLOAT = re.compile(r"(?<=[0-9])\.0(?![0-9])")
_WHOLE = {str, int, bool, type(None)}
_PACKING = {"tags", "metadata", "kwargs", "inputs", "input_str", "color", "name", "run_id", "parent_run_id"}
_FUNCTION_RESPONSE = {"id", "name", "response", "will_continue", "scheduling", "parts"}
_LITERAL_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value read from text that should be JSON. `truncated`: it was cut; `value` is what stands before the cut."""

    value: Json
    truncated: bool = False


def canonical(value: Json) -> str:
    """One text per value: sorted keys, no spaces, 18.0 as 18. Equal texts mean equal values."""
    if value is None or isinstance(value, bool | int):
        return "null" if value is None else str(value).lower() if isinstance(value, bool) else _int_text(value)
    odd = False
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        odd = True
        try:
            text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
        except (ValueError, RecursionError, OverflowError, TypeError):
            return repr(type(value))
    if not _has_numbers(value):
        return text
    if not odd and "e-" not in text and "e+" not in text:  # no number that two writers of JSON write in two ways
        if ".0" not in text:
            return text
        if "\\" not in text and ".0000" not in text and "-0.0" not in text:
            return _without_zeros(text)
    if not _FLOAT.search(text):
        return text
    try:
        return json.dumps(_NUMBERS.decode(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError, OverflowError):
        return text


def _without_zeros(text: str) -> str:
    """JSON text without backslashes in it, 18.0 as 18."""
    pieces = text.split('"')
    for at in range(0, len(pieces), 2):  # those between are the insides of strings
        if ".0" in pieces[at]:
            pieces[at] = _WHOLE_FLOAT.sub("", pieces[at])
    return '"'.join(pieces)


def _has_numbers(value: Json) -> bool:
    """Whether there may be a number with a fraction in a value; no for what plainly has none."""
    if type(value) is str:
        return False
    return type(value) is not dict or not {type(item) for item in value.values()} <= _WHOLE


def _int_text(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        return hex(value)


def _decoded(text: str) -> Json:
    """The value of JSON text without space around it, nested no deeper than attributes are: what is deeper stays
    text."""
    try:
        value, end = _SCAN(text, 0)
    except StopIteration:
        raise ValueError("no JSON") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value if text.count("[") + text.count("{") < DEEPEST else shallow(value)


def collapsed(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())


def parse(value: Json) -> Parsed:
    """Text that a schema says is JSON, parsed up to three levels; anything else as it is.

    Cut JSON gives what stands before the cut, marked truncated.
    """
    for _ in range(3):
        if not isinstance(value, str):
            return Parsed(value)
        text = value.strip()
        if not text or text[0] not in '{["' or (text[0] == '"' and len(text) < 2):
            return Parsed(_scalar(value))
        try:
            value = _decoded(text)
        except RecursionError:
            return Parsed(value)
        except ValueError:
            return _cut(value, text)
    return Parsed(value)


def structured(value: Json) -> Json:
    """Text that is a JSON object or array, parsed; any other value as it is (numbers stay text)."""
    if isinstance(value, str):
        text = value.strip()
        if text[:1] in ("{", "["):
            try:
                return _decoded(text)
            except (ValueError, RecursionError):
                return value
    return value


def looks_cut(value: Json) -> bool:
    """Whether text begins as a JSON object or array and does not end as one."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    if text[:2] not in ('{"', '["', "[{", "[[", "{}", "[]") and text not in ("{", "["):
        return False
    try:
        _DECODER.raw_decode(text)
    except RecursionError:
        return False
    except ValueError:
        return bool(_closing(text))
    return False


def _scalar(text: str) -> Json:
    return {"true": True, "false": False, "null": None}.get(text, text)


def _cut(whole: str, text: str) -> Parsed:
    closing = _closing(text)
    if text[0] == '"' or not closing:
        return Parsed(whole)
    trimmed = text
    for _ in range(4):
        for ending in _endings(trimmed):
            try:
                return Parsed(_decoded(trimmed + ending), True)
            except (ValueError, RecursionError):
                continue
        comma = trimmed.rfind(",")
        if comma <= 0:
            break
        trimmed = trimmed[:comma]
    return Parsed(whole, True)


def _endings(text: str) -> tuple[str, ...]:
    closing = _closing(text)
    if not closing:
        return ()
    if closing.startswith('"'):
        return (closing, '"' + ":null" + closing[1:], "\\" + closing)
    return (closing, "null" + closing, ":null" + closing)


def _closing(text: str) -> str:
    """The brackets and quote that are open at the end of the text."""
    stack: list[str] = []
    quoted = escaped = False
    for char in text:
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
        elif char in "}]":
            if not stack:
                return ""
            stack.pop()
    return ('"' if quoted else "") + "".join(reversed(stack))


def literal(text: str) -> Json:
    """A Python repr as its value; the text itself where it is none."""
    text = text.strip()
    if len(text) > _LITERAL_LIMIT or text[:1] not in "{[('\"" or not text:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return _jsonable(value)


def _jsonable(value: Any) -> Json:
    try:
        return _decoded(json.dumps(value, default=str))
    except (ValueError, RecursionError, TypeError):
        return str(value)


def arguments(value: Json) -> Parsed:
    """A tool's arguments without the dialect's packing.

    Known packings: `{"args": [], "kwargs": {...}}` (OpenLLMetry decorators, smolagents), `{"input_str", "inputs"}`
    (OpenLLMetry LangChain), `{"inputs": {...}}`, Python reprs, JSON in text.
    """
    parsed = parse(value)
    value = parsed.value
    if isinstance(value, str):
        value = literal(value) if value[:1] in ("{", "[") and not parsed.truncated else value
    if isinstance(value, dict):
        keys = set(value)
        if "kwargs" in keys and keys <= {"args", "kwargs", "sanitize_inputs_outputs"}:
            inner, positional = value.get("kwargs"), value.get("args")
            if isinstance(inner, dict) and inner:
                value = inner
            elif positional:
                value = positional[0] if isinstance(positional, list) and len(positional) == 1 else positional
            else:
                value = {}
        elif "input_str" in keys:
            inner = value.get("inputs")
            value = inner if isinstance(inner, dict) else literal(str(value["input_str"]))
        elif "inputs" in keys and keys <= _PACKING and isinstance(value["inputs"], dict):
            value = value["inputs"]
        elif keys == {"tool_name", "arguments"} or keys == {"name", "arguments"}:
            value = parse(value["arguments"]).value
        elif "params" in keys and "method" in keys and isinstance(value["params"], dict):
            value = value["params"].get("arguments", value["params"])
    return Parsed(value, parsed.truncated)


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's result without packing, and what the packing said beside it."""

    value: Json
    call_id: str | None = None
    failed: bool = False
    truncated: bool = False


def result(value: Json) -> Result:
    """A tool's result unwrapped: LangChain messages, `{"output": ...}`, content blocks, Bedrock, Gemini, Vercel, MCP.

    Where the packing says that the call failed, the saying is kept: `{"status": "error", "content": ...}`.
    """
    told, value = value, structured(value)
    truncated = value is told and looks_cut(told)
    call_id: str | None = None
    failed = False
    for _ in range(6):
        value = structured(value)
        if isinstance(value, dict):
            keys = set(value)
            if "lc" in keys and isinstance(value.get("kwargs"), dict):
                value = value["kwargs"]
            elif isinstance(value.get("data"), dict) and keys <= {"type", "data"}:
                value = value["data"]
            elif "tool_call_id" in keys and "content" in keys:
                call_id = _text(value["tool_call_id"])
                failed = failed or value.get("status") == "error"
                value = value["content"]
            elif "toolResult" in keys and isinstance(value["toolResult"], dict):
                inner = value["toolResult"]
                call_id = _text(inner.get("toolUseId"))
                failed = failed or inner.get("status") == "error"
                value = inner.get("content")
            elif "output" in keys and keys <= {"output", "kwargs", "tags", "color", "name"}:
                value = value["output"]
            elif "isError" in keys and "content" in keys:
                failed = failed or value["isError"] is True
                value = value["content"]
            elif "response" in keys and "name" in keys and keys <= _FUNCTION_RESPONSE:
                call_id = call_id or _text(value.get("id"))
                value = value["response"]
            elif keys == {"type", "value"} and isinstance(value["type"], str):
                failed = failed or value["type"].startswith("error")
                value = value["value"]
            elif "raw_output" in keys and "tool_name" in keys:  # LlamaIndex
                failed = failed or value.get("is_error") is True
                value = value.get("blocks") or value.get("content") or value["raw_output"]
            elif keys == {"result"} or keys == {"content"}:
                value = value[next(iter(keys))]
            else:
                break
        elif isinstance(value, list) and value and all(_is_block(item) for item in value):
            if len(value) == 1 and "toolResult" in value[0]:
                value = value[0]
            else:
                value = "\n".join(str(item.get("text", "")) for item in value)
        else:
            break
    if failed:
        value = {"status": "error", "content": value}
    return Result(value, call_id, failed, truncated)


def _is_block(item: Json) -> bool:
    if not isinstance(item, dict):
        return False
    if isinstance(item.get("text"), str):
        return set(item) <= {"text", "type", "block_type", "annotations", "meta", "_meta", "id", "index"}
    return isinstance(item.get("toolResult"), dict)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def plain(value: Json) -> str:
    """A value as the text in which it would be found again in a message; '' for nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        inner = structured(value)
        return collapsed(value) if isinstance(inner, str) else canonical(inner)
    if isinstance(value, dict) and set(value) == {"status", "content"} and value["status"] == "error":
        return plain(value["content"])
    return canonical(value)
