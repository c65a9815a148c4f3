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


def imported(sources: Iterable[str]) -> tuple[str, ...]:
    """The modules that Python sources import from outside the standard library, sorted; a source that does not parse
    and relative imports are left out. `from a.b import c` counts as `a.b`."""
    found: set[str] = set()
    for source in sources:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in _statements(tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module)
    return tuple(sorted(name for name in found if name.partition(".")[0] not in sys.stdlib_module_names))


def _statements(tree: ast.Module) -> Iterable[ast.stmt]:
    """The imports that run when the module is imported: those inside a function are its own business."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.Try):
            waiting.extend(node.body)
        elif isinstance(node, ast.With):
            waiting.extend(node.body)


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
