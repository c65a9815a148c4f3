"""From the end state back to the steps: which call wrote what should not be there, and who let down what is missing.

By evidence alone: a call answers for a change when its arguments or its result hold the row's key and the changed
values. The index over all calls is built once; each change then looks up its own few values.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evalagent.checks.calls import leaves
from evalagent.checks.failures import failure_of
from evalagent.model import ExpectedChange, Finding, Json, Outcome, Step, Trace, WorldChange

_MANY = 200
"""A value that stands in more calls than this tells nothing apart; only the first so many are weighed."""
_LONG = 2_000
_PIECES = re.compile(r"[^\s,;|(){}\[\]<>\"'=]+")


def responsible_steps(trace: Trace, outcome: Outcome) -> Mapping[int, str]:
    """Place in `outcome.unexpected` -> id of the tool step that made that change; what nothing explains is absent."""
    index = _index(trace)
    found = {at: index.writer(change) for at, change in enumerate(outcome.unexpected)}
    return {at: step.step_id for at, step in found.items() if step is not None}


def findings_from_outcome(trace: Trace, outcome: Outcome) -> tuple[Finding, ...]:
    """`unexpected_change` and `missing_change` of a graded end state, each on the step that answers for it.

    Unexpected: the model's step that asked for the call that wrote it; the call itself where no model asked; step None
    where nothing in the trace explains it. Missing: the call that tried and failed for good, or was never run; else the
    model's step that wrote something else in its place; else the step that gave the final answer.
    """
    if outcome.verdict == "not_judged":
        return ()
    index = _index(trace)
    writers = [(change, index.writer(change)) for change in outcome.unexpected]
    found = [_unexpected(trace, change, writer, index) for change, writer in writers]
    found += [_missing(trace, wanted, writers, index) for wanted in outcome.expected if not wanted.met]
    return tuple(found)


def _unexpected(trace: Trace, change: WorldChange, writer: Step | None, index: "_Index") -> Finding:
    columns = sorted({*(change.before or {}), *(change.after or {})})
    shown = f"{change.change} of {change.table} {_show(change.key)}"
    if change.change == "update":
        shown += f" ({', '.join(columns[:8])})"
    evidence: dict[str, Json] = {"table": change.table, "key": change.key, "change": change.change, "columns": columns}
    if writer is None:
        message = f"{shown} was not expected, and no call in the trace explains it"
        return Finding(trace.trace_id, None, "unexpected_change", "error", message, evidence)
    evidence["call"] = writer.step_id
    message = f"{shown} was not expected; `{writer.name:.80}` (step {writer.step_id}) made it"
    return Finding(trace.trace_id, index.asker(writer), "unexpected_change", "error", message, evidence)


def _missing(
    trace: Trace, wanted: ExpectedChange, writers: Sequence[tuple[WorldChange, Step | None]], index: "_Index"
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
        return finding(
            index.asker(instead), f"`{instead.name:.80}` wrote something else", category="F18", call=instead.step_id
        )
    if index.answering is not None:
        why = "no call of the run tried it, and the answer was given without it"
        return finding(index.answering.step_id, why, category="F15", own_fault="yes")
    return finding(None, "nothing in the trace tried it")


def _instead(
    table: str, key: Json, values: Mapping[str, Json], writers: Sequence[tuple[WorldChange, Step | None]]
) -> Step | None:
    """The call that wrote to the wanted row, or wrote wanted values of the same table to another row."""
    near = [(change, step) for change, step in writers if step is not None and change.table == table]
    marks = _marks(leaves(key)) if key is not None else frozenset()
    for change, step in near:
        if marks and marks == _marks(leaves(change.key)):
            return step
    wanted = _marks(leaves(values))
    for change, step in near:
        if wanted & _marks(leaves(change.after)):
            return step
    return None


# --- the index ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Index:
    """Which calls hold which values, in their arguments and in their results."""

    steps: Mapping[str, Step]
    answering: Step | None
    calls: list[Step] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    said: dict[str, list[int]] = field(default_factory=dict)
    """value -> calls whose arguments hold it, by number, ascending."""
    got: dict[str, list[int]] = field(default_factory=dict)
    """value -> calls whose result holds it."""

    def asker(self, call: Step) -> str:
        """The model's step that asked for a call; the call itself where none did."""
        return call.request_step if call.request_step in self.steps and call.request_step else call.step_id

    def writer(self, change: WorldChange) -> Step | None:
        """The call that made a change; None if no call shows both its row and what changed, or several might have."""
        key = _key_marks(change.table, change.key)
        new = _marks(leaves(change.after)) - _marks(leaves(change.before)) - key
        old = _marks(leaves(change.before)) - key
        seen: dict[int, list[int]] = {}
        for place, (marks, where) in enumerate(((key, self.said), (new, self.said), (key, self.got), (new, self.got))):
            for mark in marks:
                for call in where.get(mark, ())[:_MANY]:
                    if call not in self.failed:
                        seen.setdefault(call, [0, 0, 0, 0])[place] += 1
        ranked = []
        for call, (key_said, new_said, key_got, new_got) in seen.items():
            named = bool(key_said or key_got)
            if change.change == "delete":
                if key_said:
                    ranked.append((-key_said, -new_said, call))
            elif (named and (new_said or new_got)) or (change.change == "insert" and _enough(new_said, len(new))):
                ranked.append((-new_said - (key_said > 0), -new_got, call))
        if change.change == "delete":
            return self._silent(key, old, [call for *_, call in ranked])
        if ranked:
            best = min(ranked)
            if best[0] < 0 or best[1] < 0:
                return self.calls[best[2]]
        return self._silent(key, old, [call for call, counts in seen.items() if counts[0]])

    def _silent(self, key: frozenset[str], old: frozenset[str], named: list[int]) -> Step | None:
        """Of the calls that named a row the only one that did not just read it: its result holds no old value."""
        readers: set[int] = set()
        for mark in old:
            readers.update(self.got.get(mark, ())[:_MANY])
        readers &= {call for mark in key for call in self.got.get(mark, ())[:_MANY]}
        left = sorted(set(named) - readers)
        return self.calls[left[0]] if len(left) == 1 else None

    def tried(self, table: str, key: Json, values: Mapping[str, Json]) -> Step | None:
        """The first call that named the row, or most of the new row's values, and failed for good or never ran."""
        marks = _key_marks(table, key) if key is not None else frozenset()
        wanted = _marks(leaves(values))
        hits: dict[int, list[int]] = {}
        for place, some in enumerate((marks, wanted)):
            for mark in some:
                for call in self.said.get(mark, ())[:_MANY]:
                    hits.setdefault(call, [0, 0])[place] += 1
        fits = [
            call
            for call, (named, held) in hits.items()
            if call in self.failed and (named if marks else _enough(held, len(wanted)))
        ]
        for call in sorted(fits):
            later = (
                c for c in hits if c > call and c not in self.failed and self.calls[c].name == self.calls[call].name
            )
            if not any(hits[c][0] >= hits[call][0] and hits[c][1] >= hits[call][1] for c in later):
                return self.calls[call]
        return None


def _enough(hits: int, of: int) -> bool:
    """Whether so many of a row's telling values stand in one call that it is no chance."""
    return hits >= 1 and (hits >= 2 or of <= 2) and 3 * hits >= of


def _index(trace: Trace) -> _Index:
    llm = [s for s in trace.steps if s.kind == "llm" and s.reply is not None and not s.reply.requests]
    index = _Index({s.step_id: s for s in trace.steps}, max(llm, key=lambda s: (s.start_ns, s.step_id), default=None))
    for step in trace.steps:
        if step.kind not in ("tool", "handoff"):
            continue
        number = len(index.calls)
        index.calls.append(step)
        if not step.executed or failure_of(step) is not None:
            index.failed.add(number)
        for mark in _marks(leaves(step.arguments), pieces=True):
            index.said.setdefault(mark, []).append(number)
        for mark in _marks(leaves(step.result), pieces=True):
            index.got.setdefault(mark, []).append(number)
    return index


def _marks(found: Iterable[tuple[str, Json]], pieces: bool = False) -> frozenset[str]:
    """Values as marks to look up: numbers by size, texts without case; too small or too common ones are left out."""
    marks: set[str] = set()
    for _, value in found:
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, int | float):
            marks.add(_number(value))
        elif isinstance(value, str):
            text = value.strip().casefold()
            if text:
                marks.add(text[:_LONG])
            if pieces:
                marks.update(_piece(p) for p in _PIECES.findall(text[: 50 * _LONG]))
            elif _is_number(text):
                marks.add(_number(float(text)))
    marks.discard("")
    return frozenset(marks)


def _piece(text: str) -> str:
    bare = text.strip(".:!?*`$€£#")
    return _number(float(bare)) if _is_number(bare) else bare


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).removeprefix("-").isdecimal() and len(text) < 20


def _number(value: int | float) -> str:
    return f"{value:.10g}" if abs(value) < 1e15 else str(value)


def _key_marks(table: str, key: Json) -> frozenset[str]:
    """A row's key; for a file also its path as a call may have written it."""
    marks = set(_marks(leaves(key)))
    if isinstance(key, str):
        folder = table.strip("/").casefold()
        marks |= {f"{folder}/{key.casefold()}", f"./{folder}/{key.casefold()}", f"/{folder}/{key.casefold()}"}
    return frozenset(marks)


def _show(key: Json) -> str:
    return ", ".join(f"{k}={v}" for k, v in key.items())[:100] if isinstance(key, Mapping) else str(key)[:100]
