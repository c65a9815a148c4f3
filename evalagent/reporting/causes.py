"""Failed runs grouped by what began them, and what to do about each group. Each failed run counts once."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from evalagent.model import Finding, RootCause, Step, Trace
from evalagent.reporting.advice import STDERR, advice
from evalagent.reporting.ledger import Ledger
from evalagent.reporting.naming import Anchors, category_name, where
from evalagent.reporting.report import CauseGroup, Quote, Recommendation, RunLine
from evalagent.reporting.telling import Said, failed_as, whole
from evalagent.reporting.wording import counted, line, quotes
from evalagent.statistics.intervals import rate_interval
from evalagent.statistics.scorecard import counts_of
from evalagent.statistics.units import Unit

Key = tuple[str, str]
Who = tuple[str, int | None]
_QUOTES = 3
_ENDS = {"crashed": "The agent crashed", "timeout": "The agent ran out of time", "no_answer": "No answer"}
NOT_EXPLAINED = "no step of the trace explains it"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one run's failure began, as far as it is known."""

    title: str
    where: str
    category: str | None
    reason: str | None
    """What stands for a class where there is none: a finding's code, how the agent ended, or `not_explained`."""
    aspect: str | None
    words: tuple[Said, ...]


@dataclass(slots=True)
class _Members:
    """The runs of one group, and the words of each."""

    counted: dict[Who, Unit] = field(default_factory=dict)
    also: dict[Who, Unit] = field(default_factory=dict)
    shown: list[tuple[Unit, Origin]] = field(default_factory=list)

    def weight(self) -> tuple[int, int, int, int]:
        """What a group is ranked by: its runs, those of costly cases, those of normal ones, then what it is also in."""
        severities = [run.severity for run in self.counted.values()]
        return len(severities), severities.count("costly"), severities.count("normal"), len(self.also)


def origins(book: Ledger, run: Unit) -> list[Origin]:
    """The root causes of a failed run, best first; if none was found, the one origin that its end shows."""
    found = []
    for trace in run.traces:
        attribution = book.attributions.get(trace.trace_id)
        for cause in attribution.root_causes if attribution else ():
            step = book.steps.get((trace.trace_id, cause.step_id))
            if step is not None:
                found.append(_origin(book, run, trace, step, cause))
    return found or [_unlocated(book, run)]


def groups(book: Ledger, lines: Mapping[Who, RunLine], anchors: Anchors, shares: bool = True) -> tuple[CauseGroup, ...]:
    """The groups, by the failed runs that count there, then by what those cost, then by title.

    A run counts under its first-ranked root cause; under the others it is named and not counted. Without `shares` no
    share of the judged runs is told.
    """
    members: dict[Key, _Members] = defaultdict(_Members)
    for run in book.runs:
        if run.verdict != "fail":
            continue
        who = (run.case_id, run.trial)
        for place, origin in enumerate(origins(book, run)):
            mine = members[origin.title, origin.where]
            if who not in mine.counted and who not in mine.also:
                (mine.also if place else mine.counted)[who] = run
                mine.shown.append((run, origin))
    order = sorted(members, key=lambda key: (tuple(-n for n in members[key].weight()), key))
    found: list[CauseGroup] = []
    for key in order:
        mine = members[key]
        counts = counts_of(book.runs, lambda run, mine=mine: (run.case_id, run.trial) in mine.counted)  # type: ignore[misc]
        n = sum(of for _, of in counts)
        shown = sorted(mine.shown, key=lambda item: (item[0].case_id, item[0].trial) not in mine.counted)
        first = shown[0][1]
        told = mine.counted or mine.also
        found.append(
            CauseGroup(
                anchors.take("cause", len(found) + 1),
                first.title,
                first.where,
                first.category,
                category_name(first.category)[1],
                tuple(lines[who] for who in mine.counted),
                tuple(lines[who] for who in mine.also),
                n,
                len(mine.counted) / n if n and shares else None,
                rate_interval(counts, book.record.seed) if shares else None,
                _quotes(shown, lines),
                advice(first.category, first.reason, first.aspect),
                mine.weight()[1],
                sum(unsure(book, run) for run in told.values()),
            )
        )
    return tuple(found)


def unsure(book: Ledger, run: Unit) -> bool:
    """Whether it is ambiguous which step began a run's failure."""
    mine = [book.attributions[t.trace_id] for t in run.traces if t.trace_id in book.attributions]
    return any(a.ambiguous and a.root_causes for a in mine)


def recommendations(found: tuple[CauseGroup, ...], failed: int) -> tuple[Recommendation, ...]:
    """What to do, in the order of the failed runs that it accounts for, which add up to all; the same advice once."""
    by_text: dict[str, list[CauseGroup]] = {}
    for group in found:
        by_text.setdefault(group.advice, []).append(group)
    items = []
    for text, mine in by_text.items():
        runs = {(run.case_id, run.trial): run for group in mine for run in group.runs}
        also = {(run.case_id, run.trial): run for group in mine for run in group.also}
        cause = f"{mine[0].title} ({mine[0].where})" if mine[0].where else mine[0].title
        more = f" and {len(mine) - 1} more" if len(mine) > 1 else ""
        start = next(iter(mine[0].runs or mine[0].also))
        costly = sum(group.costly for group in mine)
        said = Recommendation(
            text, cause + more, mine[0].anchor, len(runs), failed, len(also.keys() - runs.keys()), start
        )
        items.append((-len(runs), -costly, said))
    return tuple(said for _, _, said in sorted(items, key=lambda item: item[:2]))


def hints(book: Ledger, run: Unit) -> tuple[str, ...]:
    """Of a failed run: that no step explains it and where to look instead, and every loop in it."""
    if run.verdict != "fail":
        return ()
    located = any(book.attributions[t.trace_id].root_causes for t in run.traces if t.trace_id in book.attributions)
    found = [] if located else _where_to_look(book, run)
    for finding in _loops(book, run):
        said = book.tell.numbered(f"step {finding.step_id}", run) if finding.step_id else "the whole run"
        found.append(f"Loop, {said}: {book.tell.sentence(finding.message, 300, run)}.")
    return tuple(found[:8])


def title_of(book: Ledger, trace_id: str, cause: RootCause) -> tuple[str, str | None]:
    """The words for a root cause, and the code of the finding that showed it, if one did."""
    errors = book.errors(trace_id, cause.step_id)
    code = errors[0].code if errors else None
    verdict = book.verdict(trace_id, cause.step_id)
    category = cause.category or (verdict.category if verdict else None)
    name = category_name(category)[0] or (code.replace("_", " ").capitalize() if code else "Judged wrong")
    return name, code


def _origin(book: Ledger, run: Unit, trace: Trace, step: Step, cause: RootCause) -> Origin:
    title, code = title_of(book, trace.trace_id, cause)
    verdict = book.verdict(trace.trace_id, step.step_id)
    category = cause.category or (verdict.category if verdict else None)
    words = [
        book.tell.say(whole(f"{f.code}: {f.message}", failed_as(step)), 300, run, step.error)
        for f in book.errors(trace.trace_id, step.step_id)
    ]
    if not words and verdict and verdict.verdict == "fail":
        words = [book.tell.say(said, 300, run) for said in (verdict.reason, *quotes(verdict.evidence, 300, 2))]
    words = words or [book.tell.say(cause.reason, 300, run, step.error)]
    return Origin(title, where(step), category, code, step.aspect, tuple(words))


def _unlocated(book: Ledger, run: Unit) -> Origin:
    """What stands for the origin of a run in which no step is known to have failed."""
    trial = book.trials.get((run.case_id, run.trial))
    words = tuple(book.tell.say(reason, 300, run) for reason in run.reasons[:2])
    if trial is not None and trial.exit in _ENDS:
        ended = book.tell.say("; ".join(run.reasons[:3]), 600, run)
        return Origin(_ENDS[trial.exit], "the whole run", None, trial.exit, None, (ended,) if ended.text else ())
    errors = _whole_errors(book, run)
    place = NOT_EXPLAINED if run.steps else "no step of it arrived"
    if any(f.code == "over_budget" for f in errors) and (loops := _loops(book, run)):
        step = book.steps.get((loops[0].trace_id, loops[0].step_id or ""))
        said = book.tell.sentence(
            f"{run.reasons[0] if run.reasons else 'over budget'}; loop: {loops[0].message}", 300, run
        )
        return Origin("Over budget in a loop", where(step) if step else place, None, "loop", None, (Said(said),))
    if errors:
        code = errors[0].code
        told = tuple(book.tell.say(f"{f.code}: {f.message}", 300, run) for f in errors[:2])
        reason = "not_explained" if code in ("unexpected_change", "missing_change") else code
        return Origin(code.replace("_", " ").capitalize(), place, None, reason, None, told)
    wrong = book.outcomes.get((run.case_id, run.trial))
    if wrong is not None and wrong.verdict == "fail":
        return Origin("Wrong end state", place, None, "not_explained", None, words)
    return Origin("No origin found", place, None, None, None, words)


def _whole_errors(book: Ledger, run: Unit) -> list[Finding]:
    return [f for trace in run.traces for f in book.whole_findings.get(trace.trace_id, ()) if f.severity == "error"]


def _loops(book: Ledger, run: Unit) -> list[Finding]:
    """Loops that are told as warnings; one that is an error stands among the causes."""
    found = [f for trace in run.traces for f in book.whole_findings.get(trace.trace_id, ())]
    keys = ((trace.trace_id, step.step_id) for trace in run.traces for step in trace.steps)
    found += [f for key in keys for f in book.step_findings.get(key, ())]
    return [f for f in found if f.code == "loop" and f.severity == "warning"]


def _where_to_look(book: Ledger, run: Unit) -> list[str]:
    trial = book.trials.get((run.case_id, run.trial))
    crashed = trial is not None and trial.exit == "crashed"
    if not run.steps:
        return ["No step of it arrived, so no step can be named." + (f" {STDERR}" if crashed else "")]
    loops = _loops(book, run)
    found = [
        ("No single step" if loops else "No step") + " of the trace explains it." + (f" {STDERR}" if crashed else "")
    ]
    outcome = book.outcomes.get((run.case_id, run.trial))
    if outcome is not None and outcome.verdict == "fail":
        wrong = [c.table for c in outcome.unexpected]
        wrong += [str(e.change.get("table", "")) for e in outcome.expected if not e.met]
        tables = [line(table, 60) for table in dict.fromkeys(wrong) if table]
        where_to = f" to {', '.join(tables[:5])}" if tables else ""
        found.append(f"Compare the changes of the world with the calls that write{where_to}.")
    if not loops and any(f.code == "over_budget" for f in _whole_errors(book, run)):
        names = Counter(s.name if s.kind != "llm" else "the model" for t in run.traces for s in t.steps)
        most, n = min(names.items(), key=lambda item: (-item[1], item[0]))
        found.append(f"Most steps went to {line(most, 60)}: {n:,} of {counted(run.steps, 'step')}.")
    return found


def _quotes(shown: list[tuple[Unit, Origin]], lines: Mapping[Who, RunLine]) -> tuple[Quote, ...]:
    """What these runs say, each text once, from different cases first."""
    found: dict[str, Quote] = {}
    seen: set[str] = set()
    for fresh in (True, False):
        for run, origin in shown:
            if not origin.words or origin.words[0].text in found or (fresh and run.case_id in seen):
                continue
            seen.add(run.case_id)
            said, words = lines[run.case_id, run.trial], origin.words[0]
            found[words.text] = Quote(said.name, said.anchor, words.text, words.rest)
    return tuple(list(found.values())[:_QUOTES])
