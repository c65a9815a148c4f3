"""What a model asked for, held against the tools that were declared to it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, UnknownType, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from evalagent.checks.calls import Calls
from evalagent.model import Expectation, Finding, Json, Step, ToolRequest, ToolSchema, Trace

_MAX_REFERENCES = 2_000
_MAX_UNIQUE = 1_000
_UNUSABLE = (
    SchemaError,
    UnknownType,
    Unresolvable,
    RecursionError,
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    re.error,
)


class _TooMuch(ValueError):
    """A schema whose references multiply without end."""


def undeclared_and_malformed(trace: Trace, expectation: Expectation, calls: Calls) -> Iterator[Finding]:
    """`unknown_tool` and `argument_schema` on the llm steps that asked; on the call itself where no model did."""
    tools = _Tools(trace, expectation)
    answered = {(s.request_step, s.call_id or s.name): s for s in trace.steps if s.kind in ("tool", "handoff")}
    for step in trace.steps:
        if step.kind == "llm" and step.reply is not None:
            for request in step.reply.requests:
                call = answered.get((step.step_id, request.id or request.name))
                if call is None or call.kind != "handoff":
                    yield from (_softened(finding, call, calls) for finding in _judge(step, request, tools))
        elif step.kind == "tool" and step.request_step is None and step.executed and not step.truncated:
            schema = tools.by_name.get(step.name)
            fault = tools.fault(schema, step.arguments, whole=False) if step.arguments is not None else None
            if fault:
                yield _malformed(step, step.name, step.step_id, fault)


def _softened(finding: Finding, call: Step | None, calls: Calls) -> Finding:
    """A bad request that was turned down and then put right is no longer held against the run."""
    repair = calls.repairs.get(call.step_id) if call is not None else None
    if repair is None:
        return finding
    evidence = {**finding.evidence, "recovered_by": repair.by, "how": repair.how}
    return replace(finding, severity="info", evidence=evidence)


def _judge(step: Step, request: ToolRequest, tools: "_Tools") -> Iterator[Finding]:
    known = tools.known(step)
    if known and not tools.knows(request.name) and not step.truncated:
        yield Finding(
            step.trace_id,
            step.step_id,
            "unknown_tool",
            "error",
            f"asks for `{request.name:.100}`, which is not among the {len(known)} tools declared",
            {"tool": request.name, "declared": sorted(known)[:50]},
        )
        return
    if request.truncated or request.arguments is None:
        return
    schema = next((t for t in step.tools if t.name == request.name), None) or tools.by_name.get(request.name)
    fault = tools.fault(schema, request.arguments, whole=True)
    if fault:
        yield _malformed(step, request.name, request.id, fault)


def _malformed(step: Step, tool: str, call_id: str | None, fault: tuple[str, str]) -> Finding:
    where, what = fault
    message = (
        f"`{tool:.100}` called with arguments that break its schema" + (f" at `{where}`" if where else "") + f": {what}"
    )
    evidence = {"tool": tool, "call_id": call_id, "at": where, "fault": what}
    return Finding(step.trace_id, step.step_id, "argument_schema", "error", message, evidence)


@dataclass(slots=True)
class _Tools:
    """The declared tools of a trace, each schema compiled once."""

    trace: Trace
    expectation: Expectation
    by_name: dict[str, ToolSchema] = field(default_factory=dict)
    compiled: dict[int, "_Guarded | None"] = field(default_factory=dict)
    said: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        lists: set[int] = set()
        for step in self.trace.steps:
            if step.tools and id(step.tools) not in lists:
                lists.add(id(step.tools))
                for tool in step.tools:
                    self.by_name.setdefault(tool.name, tool)
        for tool in self.expectation.tools:
            if tool.name not in self.by_name or self.by_name[tool.name].parameters is None:
                self.by_name[tool.name] = tool
        self.agents = frozenset(
            {c.name for c in self.trace.containers if c.kind == "agent"}
            | {s.agent for s in self.trace.steps if s.agent}
        )
        self.said = frozenset(tool.name for tool in self.expectation.tools)

    def known(self, step: Step) -> frozenset[str]:
        """The tools that a request of this step may name; empty where none were declared to it."""
        return frozenset(tool.name for tool in step.tools) | self.said

    def knows(self, name: str) -> bool:
        """A tool declared anywhere in the run is known: what each call declares is not always captured whole.

        So is an agent of the run, which some frameworks let a model call by its name.
        """
        return name in self.by_name or name.split(".", 1)[-1] in self.by_name or name in self.agents

    def fault(self, schema: ToolSchema | None, arguments: Json, *, whole: bool) -> tuple[str, str] | None:
        """Place and nature of the first fault; None if there is none or nothing can be said.

        `whole` False: the arguments are those of the running tool, where frameworks add their own.
        """
        if (
            schema is None
            or not schema.parameters
            or schema.parameters.get("type", "object") not in ("object", "OBJECT")
        ):
            return None
        if isinstance(arguments, str):
            if arguments.strip():
                return ("", f"not a JSON object: {arguments[:80]!r}") if whole else None
            arguments = {}
        value = {} if arguments is None else arguments
        if id(schema) not in self.compiled:
            self.compiled[id(schema)] = _validator(schema.parameters)
        guarded = self.compiled[id(schema)]
        if guarded is None:
            return None
        guarded.spent[0] = 0
        if isinstance(value, Mapping):
            needed = schema.parameters.get("required")
            needed = needed if isinstance(needed, list) else []
            # many models write null for an optional argument that they leave out
            value = {key: item for key, item in value.items() if item is not None or key in needed}
            if not whole:
                listed = schema.parameters.get("properties")
                value = {key: item for key, item in value.items() if isinstance(listed, Mapping) and key in listed}
        try:
            first = next(iter(guarded.validator.iter_errors(value)), None)
        except _UNUSABLE:
            return None
        return None if first is None else _told(first)


def _told(error: ValidationError) -> tuple[str, str]:
    return ".".join(map(str, error.absolute_path))[:200], str(error.message)[:300]


@dataclass(frozen=True, slots=True)
class _Guarded:
    validator: Any
    spent: list[int]
    """References followed in the validation at hand."""


def _validator(parameters: Mapping[str, Json]) -> _Guarded | None:
    """A validator that never reaches out, never runs a pattern and never expands without end; None if unusable.

    Patterns of a trace are not run: one made to be slow would hold up everything.
    """
    try:
        plain = orjson.loads(orjson.dumps(parameters))
        schema = _lower_types(plain)
        if "patternProperties" in orjson.dumps(schema).decode():
            return None
        Draft202012Validator.check_schema(schema)
    except _UNUSABLE:
        return None
    spent = [0]

    def reference(validator: Any, target: Any, instance: Any, within: Any) -> Iterator[ValidationError]:
        spent[0] += 1
        if spent[0] > _MAX_REFERENCES:
            raise _TooMuch(target)
        yield from validator._validate_reference(ref=target, instance=instance)

    def unique(validator: Any, wanted: Any, instance: Any, within: Any) -> Iterator[ValidationError]:
        if isinstance(instance, list) and len(instance) <= _MAX_UNIQUE:
            yield from Draft202012Validator.VALIDATORS["uniqueItems"](validator, wanted, instance, within) or ()

    def nothing(*_: Any) -> Iterator[ValidationError]:
        return iter(())

    guarded = {"$ref": reference, "$dynamicRef": nothing, "pattern": nothing, "uniqueItems": unique}
    extended = validators.extend(Draft202012Validator, guarded)  # type: ignore[no-untyped-call]
    return _Guarded(extended(schema, registry=Registry()), spent)


def _lower_types(schema: Json) -> Json:
    """Some providers write `STRING` where JSON Schema says `string`; no recursion."""
    todo = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if isinstance(item.get("type"), str):
                item["type"] = item["type"].lower()
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    return schema
