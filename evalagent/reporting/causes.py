"""Failed runs grouped by what began them, and what to do about each group."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from evalagent.model import RootCause, Step, Trace
from evalagent.reporting.advice import advice
from evalagent.reporting.ledger import Ledger
from evalagent.reporting.naming import Anchors, category_name, where
from evalagent.reporting.report import CauseGroup, Quote, Recommendation, RunLine
from evalagent.reporting.wording import line, quotes
from evalagent.statistics.intervals import rate_interval
from evalagent.statistics.scorecard import counts_of
from evalagent.statistics.units import Unit

Key = tuple[str, str]
_QUOTES = 3


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one run's failure began, as far as it is known."""

    title: str
    where: str
    category: str | None
    reason: str | None
    """What stands for a class where there is none: a finding's code, how the agent ended, or `ambiguous`."""
    aspect: str | None
    words: tuple[str, ...]
    trace: Trace | None
    step: Step | None


def origins(book: Ledger, run: Unit) -> list[Origin]:
    """The root causes of a failed run, best first; if none was found, the one origin that its end shows."""
    found = []
    ambiguous = False
    for trace in run.traces:
        attribution = book.attributions.get(trace.trace_id)
        if attribution is None:
            continue
        ambiguous = ambiguous or attribution.ambiguous
        for cause in attribution.root_causes:
            step = book.steps.get((trace.trace_id, cause.step_id))
            if step is not None:
                found.append(_origin(book, trace, step, cause))
    return found or [_unlocated(book, run, ambiguous)]


def groups(book: Ledger, lines: Mapping[tuple[str, int | None], RunLine], anchors: Anchors) -> tuple[CauseGroup, ...]:
    """The groups, by failed runs, then by failed runs of costly cases, then by title. A run with several root causes
    stands in several groups."""
    members: dict[Key, dict[tuple[str, int | None], Unit]] = defaultdict(dict)
    shown: dict[Key, list[tuple[Unit, Origin]]] = defaultdict(list)
    for run in book.runs:
        if run.verdict == "fail":
            for origin in origins(book, run):
                key = (origin.title, origin.where)
                if (run.case_id, run.trial) not in members[key]:
                    members[key][run.case_id, run.trial] = run
                    shown[key].append((run, origin))
    costly = {key: sum(run.severity == "costly" for run in mine.values()) for key, mine in members.items()}
    order = sorted(members, key=lambda key: (-len(members[key]), -costly[key], key))
    found: list[CauseGroup] = []
    for key in order:
        mine = members[key]
        counts = counts_of(book.runs, lambda run, mine=mine: (run.case_id, run.trial) in mine)  # type: ignore[misc]
        n = sum(of for _, of in counts)
        first = shown[key][0][1]
        found.append(
            CauseGroup(
                anchors.take("cause", len(found) + 1),
                first.title,
                first.where,
                first.category,
                category_name(first.category)[1],
                tuple(lines[who] for who in mine),
                n,
                len(mine) / n if n else None,
                rate_interval(counts, book.record.seed),
                _quotes(shown[key], lines),
                advice(first.category, first.reason, first.aspect),
                costly[key],
                sum(unsure(book, run) for run in mine.values()),
            )
        )
    return tuple(found)


def unsure(book: Ledger, run: Unit) -> bool:
    """Whether it is ambiguous which step began a run's failure."""
    return any(book.attributions[t.trace_id].ambiguous for t in run.traces if t.trace_id in book.attributions)


def recommendations(found: tuple[CauseGroup, ...], failed: int) -> tuple[Recommendation, ...]:
    """What to do, in the order of the failed runs that each cause accounts for; the same advice once."""
    by_text: dict[str, list[CauseGroup]] = {}
    for group in found:
        by_text.setdefault(group.advice, []).append(group)
    items = []
    for text, mine in by_text.items():
        runs = {(run.case_id, run.trial) for group in mine for run in group.runs}
        cause = f"{mine[0].title} ({mine[0].where})" if mine[0].where else mine[0].title
        more = f" and {len(mine) - 1} more" if len(mine) > 1 else ""
        items.append(Recommendation(text, cause + more, mine[0].anchor, len(runs), failed))
    return tuple(sorted(items, key=lambda item: -item.runs))


def title_of(book: Ledger, trace_id: str, cause: RootCause) -> tuple[str, str | None]:
    """The words for a root cause, and the code of the finding that showed it, if one did."""
    errors = book.errors(trace_id, cause.step_id)
    code = errors[0].code if errors else None
    verdict = book.verdict(trace_id, cause.step_id)
    category = cause.category or (verdict.category if verdict else None)
    name = category_name(category)[0] or (code.replace("_", " ").capitalize() if code else "Judged wrong")
    return name, code


def _origin(book: Ledger, trace: Trace, step: Step, cause: RootCause) -> Origin:
    title, code = title_of(book, trace.trace_id, cause)
    verdict = book.verdict(trace.trace_id, step.step_id)
    category = cause.category or (verdict.category if verdict else None)
    words = [f"{f.code}: {line(f.message, 300)}" for f in book.errors(trace.trace_id, step.step_id)]
    if not words and verdict and verdict.verdict == "fail":
        words = [line(verdict.reason, 300), *quotes(verdict.evidence, 300, 2)]
    return Origin(
        title, where(step), category, code, step.aspect, tuple(words or [line(cause.reason, 300)]), trace, step
    )


def _unlocated(book: Ledger, run: Unit, ambiguous: bool) -> Origin:
    trial = book.trials.get((run.case_id, run.trial))
    words = tuple(line(reason, 300) for reason in run.reasons[:2])
    errors = [f for trace in run.traces for f in book.whole_findings.get(trace.trace_id, ()) if f.severity == "error"]
    if ambiguous:
        return Origin(
            "Origin ambiguous", "several steps could have begun it", None, "ambiguous", None, words, None, None
        )
    if trial is not None and trial.exit in ("crashed", "timeout", "no_answer"):
        ends = {"crashed": "The agent crashed", "timeout": "The agent ran out of time", "no_answer": "No answer"}
        return Origin(ends[trial.exit], "the whole run", None, trial.exit, None, words, None, None)
    if errors:
        code = errors[0].code
        said = tuple(f"{f.code}: {line(f.message, 300)}" for f in errors[:2])
        title = code.replace("_", " ").capitalize()
        return Origin(title, "the whole run", None, code, None, said, None, None)
    return Origin("No origin found", "no failing step is known", None, None, None, words, None, None)


def _quotes(shown: list[tuple[Unit, Origin]], lines: Mapping[tuple[str, int | None], RunLine]) -> tuple[Quote, ...]:
    """What these runs say, each text once, from different cases first."""
    found: dict[str, Quote] = {}
    seen: set[str] = set()
    for fresh in (True, False):
        for run, origin in shown:
            if not origin.words or origin.words[0] in found or (fresh and run.case_id in seen):
                continue
            seen.add(run.case_id)
            said = lines[run.case_id, run.trial]
            found[origin.words[0]] = Quote(said.name, said.anchor, origin.words[0])
    return tuple(list(found.values())[:_QUOTES])
