"""Hangs a provider's span under the LangChain call that made it.

OpenInference does not make LangChain's spans current, so the span of a provider's own instrumentor (Anthropic,
OpenAI …) would stand beside the graph as a second model call. Under the LangChain span it is known as the same one.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context

_model_run: ContextVar[Any] = ContextVar("evalagent_model_run", default=None)
_MODEL_RUNS = ("llm", "chat_model")


class PlacingProvider(trace.TracerProvider):
    """Given to the instrumentors of providers; its tracers are those of the global provider but for the parent."""

    def get_tracer(
        self,
        instrumenting_module_name: str,
        instrumenting_library_version: str | None = None,
        schema_url: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> trace.Tracer:
        return _PlacingTracer(
            trace.get_tracer(
                instrumenting_module_name, instrumenting_library_version, schema_url=schema_url, attributes=attributes
            )
        )


class _PlacingTracer(trace.Tracer):
    def __init__(self, inner: trace.Tracer) -> None:
        self._inner = inner

    def start_span(self, name: str, context: Context | None = None, *args: Any, **kwargs: Any) -> trace.Span:
        return self._inner.start_span(name, _langchain_call() if context is None else context, *args, **kwargs)

    @contextmanager
    def start_as_current_span(  # type: ignore[override]
        self,
        name: str,
        context: Context | None = None,
        kind: trace.SpanKind = trace.SpanKind.INTERNAL,
        attributes: Mapping[str, Any] | None = None,
        links: Sequence[trace.Link] | None = None,
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
        end_on_exit: bool = True,
    ) -> Iterator[trace.Span]:
        span = self.start_span(
            name, context, kind, attributes, links, start_time, record_exception, set_status_on_exception
        )
        with trace.use_span(span, end_on_exit, record_exception, set_status_on_exception):
            yield span


def note_model_runs() -> None:
    """Let LangChain's instrumentor note which model call is at work in a context; called once it is switched on."""
    from openinference.instrumentation.langchain._tracer import OpenInferenceTracer

    start: Any = OpenInferenceTracer._start_trace

    def _start_trace(self: Any, run: Any) -> None:
        start(self, run)
        if run.run_type in _MODEL_RUNS:
            _model_run.set(run.id)

    setattr(OpenInferenceTracer, "_start_trace", _start_trace)  # noqa: B010 a method, to mypy


def _langchain_call() -> Context | None:
    """The context of the LangChain model call that is at work here; None if none is, or it cannot be told which."""
    langchain = sys.modules.get("openinference.instrumentation.langchain")
    tracer = getattr(langchain.LangChainInstrumentor(), "_tracer", None) if langchain else None
    if tracer is None:
        return None
    span = tracer.get_span(_model_run.get())
    current = langchain.get_current_span() if langchain else None
    if span is None and current is not None:
        # A callback of an async call runs in a context of its own and leaves no note here.
        running = [run for run in list(tracer.run_map.values()) if run.run_type in _MODEL_RUNS]
        here = [run for run in running if tracer.get_span(run.parent_run_id) is current]
        span = tracer.get_span(here[0].id) if len(here) == 1 else None
    return trace.set_span_in_context(span) if span is not None else None
