"""What a case expects of the calls and of the path, held against the trace."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from evalagent.checks.calls import Call, Calls
from evalagent.checks.marks import Origins, read_origins, whole
from evalagent.errors import UsageError
from evalagent.model import Expectation, Finding, Json, Step, Trace

_MODES = ("strict", "unordered", "subset", "superset")


def expectation_findings(trace: Trace, expectation: Expectation, calls: Calls) -> Iterator[Finding]:
    """`forbidden_tool`, `needless_tool`, `missing_tool`, `wrong_argument_value`, `path_mismatch`, `wrong_agent`."""
    forbidden = set(expectation.forbidden_tools)
    origins = read_origins(trace, calls) if forbidden or expectation.wanted_tools else Origins(frozenset())
    for at, step in enumerate(trace.steps):
        if step.kind not in ("tool", "handoff"):
            continue
        if step.name in forbidden:
            message = f"`{step.name:.80}` was used, and the case forbids it"
            fault = "unknown" if origins.inherited(whole(calls.asked.arguments(step)), at) else "yes"
            yield _asked(step, calls, "forbidden_tool", message, own_fault=fault)
        if expectation.no_tools and step.kind == "tool":
            yield _asked(step, calls, "needless_tool", f"`{step.name:.80}` was used, and the case needs no tool")
    yield from _wanted(trace, expectation, calls, origins)
    if expectation.path is not None:
        yield from _path(trace, expectation.path, calls)


def _asked(step: Step, calls: Calls, code: str, message: str, **more: Json) -> Finding:
    """On the model's step that chose the call; on the call where no model did."""
    where = step.request_step if step.request_step in calls.positions else step.step_id
    return Finding(step.trace_id, where, code, "error", message, {"tool": step.name, "call": step.step_id, **more})


def _wanted(trace: Trace, expectation: Expectation, calls: Calls, origins: Origins) -> Iterator[Finding]:
    """Each expected call takes one successful call that fits; what is left over is wrong or missing.

    A call that failed may have been asked for with the wrong values, but does not stand for the right ones.
    """
    if any(s.kind == "llm" and not s.content for s in trace.steps) and not calls.all:
        return
    free: dict[str, list[Call]] = {}
    failed: dict[str, list[Call]] = {}
    for call in calls.all:
        (free if call.failure is None else failed).setdefault(call.step.name, []).append(call)
    open_: list[tuple[str, Mapping[str, Json]]] = []
    for name, arguments in sorted(expectation.wanted_tools, key=lambda w: -len(w[1] or ())):
        some = free.get(name, [])
        hit = next((call for call in some if not _faults(arguments or {}, call.arguments)), None)
        if hit is not None:
            some.remove(hit)
        else:
            open_.append((name, arguments or {}))
    for name, arguments in open_:
        tried = failed.get(name, [])
        some = free.get(name) or ([] if any(not _faults(arguments, call.arguments) for call in tried) else tried)
        if not some:
            how = "was called and failed each time" if tried else "was never called"
            yield Finding(
                trace.trace_id,
                None,
                "missing_tool",
                "error",
                f"`{name:.80}` was expected and {how}",
                {"tool": name, "arguments": dict(arguments)},
            )
            continue
        nearest = min(some, key=lambda call: len(_faults(arguments, call.arguments)))
        some.remove(nearest)
        if isinstance(nearest.arguments, Mapping):
            yield from _wrong_values(name, arguments, nearest, calls, origins)


def _wrong_values(
    name: str, wanted: Mapping[str, Json], call: Call, calls: Calls, origins: Origins
) -> Iterator[Finding]:
    """On the step that asked for the call, and on the one that had picked its wrong value for an earlier call."""
    faults = _faults(wanted, call.arguments)
    right = {key: wanted[key] for key in faults}
    wrong = {key: call.arguments[key] for key in faults if key in call.arguments}
    fault = "unknown" if origins.inherited(whole(wrong), call.position) else "yes"
    shown = ", ".join(f"{key} should be {right[key]!r:.60}" for key in faults[:3])
    message = f"`{name:.80}` was called with other values than expected: {shown}"
    yield _asked(call.step, calls, "wrong_argument_value", message, arguments=right, own_fault=fault)
    at = origins.picked(whole(wrong), whole(right), call.position)
    first = next((c.step for c in calls.all if c.position == at), None) if at is not None else None
    if first is not None and (first.request_step is None or first.request_step != call.step.request_step):
        message = f"`{first.name:.80}` was called with a value that `{name:.80}` then had as well, where {shown}"
        fault = "unknown" if origins.inherited(whole(wrong), calls.positions[first.step_id]) else "yes"
        more = {"arguments": right, "own_fault": fault, "led_to": call.step.step_id}
        yield _asked(first, calls, "wrong_argument_value", message, **more)


def _faults(wanted: Mapping[str, Json], given: Json) -> list[str]:
    """The expected arguments that a call does not have."""
    if not isinstance(given, Mapping):
        return sorted(wanted)
    return [key for key in sorted(wanted) if key not in given or not _equal(wanted[key], given[key])]


def _equal(one: Json, other: Json) -> bool:
    """Typed equality at any depth: 25 = 25.0, and neither is "25" or true; texts without outer spaces; no recursion."""
    todo = [(one, other)]
    while todo:
        a, b = todo.pop()
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            if set(a) != set(b):
                return False
            todo.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            todo.extend(zip(a, b, strict=True))
        elif isinstance(a, str) and isinstance(b, str):
            if a.strip() != b.strip():
                return False
        elif isinstance(a, bool) != isinstance(b, bool) or a != b:
            return False
    return True


def _path(trace: Trace, path: Json, calls: Calls) -> Iterator[Finding]:
    mode, nodes = read_path(path)
    visited, kind = _visited(trace, nodes)
    if not visited:
        return
    wrong = {
        "strict": visited != nodes,
        "unordered": Counter(visited) != Counter(nodes),
        "subset": not set(visited) <= set(nodes),
        "superset": bool(Counter(nodes) - Counter(visited)),
    }[mode]
    if wrong:
        message = f"the run went {' → '.join(visited[:12])}; expected ({mode}): {' → '.join(nodes[:12])}"
        evidence = {"mode": mode, "expected": nodes, "visited": visited[:200], "by": kind}
        yield Finding(trace.trace_id, None, "path_mismatch", "error", message, evidence)
    if kind == "agent" and mode != "superset":
        for step in trace.steps:
            if step.kind == "handoff" and step.executed and step.name not in nodes and step.name in visited:
                yield _asked(
                    step, calls, "wrong_agent", f"the work went to `{step.name:.80}`, which the case does not foresee"
                )


def read_path(path: Json) -> tuple[str, list[str]]:
    """Mode and nodes of a case's `path`; UsageError names what is wrong with it."""
    mode, nodes = "strict", path
    if isinstance(path, Mapping):
        unknown = sorted(set(path) - {"mode", "nodes"})
        if unknown:
            raise UsageError("no such part; known are mode, nodes", key=f"expected.path.{unknown[0]}")
        mode, nodes = path.get("mode", "strict"), path.get("nodes")
    if mode not in _MODES:
        raise UsageError(f"expected one of {', '.join(_MODES)} (got {mode!r:.60})", key="expected.path.mode")
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, str) for node in nodes):
        raise UsageError("expected a list of node names", key="expected.path.nodes")
    return mode, nodes


def _visited(trace: Trace, nodes: Sequence[str]) -> tuple[list[str], str]:
    """The names the run passed through, without repeats in a row: graph nodes, else agents, else tools."""
    by_time = sorted(trace.steps, key=lambda s: s.start_ns)  # what began at one moment stays as it was asked for
    ways = {
        "node": [s.node for s in by_time if s.node],
        "agent": [s.agent for s in by_time if s.agent],
        "tool": [s.name for s in by_time if s.kind == "tool" and s.executed],
    }
    known = set(nodes)
    kind = next((k for k, names in ways.items() if known & set(names)), None) or next(
        (k for k, n in ways.items() if n), "node"
    )
    names = ways[kind]
    return [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name], kind
