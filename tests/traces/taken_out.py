"""A model of what AWS's distribution of OpenTelemetry does to a span: what was said moves into a log record.

Written from observation of its 0.21; the readers know nothing of this file.
"""

import re
from dataclasses import replace

from evalagent.model import Json, LogRecord, Span

_WHOLE = {
    "traceloop.entity.input": ("user", "in"), "traceloop.entity.output": ("assistant", "out"),
    "gen_ai.prompt": ("user", "in"), "gen_ai.completion": ("assistant", "out"),
    "input.value": ("user", "in"), "output.value": ("assistant", "out"),
    "gen_ai.input.messages": ("user", "in"), "gen_ai.output.messages": ("assistant", "out"),
    "gen_ai.system_instructions": ("system", "in"),
    "gen_ai.user.message": ("user", "in"), "gen_ai.assistant.message": ("assistant", "out"),
    "gen_ai.system.message": ("system", "in"), "gen_ai.tool.message": ("tool", "in"),
    "gen_ai.choice": ("assistant", "out"),
}  # fmt: skip
_NUMBERED = {
    r"gen_ai\.completion\.(\d+)\.content": "assistant",
    r"gen_ai\.prompt\.(\d+)\.content": None,
    r"llm\.input_messages\.(\d+)\.message\.content": "user",
    r"llm\.output_messages\.(\d+)\.message\.content": "assistant",
}
"""Pattern → the role that is written; None: the one that stands beside the content."""


def taken_out(span: Span) -> tuple[Span, list[LogRecord]]:
    """The span as it is exported, and the log record that goes with it."""
    told: dict[str, Json] = dict(span.attributes)
    for event in span.events:
        if event.name in _WHOLE:
            told[event.name] = dict(event.attributes)  # the last of a name is left
    said = [(_WHOLE[key], value) for key, value in told.items() if key in _WHOLE]
    gone = {key for key in told if key in _WHOLE}
    for pattern, role in _NUMBERED.items():
        numbered = {int(match[1]): key for key in told if (match := re.fullmatch(pattern, key))}
        for _, key in sorted(numbered.items()):
            own = role or str(told[key.removesuffix("content") + "role"])
            said.append(((own, "in"), told[key]))
            gone.add(key)
    if not said:
        return span, []
    sides: dict[str, list[Json]] = {"in": [], "out": []}
    for (role, side), value in said:
        side = "in" if role in ("system", "user") else "out" if role == "assistant" else side
        sides[side].append({"role": role, "content": value})
    body = {name: {"messages": sides[side]} for name, side in (("input", "in"), ("output", "out")) if sides[side]}
    bare = replace(
        span,
        attributes={key: value for key, value in span.attributes.items() if key not in gone},
        events=tuple(event for event in span.events if event.name not in _WHOLE),
    )
    name = {"event.name": span.scope}
    return bare, [LogRecord(span.trace_id, span.span_id, span.end_ns or 0, span.scope, body, name)]
