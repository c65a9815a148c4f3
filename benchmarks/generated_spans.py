"""Spans of agents that never ran, for measuring: OTLP/JSON lines as a collector's file exporter writes them.

    python benchmarks/generated_spans.py 10000 spans.jsonl                    runs of 20 spans, four at a time
    python benchmarks/generated_spans.py 1000000 chain.jsonl --shape chain    one trace, model and tool in turn

Spans are of the GenAI conventions 1.38 with their messages and the attributes that instrumentors write beside them,
2 to 8 KB each; the same number, shape and seed give the same bytes. A run's histories repeat all its earlier messages,
as they do in life; those of the chain hold the last exchange only, as after compaction, since a million whole ones
would be quadratic. Ids in arguments are such as the task or an earlier result names.
"""

import argparse
import hashlib
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

PER_RUN = 20
PER_LINE = 100
RUNS_AT_ONCE = 4
START_NS = 1_760_000_000_000_000_000
TOOLS = ("search_orders", "get_order", "list_invoices", "refund_order", "send_message", "read_policy")
WORDS = """
order invoice customer refund policy delivery address window carrier parcel replacement warranty receipt total
discount balance account ticket priority escalate confirm pending shipped returned damaged missing support agent
reply summary detail amount currency item quantity stock warehouse schedule tomorrow morning courier signature
""".split()  # noqa: SIM905 - a list of words reads better so
Json = Any
_SCHEMA: Json = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "limit": {"type": "integer"}, "fields": {"type": "array"}},
    "required": ["id"],
}


class _Run:
    """One agent's run in the making: a root, and then model and tool in turn."""

    def __init__(self, number: int, seed: int, spans: int, history: int | None) -> None:
        self.random = random.Random(f"{seed}.{number}")
        self.trace_id = hashlib.sha256(f"{seed}.{number}".encode()).hexdigest()[:32]
        self.spans, self.history = spans, history
        self.now = START_NS + number * 7_000_000
        self.made = 0
        self.root = self._id()
        self.known = [f"A-{self.random.randrange(10**6):06d}"]
        self.task = _said("user", f"Order {self.known[0]}: {self._text(180)}. What can be done?")
        self.messages: list[Json] = [self.task]
        self.system = "\n".join(f'{n}. "{self._text(60)}": {self._text(90)}.' for n in range(1, 5))
        self.tools = _dumped([
            {"type": "function", "name": name, "description": self._text(40), "parameters": _SCHEMA}
            for name in TOOLS[:3]
        ])  # fmt: skip
        self.call: Json = None

    def _id(self) -> str:
        self.made += 1
        return f"{self.random.getrandbits(40):010x}{self.made:06x}"

    def _text(self, size: int) -> str:
        return " ".join(self.random.choices(WORDS, k=max(1, size // 8)))

    def __iter__(self) -> Iterator[Json]:
        start = self.now
        for number in range(self.spans - 1):
            yield self._model(last=number >= self.spans - 3) if number % 2 == 0 else self._tool()
        yield self._span("invoke_agent desk", self.root, None, start, {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.input.messages": _dumped([self.task]),
            "gen_ai.output.messages": _dumped(self.messages[-1:]),
            "gen_ai.system_instructions": _dumped([{"type": "text", "content": self.system}]),
            "app.note": self._text(1100),
        })  # fmt: skip

    def _model(self, *, last: bool) -> Json:
        start = self.now
        given = self.messages if self.history is None else [self.task, *self.messages[1:][-self.history :]]
        self.now += self.random.randrange(200_000_000, 2_000_000_000)
        if last:
            self.call, said = (
                None,
                _said("assistant", f"Order {self.known[-1]}: {self._text(240)}.", finish_reason="stop"),
            )
        else:
            self.call = {
                "type": "tool_call",
                "id": f"call_{self.random.getrandbits(48):012x}",
                "name": self.random.choice(TOOLS[:3]),
                "arguments": {"id": self.random.choice(self.known), "limit": 5, "fields": ["state", "total", "lines"]},
            }
            said = {"role": "assistant", "parts": [self.call], "finish_reason": "tool_call"}
        span = self._span("chat claude-haiku-4-5", self._id(), self.root, start, {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "claude-haiku-4-5",
            "gen_ai.request.max_tokens": 1024,
            "gen_ai.request.temperature": 0.2,
            "gen_ai.request.top_p": 0.9,
            "gen_ai.response.model": "claude-haiku-4-5",
            "gen_ai.response.id": f"msg_{self.random.getrandbits(64):016x}",
            "gen_ai.response.finish_reasons": [said["finish_reason"]],
            "gen_ai.usage.input_tokens": 300 + 90 * len(given),
            "gen_ai.usage.output_tokens": self.random.randrange(20, 200),
            "gen_ai.usage.cache_read.input_tokens": 240,
            "gen_ai.usage.cache_creation.input_tokens": 0,
            "gen_ai.output.type": "text",
            "gen_ai.system_instructions": _dumped([{"type": "text", "content": self.system}]),
            "gen_ai.tool.definitions": self.tools,
            "gen_ai.input.messages": _dumped(given),
            "gen_ai.output.messages": _dumped([said]),
        })  # fmt: skip
        self.messages.append({key: value for key, value in said.items() if key != "finish_reason"})
        return span

    def _tool(self) -> Json:
        start = self.now
        self.now += self.random.randrange(5_000_000, 300_000_000)
        if self.call is None:
            return self._model(last=True)
        if len(self.known) < 40:
            self.known.append(f"A-{self.random.randrange(10**6):06d}")
        lines = [{"item": self._text(16), "quantity": n, "price": 4.5 * n, "in_stock": n % 2 == 0} for n in (1, 2)]
        result = {"id": self.call["arguments"]["id"], "replaces": self.known[-1], "state": "shipped", "lines": lines}
        span = self._span(f"execute_tool {self.call['name']}", self._id(), self.root, start, {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": self.call["name"],
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": self.call["id"],
            "gen_ai.tool.call.arguments": _dumped(self.call["arguments"]),
            "gen_ai.tool.call.result": _dumped(result),
            "gen_ai.tool.description": self._text(120),
            "code.function.name": f"desk.tools.{self.call['name']}",
            "code.file.path": "desk/tools.py",
            "code.line.number": self.random.randrange(400),
            "app.log": self._text(700),
        })  # fmt: skip
        answer = {"type": "tool_call_response", "id": self.call["id"], "response": _dumped(result)}
        self.messages.append({"role": "tool", "parts": [answer]})
        if self.history is not None:  # what no later call is given need not be kept
            del self.messages[1 : -self.history - 1]
        return span

    def _span(self, name: str, span_id: str, parent: str | None, start: int, attributes: dict[str, Json]) -> Json:
        return {
            "traceId": self.trace_id,
            "spanId": span_id,
            **({"parentSpanId": parent} if parent else {}),
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(self.now),
            "attributes": [{"key": key, "value": _typed(value)} for key, value in (attributes | self._about()).items()],
            "droppedAttributesCount": 0,
            "status": {},
            "flags": 257,
        }

    def _about(self) -> dict[str, Json]:
        return {
            "gen_ai.provider.name": "anthropic",
            "gen_ai.agent.name": "desk",
            "gen_ai.conversation.id": f"c-{self.trace_id[:12]}",
            "server.address": "api.example.com",
            "server.port": 443,
            "thread.id": 140_244_121,
            "thread.name": "MainThread",
        }


def _said(role: str, text: str, **more: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text}], **more}


def _dumped(value: Json) -> str:
    return orjson.dumps(value).decode()


def _typed(value: Json) -> Json:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_typed(one) for one in value]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def spans(count: int, shape: str = "runs", seed: int = 7) -> Iterator[Json]:
    """`count` OTLP spans in the order of their export: `runs` of 20 spans, or one `chain`."""
    if shape == "chain":
        yield from _Run(0, seed, count, history=2)
        return
    numbers = iter(range((count + PER_RUN - 1) // PER_RUN))
    left = count
    while left > 0:
        together = [iter(_Run(n, seed, PER_RUN, history=None)) for n in islice(numbers, RUNS_AT_ONCE)]
        while together and left > 0:
            for one in list(together):
                span = next(one, None)
                if span is None:
                    together.remove(one)
                elif left > 0:
                    left -= 1
                    yield span


def lines(count: int, shape: str = "runs", seed: int = 7) -> Iterator[bytes]:
    """The same as lines of a file, 100 spans each."""
    made = spans(count, shape, seed)
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "desk"}}]}
    while some := list(islice(made, PER_LINE)):
        scope = {"scope": {"name": "desk.telemetry", "version": "1.4"}, "spans": some}
        yield orjson.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}) + b"\n"


def write(count: int, file: Path, shape: str = "runs", seed: int = 7) -> int:
    """Write the file; its size in bytes."""
    with file.open("wb") as out:
        return sum(out.write(line) for line in lines(count, shape, seed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--shape", choices=("runs", "chain"), default="runs")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    print(f"{given.file}: {write(given.count, given.file, given.shape, given.seed)} bytes")
