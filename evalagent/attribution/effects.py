"""From the end state back to the steps: which call wrote what should not be there, and who let down what is missing."""

from collections.abc import Mapping, Sequence

from evalagent.attribution.overreach import Culprit, Made, culprits
from evalagent.attribution.writers import Index, Writer, key_marks, read_index
from evalagent.checks.marks import whole
from evalagent.model import ExpectedChange, Finding, Json, Outcome, Trace, WorldChange


def responsible_steps(trace: Trace, outcome: Outcome) -> Mapping[int, str]:
    """Place in `outcome.unexpected` -> id of the tool step that made that change; what nothing explains, or several
    calls as well, is absent."""
    index = read_index(trace)
    found = culprits(index, outcome, index.writers(outcome))
    return {at: culprit.call.step_id for at, culprit in enumerate(found) if culprit.call is not None}


def findings_from_outcome(trace: Trace, outcome: Outcome) -> tuple[Finding, ...]:
    """`unexpected_change` and `missing_change` of a graded end state, each on the step that answers for it.

    Unexpected: the model's step that asked for the call that wrote it (of several calls alike the one that no expected
    change accounts for). The call itself where no model asked, where its arguments ask for another row and not for
    this one (own_fault yes: the tool did more than it was asked to), or where weaker evidence than values shows it.
    Step None where nothing in the trace explains it, or several calls as well: then those are the `candidates`.
    Missing: the call that tried and failed for good, or was never run; else the model's step that chose the wrong value
    or row which was then written in its place; else the step that gave the final answer.
    """
    if outcome.verdict == "not_judged":
        return ()
    index = read_index(trace)
    writers = index.writers(outcome)
    made = culprits(index, outcome, writers)
    found = [_unexpected(trace, change, by, index) for change, by in zip(outcome.unexpected, made, strict=True)]
    written = list(zip(outcome.unexpected, writers, strict=True))
    found += [_missing(trace, wanted, written, index) for wanted in outcome.expected if not wanted.met]
    return tuple(found)


def _unexpected(trace: Trace, change: WorldChange, made: Culprit, index: Index) -> Finding:
    columns = sorted({*(change.before or {}), *(change.after or {})})
    shown = _shown(change.table, change.key, change.change, columns) + " was not expected"
    evidence: dict[str, Json] = {"table": change.table, "key": change.key, "change": change.change, "columns": columns}

    def finding(step: str | None, why: str, **more: Json) -> Finding:
        return Finding(
            trace.trace_id, step, "unexpected_change", "error", f"{shown}{why}", {**evidence, **more, "by": made.basis}
        )

    call = made.call
    if call is None:
        if not made.calls:
            return finding(None, ", and no call in the trace explains it")
        names = [f"`{c.name:.80}` (step {c.step_id})" for c in made.calls[:5]]
        more = f" and {len(made.calls) - 5} more" if len(made.calls) > 5 else ""
        why = f"; which call made it is not certain: {', '.join(names)}{more} are equally likely"
        return finding(None, why, candidates=[c.step_id for c in made.calls])
    who = f"`{call.name:.80}` (step {call.step_id})"
    if made.asked is not None:
        return finding(
            call.step_id,
            _beyond(who, made, made.asked),
            call=call.step_id,
            own_fault="yes",
            category="F27",
            beyond=True,
        )
    if made.basis == "only_call":
        why = f"; no value in the trace shows what made it, and {who} is the only call"
        return finding(call.step_id, why, call=call.step_id, own_fault="unknown", category="F27")
    wrote = (key_marks(change.table, change.key) | whole(change.after)) & whole(index.calls.asked.arguments(call))
    fault = "yes" if made.repeated else index.own_fault(call, wrote)
    again = ", after a call like it had made the expected one" if made.repeated else ""
    return finding(index.asker(call), f"; {who} made it{again}", call=call.step_id, own_fault=fault)


def _beyond(who: str, made: Culprit, asked: Made) -> str:
    """That a tool did more than it was asked to, and how that is known."""
    what = _shown(asked.table, asked.key, asked.change, sorted(asked.columns))
    other = f"{'the expected' if asked.expected else 'the'} {what}"
    if made.basis == "values":
        return f"; {who} made it and did more than it was asked to, which was {other}"
    known = "it is the only call, and made" if made.basis == "only_call" else "no call asks for it, and this one made"
    return f"; {who} did more than it was asked to: {known} {other}"


def _missing(
    trace: Trace, wanted: ExpectedChange, writers: Sequence[tuple[WorldChange, Writer | None]], index: Index
) -> Finding:
    said = wanted.change
    what = next((name for name in ("set", "insert", "delete") if said.get(name)), "change")
    table, key = str(said.get("table", "")), said.get("key")
    values = said.get(what) if isinstance(said.get(what), Mapping) else {}
    shown = f"{what} of {table}" + (f" {_show(key)}" if key is not None else "")
    evidence: dict[str, Json] = {"table": table, "key": key, "change": what, "columns": sorted(map(str, values or {}))}

    def finding(step: str | None, why: str, **more: Json) -> Finding:
        message = f"{shown} was expected and is missing ({wanted.reason:.200}); {why}"
        return Finding(trace.trace_id, step, "missing_change", "error", message, {**evidence, **more})

    tried = index.tried(table, key, values or {})
    if tried is not None:
        if not tried.executed:
            return finding(
                tried.step_id, f"`{tried.name:.80}` was asked for and never ran", category="F26", own_fault="yes"
            )
        return finding(tried.step_id, f"`{tried.name:.80}` failed for good", own_fault="unknown")
    instead = _instead(table, key, values or {}, writers)
    if instead is not None:
        return finding(**_chosen(instead[0], instead[1], key, values or {}, index))
    if index.answering is not None:
        why = "no call of the run tried it, and the answer was given without it"
        return finding(index.answering.step_id, why, category="F15", own_fault="yes")
    return finding(None, "nothing in the trace tried it")


def _instead(
    table: str, key: Json, values: Mapping[str, Json], writers: Sequence[tuple[WorldChange, Writer | None]]
) -> tuple[WorldChange, Writer] | None:
    """What was written to the wanted row, or to another row of its table with wanted values or in its place."""
    near = [(change, writer) for change, writer in writers if writer is not None and change.table == table]
    marks = whole(key) if key is not None else frozenset()
    for change, writer in near:
        if marks and marks == whole(change.key):
            return change, writer
    wanted = whole(values)
    for change, writer in near:
        if wanted & whole(change.after):
            return change, writer
    return next(((c, w) for c, w in near if key is None and c.change == "insert"), None)


def _chosen(
    change: WorldChange, writer: Writer, key: Json, values: Mapping[str, Json], index: Index
) -> dict[str, Json]:
    """The step that chose the wrong row or value: the one that asked for the write, or for a call before it."""
    after = change.after or {}
    right = whole(values) | (whole(key) if key is not None else frozenset())
    wrong = whole({name: after[name] for name in values if name in after})
    if key is not None:
        wrong |= whole(change.key)
    right, wrong = right - wrong, wrong - right
    call = writer.step
    first = index.picked(call, wrong, right)
    why = f"`{call.name:.80}` wrote something else"
    if first is not None and index.asker(first) != index.asker(call):
        why += f", and what it went by was chosen for `{first.name:.80}` (step {first.step_id})"
    else:
        first = call
    fault = index.own_fault(first, wrong & whole(index.calls.asked.arguments(first)))
    return {"step": index.asker(first), "why": why, "category": "F18", "call": call.step_id, "own_fault": fault}


def _shown(table: str, key: Json, change: str, columns: Sequence[str]) -> str:
    shown = f"{change} of {table}" + (f" {_show(key)}" if key is not None else "")
    return f"{shown} ({', '.join(columns[:8])})" if change == "update" else shown


def _show(key: Json) -> str:
    return ", ".join(f"{k}={v}" for k, v in key.items())[:100] if isinstance(key, Mapping) else str(key)[:100]
