"""Requested = executed = answered, and what the execution gave: failures, repetitions, loops."""

from collections.abc import Iterator, Sequence

from evalagent.checks.calls import Call, Calls, canonical
from evalagent.checks.settings import Settings
from evalagent.model import Finding, Step, Trace

_HISTORIES = 64
"""So many model calls, the last ones, are asked whether their histories show calls of one that is not in the trace."""


def failures(calls: Calls) -> Iterator[Finding]:
    """`tool_error` and `soft_error` on each call that failed."""
    for call in calls.all:
        failure = call.failure
        if failure is None:
            continue
        code = "soft_error" if failure.soft else "tool_error"
        how = "came back without error, but says" if failure.soft else "failed"
        evidence: dict[str, object] = {
            "cause": failure.cause,
            "own_fault": failure.own_fault,
            "category": failure.category,
        }
        yield _finding(call.step, calls, code, f"`{call.step.name:.100}` {how}: {failure.text}", evidence)


def other_failures(trace: Trace) -> Iterator[Finding]:
    """`model_error` on llm steps that failed, `step_error` on other kinds; made good by a later one of the same name.

    The later one counts for an llm step if it serves the same agent, whatever its model.
    """
    good: dict[tuple[str, str | None], str] = {}
    found: list[Finding] = []
    for step in reversed(trace.steps):
        if step.kind in ("tool", "handoff"):
            continue
        key = (step.kind, step.agent if step.kind == "llm" else step.name)
        if step.error is None:
            good[key] = step.step_id
            continue
        code = "model_error" if step.kind == "llm" else "step_error"
        message = f"{step.kind} `{step.name:.100}` failed: {step.error[:300]}"
        by = good.get(key)
        if by is None:
            found.append(Finding(step.trace_id, step.step_id, code, "error", message))
        else:
            how = "a later one succeeded"
            evidence = {"recovered_by": by, "how": how}
            found.append(Finding(step.trace_id, step.step_id, code, "info", f"{message} ({how})", evidence))
    yield from reversed(found)


def _finding(step: Step, calls: Calls, code: str, message: str, evidence: dict[str, object]) -> Finding:
    repair = calls.repairs.get(step.step_id)
    if repair is None:
        return Finding(step.trace_id, step.step_id, code, "error", message, evidence)
    evidence = {**evidence, "recovered_by": repair.by, "how": repair.how}
    return Finding(step.trace_id, step.step_id, code, "info", f"{message} ({repair.how})", evidence)


def repetitions(calls: Calls, settings: Settings) -> Iterator[Finding]:
    """`repeated_failing_call` where a failed call is made again unchanged and fails alike, with nothing in between."""
    failed: dict[str, list[Call]] = {}
    turns = list(calls.user_turns)
    heard = 0
    for call in calls.all:
        while heard < len(turns) and turns[heard] <= call.position:
            # a word from the user in between is a reason to try again
            failed.clear()
            heard += 1
        if call.failure is None:
            failed.clear()
            continue
        before = failed.setdefault(call.key, [])
        alike = [b for b in before if b.failure and b.failure.text == call.failure.text and not _one_request(b, call)]
        if len(alike) >= settings.repeat_times:
            first = alike[0].step.step_id
            message = f"`{call.step.name:.100}` again with the arguments that had failed: {call.failure.text}"
            evidence: dict[str, object] = {"first": first, "times": len(alike) + 1}
            yield _finding(call.step, calls, "repeated_failing_call", message, evidence)
        before.append(call)
        del before[:-50]


def _one_request(one: Call, other: Call) -> bool:
    """Both ran for one request of the model: the code retried, not the agent."""
    return one.step.request_step is not None and (one.step.request_step, one.step.call_id) == (
        other.step.request_step,
        other.step.call_id,
    )


def loops(calls: Calls, settings: Settings) -> Iterator[Finding]:
    """`loop` where one call gave one result as often as the setting says; one each, where the repetition began.

    That is the model's step that asked for the second of these calls, or the second call where no model did.
    """
    counts: dict[tuple[str, str], list[Step]] = {}
    for call in calls.all:
        key = (call.key, canonical("", call.step.result if call.step.error is None else call.step.error))
        counts.setdefault(key, []).append(call.step)
    for steps in counts.values():
        if len(steps) < max(settings.loop_times, 2):
            continue
        again = steps[1]
        where = again.request_step if again.request_step in calls.positions else again.step_id
        yield Finding(
            again.trace_id,
            where,
            "loop",
            "warning",
            f"`{again.name:.100}` was called {len(steps)} times with the same arguments and the same result",
            {"times": len(steps), "call": again.step_id, "steps": [step.step_id for step in steps[:100]]},
        )


def lost(trace: Trace, calls: Calls) -> Iterator[Finding]:
    """`requested_not_executed` and `executed_not_requested`."""
    speaking = [s for s in trace.steps if s.kind == "llm"]
    last = max(speaking, key=lambda s: (s.start_ns, s.step_id), default=None)
    blind = max((s.start_ns for s in speaking if s.truncated), default=-1)  # their histories may have shown the result
    for step in trace.steps:
        if step.kind in ("tool", "handoff") and not step.executed and not _is_the_answer(step, last):
            if step.start_ns <= blind:
                continue
            message = f"`{step.name:.100}` was asked for; nothing ran it, and no result came back"
            evidence = {"tool": step.name, "call_id": step.call_id, "asked_by": step.request_step}
            yield Finding(step.trace_id, step.step_id, "requested_not_executed", "error", message, evidence)
    asked = {r.name for s in speaking if s.reply is not None for r in s.reply.requests}
    ids = {r.id for s in speaking if s.reply is not None for r in s.reply.requests if r.id}
    if any(s.reply is None or not s.content or s.truncated for s in speaking):
        return
    elsewhere: set[str] | None = None
    for call in calls.all:
        step = call.step
        if step.kind != "tool" or step.virtual or step.request_step is not None or step.name not in asked:
            continue
        nested = any(
            edge.via in ("retry", "link") or calls.by_id[edge.step_id].kind in ("tool", "handoff")
            for edge in step.parents
            if edge.via != "order" and edge.trace_id is None and edge.step_id in calls.by_id
        )
        if step.call_id in ids or (nested and any(e.via in ("retry", "call", "link") for e in step.parents)):
            continue
        if elsewhere is None:
            elsewhere = _asked_elsewhere(speaking)
        if canonical(step.name, call.arguments) in elsewhere:
            continue
        message = f"`{step.name:.100}` ran, and no model asked for this call"
        yield Finding(
            step.trace_id,
            step.step_id,
            "executed_not_requested",
            "error",
            message,
            {"tool": step.name, "call_id": step.call_id},
        )


def _asked_elsewhere(speaking: Sequence[Step]) -> set[str]:
    """Calls that stand in the history of a model call of the run, and that none of its model calls made: those of one
    that is not in the trace."""
    made = {canonical(r.name, r.arguments) for s in speaking if s.reply is not None for r in s.reply.requests}
    seen: set[int] = set()
    found: set[str] = set()
    for step in speaking[-_HISTORIES:]:
        for message in step.messages:
            if message.requests and id(message) not in seen:
                seen.add(id(message))
                found.update(canonical(request.name, request.arguments) for request in message.requests)
    return found - made


def _is_the_answer(step: Step, last: Step | None) -> bool:
    """Some frameworks let the model answer by a call that nothing runs: the one request of the last step."""
    return (
        last is not None
        and step.request_step == last.step_id
        and last.reply is not None
        and len(last.reply.requests) == 1
        and not last.reply.text.strip()
    )
