"""Spans by the GenAI semantic conventions, exported by OTLP when OTEL_EXPORTER_OTLP_ENDPOINT says where to."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind

from research_flow.model import Message, Reply


@contextmanager
def exporting() -> Iterator[None]:
    """Export until the end of the block, and flush there."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        yield
        return
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


@contextmanager
def span(operation: str, name: str, kind: SpanKind = SpanKind.INTERNAL, **attributes: str) -> Iterator[Span]:
    """A span `operation name`; an attribute is written as `gen_ai.` and its name with dots for underscores."""
    given = {f"gen_ai.{key.replace('_', '.')}": value for key, value in attributes.items()}
    given["gen_ai.operation.name"] = operation
    with trace.get_tracer("research_flow").start_as_current_span(
        f"{operation} {name}", kind=kind, attributes=given
    ) as opened:
        yield opened


def record_chat(opened: Span, system: str, messages: list[Message], reply: Reply) -> None:
    """What a model was given and answered."""
    opened.set_attribute("gen_ai.system_instructions", _json([{"type": "text", "content": system}]))
    opened.set_attribute("gen_ai.input.messages", _json(messages))
    opened.set_attribute("gen_ai.output.messages", _json([reply.message]))
    opened.set_attribute("gen_ai.usage.input_tokens", reply.input_tokens)
    opened.set_attribute("gen_ai.usage.output_tokens", reply.output_tokens)


def record_tool(opened: Span, arguments: dict[str, Any], result: object) -> None:
    opened.set_attribute("gen_ai.tool.call.arguments", _json(arguments))
    opened.set_attribute("gen_ai.tool.call.result", _json(result))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
