"""Small runs built by hand: a clerk who looks up an order, refunds it, and says so."""

from dataclasses import replace
from typing import Any

from evalagent.model import Edge, Finding, Message, Step, ToolAnswer, ToolRequest, ToolSchema, Trace

TRACE = "0" * 31 + "1"
TASK = "Please refund order 7731 in full, it arrived broken."
ORDER = {"order": "7731", "paid": "48.50", "state": "delivered"}
TOOLS = (
    ToolSchema("find_order", "Looks up an order.", {"type": "object", "properties": {"order": {"type": "string"}}}),
    ToolSchema("refund", "Pays money back.", {"type": "object", "properties": {"amount": {"type": "string"}}}),
)


def step(number: int, kind: str, name: str, **more: Any) -> Step:
    step_id = f"{number:016x}"
    parents = tuple(Edge(f"{parent:016x}", via, 1.0) for parent, via in more.pop("parents", ()))
    values = {"start_ns": number * 1_000, "end_ns": number * 1_000 + 500, "span_ids": (step_id,), **more}
    return Step(TRACE, step_id, kind=kind, name=name, parents=parents, **values)  # type: ignore[arg-type]


def refund(amount: str = "48.50", said: str = "I have refunded 48.50 for order 7731.", result: Any = None) -> Trace:
    """llm asks for the lookup, tool, llm asks for the refund, tool, llm answers."""
    system = Message("system", "You are a clerk. Refund only what was paid.")
    user = Message("user", TASK)
    asks = Message("assistant", "", (ToolRequest("call_a", "find_order", {"order": "7731"}),))
    found = Message("tool", "", answers=(ToolAnswer("call_a", "find_order", ORDER),))
    pays = Message("assistant", "", (ToolRequest("call_b", "refund", {"order": "7731", "amount": amount}),))
    outcome = {"refunded": amount} if result is None else result
    paid = Message("tool", "", answers=(ToolAnswer("call_b", "refund", outcome),))
    says = Message("assistant", said)
    heard = [system, user]
    steps = [
        step(1, "llm", "m", aspect="choose_tool", agent="clerk", tools=TOOLS, messages=tuple(heard), reply=asks),
        step(
            2,
            "tool",
            "find_order",
            parents=[(1, "call")],
            request_step=f"{1:016x}",
            arguments={"order": "7731"},
            result=ORDER,
        ),
    ]
    heard += [asks, found]
    steps.append(
        step(
            3,
            "llm",
            "m",
            aspect="fill_arguments",
            agent="clerk",
            tools=TOOLS,
            parents=[(2, "data")],
            messages=tuple(heard),
            reply=pays,
        )
    )
    steps.append(
        step(
            4,
            "tool",
            "refund",
            parents=[(3, "call")],
            request_step=f"{3:016x}",
            arguments={"order": "7731", "amount": amount},
            result=outcome,
        )
    )
    heard += [pays, paid]
    steps.append(
        step(
            5,
            "llm",
            "m",
            aspect="answer",
            agent="clerk",
            tools=TOOLS,
            parents=[(4, "data")],
            messages=tuple(heard),
            reply=says,
        )
    )
    return Trace(TRACE, tuple(steps), task=TASK, answer=said)


def finding(number: int, code: str, severity: str = "error", message: str = "seen", **more: Any) -> Finding:
    return Finding(TRACE, f"{number:016x}", code, severity, message, **more)  # type: ignore[arg-type]


def alone(only: Step, task: str | None = TASK) -> Trace:
    return Trace(TRACE, (only,), task=task)


def changed(trace: Trace, number: int, **more: Any) -> Trace:
    steps = tuple(replace(s, **more) if s.step_id == f"{number:016x}" else s for s in trace.steps)
    return replace(trace, steps=steps)
