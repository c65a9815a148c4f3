"""What an agent's environment must say for its spans to come, whichever sandbox runs it.

Pure: the sandboxes add the paths (the hook's folder on PYTHONPATH) that only they know.
"""

import ast
import re
import sys
from collections.abc import Iterable, Mapping

from evalagent.errors import UsageError
from evalagent.suites import Agent

TOOL = re.compile(r"^[A-Za-z_][\w.]*:(\*|[A-Za-z_]\w*)$")

CONTENT: Mapping[str, str] = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    "TRACELOOP_TRACE_CONTENT": "true",
}
"""Makes the instrumentors that hide messages by default show them; without messages few steps can be judged."""

QUIET: Mapping[str, str] = {"DO_NOT_TRACK": "1", "TRACELOOP_TELEMETRY": "false", "DEEPEVAL_TELEMETRY_OPT_OUT": "1"}
"""No library of the agent's shall report the trial to its maker."""


def needs_hook(agent: Agent) -> bool:
    """Whether the hook is put on the agent's path: not for one that exports by itself and names no tools."""
    return agent.instrument != "none" or bool(agent.tools)


def environment(
    agent: Agent, *, endpoint: str, resource: Mapping[str, str], case_id: str, trial: int, attempt: str
) -> dict[str, str]:
    """The variables that make a trial observable: exporter, resource, hook.

    `EVALAGENT_TRIAL` is the trial's number from 0: any agent may seed its randomness with it, so that a trial can be
    repeated. The case's id is not among them, since the agent is told of the case what stands on its stdin.
    """
    for tool in agent.tools:
        _check_tool(tool)
    marks = {**resource, "evalagent.case": case_id, "evalagent.trial": str(trial), "evalagent.attempt": attempt}
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_RESOURCE_ATTRIBUTES": ",".join(f"{name}={_escaped(marks[name])}" for name in sorted(marks)),
        "OTEL_SERVICE_NAME": resource.get("service.name", "agent"),
        "EVALAGENT_TRIAL": str(trial),
        "EVALAGENT_ATTEMPT": attempt,
        **CONTENT,
        **QUIET,
    }
    if needs_hook(agent):
        settings["EVALAGENT_HOOK_INSTRUMENT"] = agent.instrument
        settings["EVALAGENT_HOOK_TOOLS"] = ",".join(agent.tools)
    return settings


def imported(start: Iterable[str], sources: Mapping[str, str]) -> tuple[str, ...]:
    """The modules outside `sources` and the standard library that running the modules `start` imports, in that order.

    `sources` maps the dotted names of the agent's own modules to their text. Followed are imports at the top of a
    module (in `try` and `with` too), not those in functions or under `if`. `from a.b import c` counts as `a.b`.
    A source that does not parse imports nothing.
    """
    own = {name.partition(".")[0] for name in sources}
    waiting, seen, found = list(start), set(), dict[str, None]()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        top = name.partition(".")[0]
        if top not in own:
            if top not in sys.stdlib_module_names and top != "__future__":
                found.setdefault(name)
            continue
        waiting.extend(name.rpartition(".")[0] for _ in range(name.count(".") > 0))
        # A package is known as such by having modules below it.
        package = name if any(other.startswith(name + ".") for other in sources) else name.rpartition(".")[0]
        for module, names in _imports(sources.get(name, ""), package):
            waiting.append(module)
            waiting.extend(f"{module}.{each}" for each in names if f"{module}.{each}" in sources)
    return tuple(found)


def _imports(source: str, package: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    """(module, names taken from it) of each import that runs when the source does."""
    try:
        waiting: list[ast.stmt] = list(ast.parse(source).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = package.split(".")
            if node.level > len(around):  # beyond the top: fails when it runs
                continue
            above = around[: len(around) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            if module:
                yield module, tuple(alias.name for alias in node.names)
        elif isinstance(node, ast.Try | ast.With):
            waiting[:0] = node.body


def _check_tool(tool: str) -> None:
    if not TOOL.match(tool):
        raise UsageError(f"expected `module:function` or `module:*`, got {tool!r}", key="agent.tools")
    if tool.startswith("__main__:"):
        raise UsageError("functions of the script itself cannot be wrapped; put them into a module", key="agent.tools")


def _escaped(value: str) -> str:
    """Percent-encoded as OTEL_RESOURCE_ATTRIBUTES wants it."""
    return "".join(
        chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "-._~") else f"%{byte:02X}"
        for byte in value.encode("utf-8", "replace")
    )
