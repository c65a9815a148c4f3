"""The OpenTelemetry SDK of the agent's process: what it exports, and that all is exported when the process ends."""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context, attach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

LIMITS = {
    # OpenInference writes a message as several attributes, and of more than 128 the first are lost.
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "8192",
    "OTEL_SPAN_EVENT_COUNT_LIMIT": "8192",
}
GRACE_S = 1.5
"""How long a signal may wait for the flush; the sandbox kills two seconds after it asked."""


def start() -> None:
    """Make an exporting provider the global one; an agent that sets its own keeps its own."""
    for name, value in LIMITS.items():
        os.environ.setdefault(name, value)
    processor = OpenSpans(BatchSpanProcessor(Careful(OTLPSpanExporter(timeout=5)), 65536, 200, 512))
    provider = TracerProvider(span_limits=SpanLimits(), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    processor.root = _root()
    _yield_to_the_agents_own(provider, processor)
    _carry_context_into_threads()
    atexit.register(_finish, provider, processor, "the process ended first")
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, frame: _terminated(provider, processor, number, frame))


class OpenSpans(SpanProcessor):
    """Hands spans on, and remembers which are open: a step that hangs must be seen when the agent is stopped."""

    def __init__(self, inner: SpanProcessor) -> None:
        self._inner = inner
        self._open: dict[int, Span] = {}
        self._process = os.getpid()
        self.root: trace.Span | None = None
        """The process's own span, which is no news by itself."""
        self.seen = False
        """Whether there was any other."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.seen = self.seen or self.root is not None
        self._open[span.get_span_context().span_id] = span
        self._inner.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        if (context := span.get_span_context()) is not None:
            self._open.pop(context.span_id, None)
        self._inner.on_end(span)

    def end_all(self, why: str, *, stopped: bool) -> None:
        """End what is open, youngest first, and say on each that it did not end by itself. The root of a process that
        came to its end is no such case; that of one in which nothing was seen is dropped."""
        if os.getpid() != self._process:  # forked: what was open then is the parent's to end
            return
        for span in reversed(list(self._open.values())):
            if span is self.root and not self.seen:
                continue
            if stopped or span is not self.root:
                span.set_attribute("evalagent.interrupted", why)
                span.set_status(trace.Status(trace.StatusCode.ERROR, f"interrupted: {why}"))
            span.end()

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._inner.force_flush(timeout_millis)


class Careful(SpanExporter):
    """Loses neither an attribute to a lone surrogate nor a batch to one span that cannot be encoded."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        spans = [span if _encodable(span) else scrubbed(span) for span in spans]
        try:
            return self._inner.export(spans)
        except Exception:  # noqa: BLE001
            results = [self._one(span) for span in spans]
        return SpanExportResult.SUCCESS if all(results) else SpanExportResult.FAILURE

    def _one(self, span: ReadableSpan) -> bool:
        try:
            return self._inner.export([span]) is SpanExportResult.SUCCESS
        except Exception as error:  # noqa: BLE001
            sys.stderr.write(f"evalagent hook: the span {span.name!r:.80} is lost: {error!r:.200}\n")
            return False

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._inner.force_flush(timeout_millis)


def scrubbed(span: ReadableSpan) -> ReadableSpan:
    """The span with every text made valid Unicode: lone surrogates are written as `\\udXXX`."""
    return ReadableSpan(
        name=_clean(span.name),
        context=span.get_span_context(),
        parent=span.parent,
        resource=span.resource,
        attributes=_clean(span.attributes),
        events=[Event(_clean(event.name), _clean(event.attributes), event.timestamp) for event in span.events],
        links=span.links,
        kind=span.kind,
        status=trace.Status(span.status.status_code, _clean(span.status.description)),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _encodable(span: ReadableSpan) -> bool:
    texts = [span.name, span.status.description, span.attributes, *((e.name, e.attributes) for e in span.events)]
    return all(_clean(text) == text for text in texts)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return type(value)(map(_clean, value)) if isinstance(value, list | tuple) else value


class Joined(SpanProcessor):
    """Takes the spans of a provider that the agent made itself, unless that exports by OTLP already."""

    def __init__(self, provider: TracerProvider, processor: OpenSpans) -> None:
        self._provider, self._processor = provider, processor
        self._needed: bool | None = None

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if self._needed is None:
            self._needed = not self._exports_otlp()
        self._processor.seen = True  # it hangs under our root, wherever it is exported
        if self._needed:
            self._processor.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        if self._needed:
            self._processor.on_end(span)

    def shutdown(self) -> None:
        """Ours is shut down with our own provider."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._processor.force_flush(timeout_millis) if self._needed else True

    def _exports_otlp(self) -> bool:
        processors = getattr(self._provider._active_span_processor, "_span_processors", ())
        exporters = (getattr(processor, "span_exporter", None) for processor in processors)
        return any("OTLP" in type(exporter).__name__ for exporter in exporters)


def _yield_to_the_agents_own(ours: TracerProvider, processor: OpenSpans) -> None:
    """OpenTelemetry lets a global provider be set once; the agent's comes after ours and has to win."""
    refuse_second = trace.set_tracer_provider

    def set_tracer_provider(tracer_provider: trace.TracerProvider) -> None:
        if trace.get_tracer_provider() is ours:
            trace._TRACER_PROVIDER_SET_ONCE = type(trace._TRACER_PROVIDER_SET_ONCE)()
            trace._TRACER_PROVIDER = None
        refuse_second(tracer_provider)
        if isinstance(tracer_provider, TracerProvider):
            tracer_provider.add_span_processor(Joined(tracer_provider, processor))

    trace.set_tracer_provider = set_tracer_provider


def _carry_context_into_threads() -> None:
    """Let spans of a thread or an executor's job be children of the span that started it."""
    try:
        from opentelemetry.instrumentation.threading import ThreadingInstrumentor
    except ImportError:
        import evalagent_threads  # type: ignore[import-not-found]

        evalagent_threads.carry_context()
    else:
        ThreadingInstrumentor().instrument()


def _root() -> trace.Span | None:
    """One span around the process, so that an agent without a framework, whose calls stand alone, makes one trace too.

    A Python process that the agent starts hangs under it by way of TRACEPARENT.
    """
    parent = os.environ.get("TRACEPARENT")
    if parent:
        attach(TraceContextTextMapPropagator().extract({"traceparent": parent}))
        return None
    name = os.environ.get("OTEL_SERVICE_NAME", "agent")
    attributes = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": name}
    root = trace.get_tracer("evalagent.hook").start_span(f"invoke_workflow {name}", attributes=attributes)
    attach(trace.set_span_in_context(root))
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    os.environ["TRACEPARENT"] = carrier["traceparent"]
    return root


def _finish(provider: TracerProvider, processor: OpenSpans, why: str, stopped: bool = False) -> None:
    processor.end_all(why, stopped=stopped)
    provider.shutdown()


def _terminated(provider: TracerProvider, processor: OpenSpans, number: int, _frame: FrameType | None) -> None:
    """Flush in a thread of its own, since the interrupted code may hold the exporter's lock; then die of the signal."""
    flush = threading.Thread(
        target=_finish, args=(provider, processor, "the agent was stopped by SIGTERM", True), daemon=True
    )
    flush.start()
    flush.join(GRACE_S)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
