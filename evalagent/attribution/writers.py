"""Which call made which change in the world, by evidence alone.

A call answers for a change when its arguments or its result hold the row's key and the changed values. Values that it
holds as they are weigh more than words in a text it wrote. The index over all calls is built once; each change then
looks up its own few values.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from evalagent.checks.calls import Calls, leaves, read_calls
from evalagent.checks.failures import failure_of
from evalagent.checks.marks import Origins, pieces, read_origins, whole
from evalagent.checks.wording import name_words
from evalagent.model import ExpectedChange, Json, Outcome, Step, Trace, WorldChange

_MANY = 200
"""A value that stands in more calls than this tells nothing apart; only the first so many are weighed."""
_LONG = 2_000

_Weight = tuple[int, int, int, int]
"""How well a call explains a change, the best first when sorted."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The call that made a change."""

    step: Step
    repeated: bool = False
    """An expected change accounts for an equal call before this one."""
    sole: bool = True
    """No other call explains the change as well."""


@dataclass(slots=True)
class Index:
    """Which calls hold which values, in their arguments and in their results."""

    calls: Calls
    answering: Step | None
    origins: Origins
    steps: list[Step] = field(default_factory=list)
    """The calls by number."""
    failed: set[int] = field(default_factory=set)
    said: dict[str, list[int]] = field(default_factory=dict)
    """mark -> calls whose arguments hold it, in a text too, by number, ascending."""
    got: dict[str, list[int]] = field(default_factory=dict)
    """mark -> calls whose result holds it."""
    said_whole: dict[str, set[int]] = field(default_factory=dict)
    got_whole: dict[str, set[int]] = field(default_factory=dict)
    plain: dict[int, set[tuple[str, Json]]] = field(default_factory=dict)
    """Filled as it is asked for."""

    def asker(self, call: Step) -> str:
        """The model's step that asked for a call; the call itself where none did."""
        return call.request_step if call.request_step in self.calls.by_id and call.request_step else call.step_id

    def own_fault(self, call: Step, marks: frozenset[str]) -> str:
        """yes where none of these values came from the calls before; else it cannot be told here."""
        return "unknown" if self.origins.inherited(marks, self.calls.positions[call.step_id]) else "yes"

    def picked(self, call: Step, wrong: frozenset[str], right: frozenset[str]) -> Step | None:
        """The earlier call for which the wrong value was chosen that this one went on with."""
        at = self.origins.picked(wrong, right, self.calls.positions[call.step_id])
        return next((s for s in self.steps if self.calls.positions[s.step_id] == at), None) if at is not None else None

    def writers(self, outcome: Outcome) -> list[Writer | None]:
        """For each unexpected change the call that made it; None if none shows its row and what changed."""
        found: list[Writer | None] = []
        given: dict[tuple[int, ...], int] = {}
        shared: dict[tuple[int, ...], int] = {}
        candidates = [self._candidates(change) for change in outcome.unexpected]
        for twins in candidates:
            shared[twins] = shared.get(twins, 0) + 1
        for change, twins in zip(outcome.unexpected, candidates, strict=True):
            if change.change != "insert" or len(twins) < 2:
                found.append(Writer(self.steps[twins[0]], sole=len(twins) == 1) if twins else None)
                continue
            # calls alike and fewer rows than calls: those that were expected came first
            spare = max(len(twins) - shared[twins], 0)
            skip = min(spare, sum(self._accounts(wanted, change.table, twins[0]) for wanted in outcome.expected))
            nth = skip + given.get(twins, 0)
            given[twins] = given.get(twins, 0) + 1
            found.append(Writer(self.steps[twins[min(nth, len(twins) - 1)]], repeated=skip > 0, sole=False))
        return found

    def _accounts(self, wanted: ExpectedChange, table: str, call: int) -> bool:
        """Whether this call made an expected row of that table, or one just like it did."""
        values = wanted.change.get("insert")
        if not wanted.met or wanted.change.get("table") != table or not isinstance(values, Mapping):
            return False
        marks = whole(values)
        return enough(sum(call in self.said_whole.get(mark, ()) for mark in marks), len(marks))

    def _candidates(self, change: WorldChange) -> tuple[int, ...]:
        """The calls that explain a change best, by number; several only if they are calls of one tool, and alike."""
        key = key_marks(change.table, change.key)
        new = whole(change.after) - whole(change.before) - key
        best, named = self._fitting(change.change, key, new)
        if best and not (change.change == "update" and self._hearsay(best[0], key, new, change.before)):
            return best
        silent = self._silent(key, change.before, named)
        return silent if len(silent) == 1 else () if any(self._names(call, key) for call in silent) else best

    def makers(self, wanted: ExpectedChange) -> tuple[int, ...]:
        """The calls whose arguments ask for a change that a case expected, the best ones alike; () if none is known.

        What a case says of a change is less than the world shows: the old values are not in it.
        """
        said = wanted.change
        key = key_marks(str(said.get("table", "")), said["key"]) if said.get("key") is not None else frozenset[str]()
        values = said.get("insert") or said.get("set")
        literal = values.values() if isinstance(values, Mapping) else ()
        new = whole([value for value in literal if not isinstance(value, Mapping)]) - key
        change = "insert" if said.get("insert") else "update" if said.get("set") else "delete"
        best, named = self._fitting(change, key, new)
        if change == "insert":
            return tuple(call for call in best if self.holds(call, new))
        return tuple(call for call in best if self.holds(call, key)) or tuple(
            call for call in sorted(named) if not self._read(call, key)
        )

    def _fitting(self, change: str, key: frozenset[str], new: frozenset[str]) -> tuple[tuple[int, ...], Sequence[int]]:
        """The calls that hold key and new values best, alike and of one tool; and all whose arguments name the row."""
        places = (
            (key, self.said, self.said_whole),
            (new, self.said, self.said_whole),
            (key, self.got, self.got_whole),
            (new, self.got, self.got_whole),
        )
        seen: dict[int, list[int]] = {}
        for place, (marks, where, exactly) in enumerate(places):
            for mark in marks:
                held = exactly.get(mark, set[int]())
                for call in where.get(mark, ())[:_MANY]:
                    if call not in self.failed:
                        counts = seen.setdefault(call, [0] * 8)
                        counts[place] += 1
                        counts[place + 4] += call in held
        named = [call for call, counts in seen.items() if counts[0]]
        if change == "delete":
            return (), named
        ranked: list[tuple[_Weight, int]] = []
        for call, (key_said, new_said, key_got, new_got, *exact) in seen.items():
            fits = bool(key_said or key_got) and bool(new_said or new_got)
            if fits or (change == "insert" and enough(new_said, len(new))):
                said, got, shown = exact[1] + (exact[0] > 0), exact[3], int(exact[2] > 0)
                # what a new row got by itself, such as its number, only a result can show
                inserted, updated = (-said, -shown, -got, -new_said), (-said - got, -said, -shown, -new_said)
                ranked.append((inserted if change == "insert" else updated, call))
        if not ranked:
            return (), named
        ranked.sort()
        best, first = ranked[0]
        name = self.steps[first].name
        return tuple(call for weight, call in ranked if weight == best and self.steps[call].name == name), named

    def holds(self, call: int, marks: Iterable[str]) -> int:
        """How many of these marks stand in the arguments of a call, in a text too."""
        return sum(_among(self.said.get(mark, ()), call) for mark in marks)

    def shows(self, call: int, marks: Iterable[str]) -> bool:
        """Whether one of these marks stands in a call's arguments or in its result."""
        return any(_among(where.get(mark, ()), call) for mark in marks for where in (self.said, self.got))

    def under(self, call: int, marks: frozenset[str]) -> frozenset[str]:
        """The last words of the names under which a call's arguments hold these marks: `id` for `book_id`."""
        held = leaves(self.calls.asked.arguments(self.steps[call]))
        return frozenset((name_words(name) or [""])[-1] for name, value in held if marks & whole(value))

    def naming(self, change: WorldChange) -> tuple[int, ...]:
        """The calls, by number, that may have written to a row without showing it: see `_silent`."""
        key = key_marks(change.table, change.key)
        named = {call for mark in key for call in self.said.get(mark, ())[:_MANY]} - self.failed
        return self._silent(key, change.before, sorted(named))

    def _names(self, call: int, key: frozenset[str]) -> bool:
        """Whether the key is an argument of this call, not just a word in one."""
        return any(call in self.said_whole.get(mark, ()) for mark in key)

    def _hearsay(self, call: int, key: frozenset[str], new: frozenset[str], before: Mapping[str, Json] | None) -> bool:
        """Whether a call may only tell of what another call did: the new values are but words in a text that it wrote,
        or stand in the result of a tool that just read the row at another time."""
        if any(call in self.said_whole.get(mark, ()) for mark in new):
            return False
        if not any(_among(self.got.get(mark, ()), call) for mark in new):
            return True
        return self.steps[call].name in {self.steps[reader].name for reader in self._readers(key, before)}

    def _read(self, call: int, key: frozenset[str]) -> bool:
        """Whether a call brought back a row, not just word that something was done to it."""
        fresh = whole(self.steps[call].result) - key - whole(self.calls.asked.arguments(self.steps[call]))
        return len(fresh) > 1 and any(_among(self.got.get(mark, ()), call) for mark in key)

    def _silent(self, key: frozenset[str], before: Mapping[str, Json] | None, named: Sequence[int]) -> tuple[int, ...]:
        """Of the calls that named a row those that did not just read it: their results hold no old value.

        Of those, where there are any, the ones of other tools than read it, and the ones to which the key was given as
        it is, not as a word in a text.
        """
        readers = self._readers(key, before)
        tools = {self.steps[call].name for call in readers}
        left = sorted(set(named) - readers)
        left = [call for call in left if self.steps[call].name not in tools] or left
        return tuple(call for call in left if self._names(call, key)) or tuple(left)

    def _readers(self, key: frozenset[str], before: Mapping[str, Json] | None) -> set[int]:
        """The calls whose results show a row as it was."""
        showing = {call for mark in key for call in self.got.get(mark, ())[:_MANY]}
        old = whole(before) - key
        readers = {call for mark in old for call in self.got.get(mark, ())[:_MANY]} & showing
        plain = {(name, value) for name, value in (before or {}).items() if value is None or isinstance(value, bool)}
        return readers | {call for call in showing - readers if plain and plain & self._plain(call)}

    def _plain(self, call: int) -> set[tuple[str, Json]]:
        """What a result holds that leaves no mark: the names of what is nothing, or true, or false."""
        if call not in self.plain:
            self.plain[call] = set()
            todo: list[Json] = [self.steps[call].result]
            while todo and len(self.plain[call]) < _MANY:
                item = todo.pop()
                if isinstance(item, Mapping):
                    parts = list(islice(item.items(), _LONG))
                    self.plain[call] |= {(n, v) for n, v in parts if v is None or isinstance(v, bool)}
                    todo.extend(v for _, v in parts if isinstance(v, Mapping | list | tuple))
                elif isinstance(item, list | tuple):
                    todo.extend(v for v in islice(item, _LONG) if isinstance(v, Mapping | list | tuple))
        return self.plain[call]

    def tried(self, table: str, key: Json, values: Mapping[str, Json]) -> Step | None:
        """The first call that named the row, or most of the new row's values, and failed for good or never ran."""
        marks = key_marks(table, key) if key is not None else frozenset()
        wanted = whole(values)
        hits: dict[int, list[int]] = {}
        for place, some in enumerate((marks, wanted)):
            for mark in some:
                for call in self.said.get(mark, ())[:_MANY]:
                    hits.setdefault(call, [0, 0])[place] += 1
        fits = [
            call
            for call, (named, held) in hits.items()
            if call in self.failed and (named if marks else enough(held, len(wanted)))
        ]
        for call in sorted(fits):
            later = (
                c for c in hits if c > call and c not in self.failed and self.steps[c].name == self.steps[call].name
            )
            if not any(hits[c][0] >= hits[call][0] and hits[c][1] >= hits[call][1] for c in later):
                return self.steps[call]
        return None


def _among(calls: Sequence[int], call: int) -> bool:
    """Whether a call is in this list, which is ascending."""
    at = bisect_left(calls, call)
    return at < len(calls) and calls[at] == call


def enough(hits: int, of: int) -> bool:
    """Whether so many of a row's telling values stand in one call that it is no chance."""
    return hits >= 1 and (hits >= 2 or of <= 2) and 3 * hits >= of


def key_marks(table: str, key: Json) -> frozenset[str]:
    """A row's key; for a file also its path as a call may have written it."""
    marks = set(whole(key))
    if isinstance(key, str):
        folder = table.strip("/").casefold()
        marks |= {f"{folder}/{key.casefold()}", f"./{folder}/{key.casefold()}", f"/{folder}/{key.casefold()}"}
    return frozenset(marks)


def read_index(trace: Trace) -> Index:
    """One pass over the calls."""
    llm = [s for s in trace.steps if s.kind == "llm" and s.reply is not None and not s.reply.requests]
    calls = read_calls(trace)
    last = max(llm, key=lambda s: (s.start_ns, s.step_id), default=None)
    index = Index(calls, last, read_origins(trace, calls))
    for step in trace.steps:
        if step.kind not in ("tool", "handoff"):
            continue
        number = len(index.steps)
        index.steps.append(step)
        if not step.executed or failure_of(step) is not None:
            index.failed.add(number)
        arguments = calls.asked.arguments(step)
        for mark in pieces(arguments):
            index.said.setdefault(mark, []).append(number)
        for mark in pieces(step.result):
            index.got.setdefault(mark, []).append(number)
        for mark in whole(arguments):
            index.said_whole.setdefault(mark, set()).add(number)
        for mark in whole(step.result):
            index.got_whole.setdefault(mark, set()).add(number)
    return index
