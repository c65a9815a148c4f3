"""What must hold of every input: bytes in, rows out, nothing raised, nothing lost, always the same."""

import json
import time
from collections.abc import Iterable
from dataclasses import asdict

import orjson

from evalagent.adapters.files import dump
from evalagent.model import Json, Trace
from evalagent.rows import finding_row, step_rows
from evalagent.traces.building import Built, build
from evalagent.traces.formats import FORMATS
from evalagent.traces.reading import Reading, read
from evalagent.traces.receipt import adds_up, receipt
from tests.traces.counting import least_pieces, values

SECONDS, SECONDS_A_BYTE = 2.0, 40e-6
"""CPU time that an input may take: this much, and so much for each of its bytes (instrumented code is slower)."""


_WRAPPERS = ("trace", "result", "data", "traces", "runs", "sessionSpans", "events", "logEvents", "results", "message",
             "@message", "context.span_id")  # fmt: skip


class Broken(AssertionError):
    """A law does not hold; the message names it."""


def hold(data: bytes, format: str = "auto", *, again: bool = True) -> None:
    """Read, build and write one file. Raises Broken where a law is broken, and whatever the library raised.

    `again`: build it twice more, in another order and with spans that came twice; that costs most of the time.
    """
    began = time.process_time()
    reading = read(data, "input", format)
    built = build(reading.spans, reading.logs)
    text = rows(built.traces)
    took = time.process_time() - began
    _demand(took < SECONDS + SECONDS_A_BYTE * len(data), "time", f"{took:.1f} s for {len(data)} bytes")
    _read(reading, data, format)
    _accounted([reading], built)
    for trace in built.traces:
        _graph(trace)
    if not again:
        return
    turned = build(tuple(reversed(reading.spans)), tuple(reversed(reading.logs)))
    _demand(rows(turned.traces) == text, "order", "spans in another order give other rows")
    twice = build(reading.spans + reading.spans[:3], reading.logs + reading.logs[:3])
    _demand(rows(twice.traces) == text, "repetition", "spans that came twice give other rows")


def rows(traces: Iterable[Trace]) -> bytes:
    """steps.jsonl and findings.jsonl as bytes. A trace's findings about duplicates are not part of it."""
    held = list(traces)
    found = list(step_rows(held))
    found.extend(
        finding_row(finding)
        for trace in sorted(held, key=lambda trace: trace.trace_id)
        for finding in trace.health
        if finding.code != "duplicate_span"
    )
    return b"\n".join(map(dump, found))


def _demand(holds: bool, law: str, said: str) -> None:
    if not holds:
        raise Broken(f"{law}: {said}")


def _read(reading: Reading, data: bytes, format: str) -> None:
    for span in reading.spans:
        orjson.dumps(asdict(span))
    for record in reading.logs:
        orjson.dumps(asdict(record))
    for span in reading.spans:
        _demand(len(span.trace_id) == 32 and len(span.span_id) == 16, "ids", f"{span.trace_id!r} {span.span_id!r}")
        _demand(0 <= span.start_ns < 1 << 63, "times", repr(span.start_ns))
    for piece in reading.rejected:
        _demand(bool(piece.reason) and piece.line >= 0, "rejections", repr(piece))
        orjson.dumps(piece.reason)
    pieces = len(reading.spans) + len(reading.logs) + len(reading.rejected)
    if format == "auto":
        least = least_pieces(data)
        _demand(pieces >= least, "nothing lost", f"{least} pieces stand there, {pieces} are accounted for")
    if data.strip(b" \t\r\n\0\xef\xbb\xbf") and reading.format == "unknown":
        _demand(bool(reading.rejected) or _says_nothing(data), "nothing lost", "not read and not rejected")


def _says_nothing(data: bytes) -> bool:
    """Whether every value of the text is empty, or wraps nothing: that is no loss. Packed text is not looked into."""
    text = data.decode("utf-8", "replace").replace("\ufeff", " ").replace("\0", " ").replace("\x1e", " ")
    if not text.strip("{}[], \t\r\n") or data[:2] in (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b") or data[:1] == b"(":
        return True
    held = values(data)
    return bool(held) and all(map(_is_hollow, held))


def _is_hollow(value: Json) -> bool:
    if isinstance(value, list):
        return all(map(_is_hollow, value))
    if isinstance(value, str):
        return value[:1] in ("{", "[") and all(map(_is_hollow, values(value.encode("utf-8", "replace"))))
    if not isinstance(value, dict):
        return False
    return not value or any(name in value and _is_hollow(value[name]) for name in _WRAPPERS)


def _accounted(readings: list[Reading], built: Built) -> None:
    numbers = receipt(readings, built)
    _demand(adds_up(numbers), "the receipt adds up", json.dumps(numbers)[:600])
    orjson.dumps(numbers)
    for trace in built.traces:
        placed = [identity for step in trace.steps for identity in step.span_ids]
        placed += [container.span_id for container in trace.containers] + list(trace.ignored)
        _demand(len(placed) == len(set(placed)), "each span is in one place", trace.trace_id)
        _demand(0.0 <= trace.quality <= 1.0, "quality", repr(trace.quality))


def _graph(trace: Trace) -> None:
    place = {step.step_id: number for number, step in enumerate(trace.steps)}
    _demand(len(place) == len(trace.steps), "one step an id", trace.trace_id)
    for number, step in enumerate(trace.steps):
        for edge in step.parents:
            if edge.trace_id in (None, trace.trace_id):
                known = place.get(edge.step_id)
                _demand(known is not None and known < number, "parents first", f"{step.step_id} {edge}")
            _demand(0.0 < edge.confidence <= 1.0, "confidence", repr(edge))
        tokens: Json = step.tokens and (step.tokens.input, step.tokens.output)
        _demand(all(n is None or n >= 0 for n in tokens or ()), "tokens", repr(step.tokens))
        _demand(step.cost_usd is None or step.cost_usd >= 0, "cost", repr(step.cost_usd))


ALL_FORMATS = tuple(FORMATS)
