"""Makes plain functions tool steps: a span for each call, with its arguments, its result and what it raised."""

import functools
import inspect
import json
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context

MOST_CHARACTERS = 200_000
MOST_ITEMS = 1000
_framework_parent: ContextVar[int | None] = ContextVar("evalagent_framework_parent", default=None)


def wrap(module: ModuleType, names: Sequence[str], say: Callable[[str], None]) -> None:
    """Replace functions of a module by traced ones; `*` is every public function that is defined in it."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    for name in dict.fromkeys(each for wanted in names for each in (own if wanted == "*" else [wanted])):
        function = getattr(module, name, None)
        if not inspect.isfunction(function):
            say(f"{module.__name__}:{name} is not traced: {'not there' if function is None else 'no plain function'}")
        elif not hasattr(function, "__evalagent_tool__"):
            setattr(module, name, traced(function))


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a span around each call; its signature, name and documentation stay as they are."""
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            call, items = _Call(function, args, kwargs), _Items()
            iterator = function(*args, **kwargs)
            try:
                while True:
                    with call.running():
                        try:
                            item = items.add(await anext(iterator))
                        except StopAsyncIteration:
                            break
                    yield item
            finally:
                call.end(items.kept)
                await iterator.aclose()

    elif inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            call, result = _Call(function, args, kwargs), None
            try:
                with call.running():
                    result = await function(*args, **kwargs)
                return result
            finally:
                call.end(result)

    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            call, items, sent = _Call(function, args, kwargs), _Items(), None
            iterator = function(*args, **kwargs)
            try:
                while True:
                    with call.running():
                        try:
                            item = items.add(iterator.send(sent))
                        except StopIteration as stop:
                            return stop.value
                    sent = yield item
            finally:
                call.end(items.kept)
                iterator.close()

    else:

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            call, result = _Call(function, args, kwargs), None
            try:
                with call.running():
                    result = function(*args, **kwargs)
                return result
            finally:
                call.end(result)

    wrapper.__evalagent_tool__ = True  # type: ignore[attr-defined]
    return wrapper


class _Items:
    """What a generator gave, as far as it is worth keeping."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def add(self, item: Any) -> Any:
        if len(self.kept) < MOST_ITEMS:
            self.kept.append(item)
        return item


class _Call:
    """The span of one call. It is current only while the function runs, not while a generator's caller does."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        parent, self._framework = _parent()
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": function.__name__,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": as_json(_named(function, args, kwargs)),
        }
        if function.__doc__:
            attributes["gen_ai.tool.description"] = inspect.cleandoc(function.__doc__)[:2000]
        tracer = trace.get_tracer("evalagent.hook")
        self._span = tracer.start_span(f"execute_tool {function.__name__}", parent, attributes=attributes)
        self._failed = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make the span current; what is raised is the call's error and goes on."""
        token = _framework_parent.set(self._framework)
        try:
            with trace.use_span(self._span, record_exception=False, set_status_on_exception=False):
                yield
        except BaseException as error:
            self._failed = True
            self._span.record_exception(error)
            self._span.set_status(trace.Status(trace.StatusCode.ERROR, f"{type(error).__name__}: {error}"))
            self._span.set_attribute("error.type", type(error).__qualname__)
            raise
        finally:
            _framework_parent.reset(token)

    def end(self, result: Any) -> None:
        if not self._failed:
            self._span.set_attribute("gen_ai.tool.call.result", as_json(result))
        self._span.end()


def _parent() -> tuple[Context | None, int | None]:
    """Where the span belongs. OpenInference does not make LangChain's spans current, so it is asked for its own."""
    langchain = sys.modules.get("openinference.instrumentation.langchain")
    if langchain is None:
        return None, None
    try:
        span = langchain.get_current_span()
    except Exception:  # noqa: BLE001 then the current context has to do
        return None, None
    if span is None:
        return None, None
    identity = span.get_span_context().span_id
    if identity == _framework_parent.get():  # called by a traced function that hangs under it already
        return None, identity
    return trace.set_span_in_context(span), identity


def _named(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        signature = inspect.signature(function)
        named = dict(signature.bind(*args, **kwargs).arguments)
    except TypeError:  # called wrongly, which is about to be raised by the call itself
        return {"args": list(args), **kwargs}
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            named.update(named.pop(name, {}))
    return named


def as_json(value: Any) -> str:
    """A value as JSON text, whatever it is; cut where it is too long."""
    try:
        text = json.dumps(value, default=_plain, ensure_ascii=False)
    except Exception:  # noqa: BLE001 circular, too deep, keys that are no text
        try:
            text = json.dumps(repr(value)[:MOST_CHARACTERS])
        except Exception:  # noqa: BLE001
            text = '"(cannot be shown)"'
    return text[:MOST_CHARACTERS].encode("utf-8", "backslashreplace").decode()


def _plain(value: Any) -> Any:
    for method in ("model_dump", "_asdict", "tolist"):
        if hasattr(value, method):
            return getattr(value, method)()
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return repr(value)
