"""The final answer, held against what was done and against what it must say."""

from collections.abc import Iterator

from evalagent.checks.calls import Call, Calls, leaves
from evalagent.checks.sightings import squeezed
from evalagent.checks.values import number_of, stated
from evalagent.checks.wording import admits, asks, claims
from evalagent.model import Expectation, Finding, Json, Step, Trace

_READ = 20_000
"""So much of an answer is read for what it claims."""
_BROKEN = 50
"""So many broken calls, the last ones, are looked for in it."""


def answer_findings(trace: Trace, expectation: Expectation, calls: Calls) -> Iterator[Finding]:
    """`empty_answer`, `false_success` and `missing_value`."""
    yield from _empty(trace)
    yield from _false_success(trace, calls)
    yield from _missing_values(trace, expectation, calls)


def _empty(trace: Trace) -> Iterator[Finding]:
    speaking = [s for s in trace.steps if s.kind == "llm"]
    if not speaking or (trace.answer or "").strip():
        return
    last = max(speaking, key=lambda s: (s.start_ns, s.step_id))
    if not last.content or last.truncated or last.reply is None or last.error is not None:
        return
    if not last.reply.text.strip() and not last.reply.requests:
        yield Finding(trace.trace_id, last.step_id, "empty_answer", "error", "the run ends with an empty answer")


def _false_success(trace: Trace, calls: Calls) -> Iterator[Finding]:
    """A call failed or never ran, nothing made it good, and the answer claims it without a word of that."""
    step = calls.answering
    text = _final_text(trace, step)[:_READ]
    if step is None or not text or admits(text) or asks(text):
        return
    at = calls.positions[step.step_id]
    broken: list[Step] = [call.step for call in calls.unrepaired() if call.position < at]
    broken += [
        s for s in trace.steps if s.kind in ("tool", "handoff") and not s.executed and calls.positions[s.step_id] < at
    ]
    if not broken:
        return
    named = [s for s in broken[-_BROKEN:] if _mentions(text, s)]
    if not (named or claims(text)):
        return
    decisive = (named or broken)[-1]
    if not named and not _decisive(decisive, calls, at):
        return
    what = "failed" if decisive.executed else "never ran"
    message = f"the answer tells of success, and `{decisive.name:.80}` (step {decisive.step_id}) {what}"
    evidence = {"call": decisive.step_id, "claim": text[:300]}
    yield Finding(trace.trace_id, step.step_id, "false_success", "error", message, evidence)


def _decisive(broken: Step, calls: Calls, at: int) -> bool:
    """A claim that names nothing is about the last thing done: no call after the broken one succeeded."""
    mine = calls.positions[broken.step_id]
    later: list[Call] = [c for c in calls.all if mine < c.position < at and c.failure is None]
    return not later


def _mentions(text: str, call: Step) -> bool:
    """Whether the answer names something that the call was about: an id or a number among its arguments."""
    plain = squeezed(text)
    for _, value in leaves(call.arguments):
        if isinstance(value, str) and any(c.isdigit() for c in value) and len(squeezed(value)) >= 3:
            if squeezed(value) in plain:
                return True
        elif number_of(value) is not None and len(str(value)) >= 3 and stated(value, text):
            return True
    return False


def _final_text(trace: Trace, step: Step | None) -> str:
    if step is not None and step.reply is not None:
        return step.reply.text
    return trace.answer or ""


def _missing_values(trace: Trace, expectation: Expectation, calls: Calls) -> Iterator[Finding]:
    """Every value that the case wants said, looked for in all that the answering agent said to the user."""
    if not expectation.reply_values:
        return
    step = calls.answering
    said = [trace.answer or ""]
    said += [
        s.reply.text
        for s in trace.steps
        if s.kind == "llm"
        and s.reply is not None
        and not s.reply.requests
        and (step is None or s.agent == step.agent)
        and (len(calls.user_turns) > 1 or s is step)
    ]
    text = "\n".join(dict.fromkeys(part for part in said if part))
    if not text and any(s.kind == "llm" and (not s.content or s.reply is None) for s in trace.steps):
        return
    for value in expectation.reply_values:
        if not stated(value, text):
            message = f"the answer does not state {_shown(value)}"
            yield Finding(
                trace.trace_id, step.step_id if step else None, "missing_value", "error", message, {"value": value}
            )


def _shown(value: Json) -> str:
    return repr(value)[:120]
