"""Work grows with the input and no faster: counted in steps of the interpreter, not in seconds."""

import json
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest

from evalagent.model import Json, Span
from evalagent.traces.building import build
from tests.traces.loans import span
from tests.traces.spans import AGENT, answers, asks, chat, said

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}


def work(spans: Sequence[Span]) -> int:
    """Bytecodes that building takes."""
    done = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal done
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        done += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        build(spans)
    finally:
        sys.settrace(before)
    return done


def ran(number: int, parent: int, start: float, end: float, **more: Json) -> Span:
    attributes = {f"gen_ai.tool.call.{key}": value for key, value in more.items()}
    return span(number, parent, "execute_tool look", start, end, TOOL | attributes)


def root(end: float) -> Span:
    return span(1, None, "invoke_agent a", 0, end, AGENT)


def chain(turns: int) -> list[Span]:
    """Model and tool in turn; a history of the last exchange only."""
    spans, last = [root(10 * turns)], [said("begin", "user")]
    for turn in range(turns):
        call = asks((f"c{turn}", "look", {"turn": turn}))
        spans.append(chat(2 * turn + 2, 1, 10 * turn + 1, 10 * turn + 2, last, call))
        spans.append(ran(2 * turn + 3, 1, 10 * turn + 3, 10 * turn + 4, id=f"c{turn}", result=f"result of turn {turn}"))
        last = [said("begin", "user"), call, answers((f"c{turn}", f"result of turn {turn}"))]
    return spans


def repeated(turns: int) -> list[Span]:
    """Each call repeats all earlier messages."""
    spans, history = [root(10 * turns)], [said("a prompt that stands before all", "system"), said("begin", "user")]
    for turn in range(turns):
        reply = said(f"an answer of its own to question {turn}")
        spans.append(chat(turn + 2, 1, 10 * turn + 1, 10 * turn + 2, history, reply))
        history = [*history, reply, said(f"and what of number {turn}?", "user")]
    return spans


def wide(calls: int) -> list[Span]:
    """One reply with all calls, one input with all results."""
    asked = asks(*((f"c{n}", "look", {"n": n}) for n in range(calls)))
    given = [said("begin", "user"), asked, *(answers((f"c{n}", f"result number {n}")) for n in range(calls))]
    spans = [
        root(calls + 20),
        chat(2, 1, 1, 2, given[:1], asked),
        chat(3, 1, calls + 10, calls + 11, given, said("so")),
    ]
    return [*spans, *(ran(n + 10, 1, n + 3, n + 4, id=f"c{n}", result=f"result number {n}") for n in range(calls))]


def unseen(calls: int) -> list[Span]:
    """The same without spans of the tools."""
    return wide(calls)[:3]


def unnamed(calls: int) -> list[Span]:
    """Equal calls of one tool, none with an id."""
    asked = asks(*((None, "look", {"n": 1}) for _ in range(calls)))
    given = [said("begin", "user"), asked, *(answers((None, f"{n:04} is what was found")) for n in range(calls))]
    spans = [
        root(calls + 20),
        chat(2, 1, 1, 2, given[:1], asked),
        chat(3, 1, calls + 10, calls + 11, given, said("so")),
    ]
    arguments = json.dumps({"n": 1})
    return [*spans, *(ran(n + 10, 1, n + 3, n + 4, arguments=arguments) for n in range(calls))]


def deep(levels: int) -> list[Span]:
    """Containers in containers, a model call in every tenth."""
    spans = [span(n + 1, n or None, "invoke_agent", n, 9 * levels - n, AGENT) for n in range(levels)]
    for n in range(0, levels, 10):
        at = 2 * levels + n
        spans.append(chat(10_000 + n, n + 1, at, at + 1, [said(f"do number {n}", "user")], said(f"did thing {n} then")))
    return spans


def beside(agents: int) -> list[Span]:
    """Tools all open at once, and an agent beside each."""
    spans = [root(9 * agents), chat(2, 1, 1, 2, [], None)]
    for n in range(agents):
        spans.append(ran(3 * n + 3, 1, n + 3, 4 * agents + n))
        spans.append(span(3 * n + 4, 1, f"invoke_agent b{n}", n + 3.5, 4 * agents, AGENT))
        spans.append(chat(3 * n + 5, 3 * n + 4, n + 3.6, n + 3.7, [], None))
    return spans


def silent(turns: int) -> list[Span]:
    """No contents at all."""
    spans = [root(10 * turns)]
    for n in range(turns):
        spans += [chat(2 * n + 2, 1, 10 * n, 10 * n + 1, [], None), ran(2 * n + 3, 1, 10 * n + 2, 10 * n + 3)]
    return spans


def session(traces: int) -> list[Span]:
    """A conversation, each turn of it a trace of its own that is given the last few messages."""
    spans, history = [], [said("hello", "user")]
    for n in range(traces):
        reply, trace = said(f"answer number {n} of the conversation"), f"{n + 1:032x}"
        about = AGENT | {"gen_ai.conversation.id": "one"}
        spans.append(span(2 * n + 1, None, "invoke_agent a", 10 * n, 10 * n + 2, about, trace=trace))
        spans.append(chat(2 * n + 2, 2 * n + 1, 10 * n, 10 * n + 1, history[-6:], reply, trace=trace))
        history += [reply, said(f"question number {n} is this", "user")]
    return spans


def quoting(calls: int) -> list[Span]:
    """A chain whose later half quotes its earlier one, the last first."""
    spans, texts = [root(10 * calls)], ["what to begin with"]
    for n in range(calls):
        far = texts[calls - n] if n > calls // 2 else f"start with number {n}"
        given = [said(f"recall: {far}", "user"), said(texts[-1], "user")]
        texts.append(f"number {n} was answered by this")
        spans.append(chat(n + 2, 1, 10 * n + 1, 10 * n + 2, given, said(texts[-1])))
    return spans


@pytest.mark.parametrize(
    "shape",
    [chain, repeated, wide, unseen, unnamed, deep, beside, silent, session, quoting],
    ids=lambda shape: shape.__name__,
)
def test_twice_the_input_is_twice_the_work(shape: Callable[[int], list[Span]]) -> None:
    work(shape(10))  # what is remembered from trace to trace is learnt
    once, twice, fourfold = (work(shape(size)) for size in (40, 80, 160))
    assert fourfold - twice <= 2.1 * (twice - once)
