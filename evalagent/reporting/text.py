"""What a terminal shows at the end: the verdict, the numbers, what failed and why."""

import re
from collections.abc import Iterable, Mapping

from evalagent.model import Attribution, Json, Trace
from evalagent.records import RunRecord
from evalagent.reporting.headlines import selection
from evalagent.reporting.ledger import Ledger, ledger
from evalagent.reporting.quality import in_words, quality
from evalagent.reporting.wording import beside, money, percent, with_sessions
from evalagent.statistics.intervals import Interval
from evalagent.statistics.scorecard import Scorecard, Success, scorecard
from evalagent.statistics.units import Unit, units

SHOWN = 12
"""Failed runs listed; the rest is counted, and in the report."""
CAUSES = 3
"""Causes named of one failed run."""
_SENTENCE = re.compile(r"[.;] (?=\S)")
_WORDS = {"pass": "pass", "fail": "fail", "not_judged": "not judged"}


def render(record: RunRecord) -> str:
    """Plain text, one screen. Control characters of traces are taken out, so that nothing steers the terminal."""
    card = scorecard(record)
    runs = units(record)
    lines = [f"{record.title}: {_headline(record, card.success)}", ""]
    lines += _numbers(record, card)
    lines += ["", *_cases(runs)] if record.trials else []
    lines += ["", *_failed(record, runs)] if any(run.verdict == "fail" for run in runs) else []
    lines += ["", *_not_judged(record)] if record.exit_code in (3, 4) else []
    rejected = record.receipt.get("rejected") or []
    if rejected:
        lines += ["", f"{len(rejected)} line(s) or file(s) could not be read; the first: {_rejected(rejected[0])}"]
    if record.traces and not any(step.kind == "llm" for trace in record.traces for step in trace.steps):
        lines += ["", "No model call was seen in any trace: is the client that calls the model instrumented?"]
    if record.judge.name == "rules" and card.coverage.judged < card.coverage.steps:
        lines += [
            "",
            "What no rule decides is not judged; `--judge anthropic` with ANTHROPIC_API_KEY asks a model.",
        ]
    return plain("\n".join(lines)) + "\n"


def _headline(record: RunRecord, success: Success) -> str:
    if success.selected and record.exit_code == 1:
        return f"{selection(success)} (exit 1)"
    words = {
        0: "passed" if record.verdict == "pass" else "nothing found wrong",
        1: "the agent failed",
        3: "could not be judged",
        4: "the evaluation's own budget ran out",
    }
    return f"{words.get(record.exit_code, 'ended')} (exit {record.exit_code})"


def _numbers(record: RunRecord, card: Scorecard) -> list[str]:
    rows = [(f"{'runs' if record.trials else 'traces'} that passed", _success(card.success))]
    if len(card.pass_hat_k) > 1:
        last = card.pass_hat_k[-1]
        rate = "-" if last.rate is None else f"{last.rate:.0%}"
        rows.append((f"all {last.k} runs of a case pass", f"{rate} of {last.cases} cases{_interval(last.interval)}"))
    if card.held_out:
        rows.append(("held-out cases", _success(card.held_out)))
    share = "-" if card.coverage.share is None else f"{card.coverage.share:.0%}"
    judges = ", ".join(f"{count} by {judge}" for judge, count in card.coverage.by_judge.items())
    rows.append(
        ("steps judged", f"{share} ({card.coverage.judged} of {card.coverage.steps}{'; ' if judges else ''}{judges})")
    )
    rows.append(("trace quality", in_words(quality(record.traces))))
    if card.within_budget:
        rows.append(("runs within budget", f"{card.within_budget.within} of {card.within_budget.n}"))
    tokens = "tokens not known" if card.tokens.total is None else f"{card.tokens.total:,.0f} tokens"
    by = f" by {record.versions['prices']}" if "prices" in record.versions else ""
    cost = "cost not known" if card.cost_usd.total is None else f"{money(card.cost_usd.total)}{by}"
    rows.append(("the agent spent", f"{tokens}, {cost}"))
    if card.intermittent:
        rows.append(("intermittent cases", ", ".join(card.intermittent)))
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {value}" for name, value in rows]


def _success(success: Success) -> str:
    if success.selected:
        failed = success.n - success.passed
        return (
            f"between {percent(success.worst)} and {percent(success.best)}: {success.passed} passed, {failed} failed,"
            f" {success.not_judged} not judged"
        )
    if success.rate is None:
        return f"none judged, {success.not_judged} not judged"
    open_ = f"; {success.not_judged} not judged" if success.not_judged else ""
    return f"{success.rate:.0%} ({success.passed} of {success.n}){_interval(success.interval)}{open_}"


def _interval(interval: Interval | None) -> str:
    return f", 95 % interval {interval.low:.0%} to {interval.high:.0%}" if interval else ""


def _cases(runs: Iterable[Unit]) -> list[str]:
    by_case: dict[str, list[Unit]] = {}
    for run in runs:
        by_case.setdefault(run.case_id, []).append(run)
    width = max(len("case"), *map(len, by_case))
    lines = [f"  {'case':<{width}}  runs  pass  fail  not judged"]
    for case, mine in by_case.items():
        count = {word: sum(run.verdict == word for run in mine) for word in _WORDS}
        mixed = "  intermittent" if count["pass"] and count["fail"] else ""
        counted = f"{len(mine):>4}  {count['pass']:>4}  {count['fail']:>4}  {count['not_judged']:>10}"
        lines.append(f"  {case:<{width}}  {counted}{mixed}")
    return lines


def _failed(record: RunRecord, runs: Iterable[Unit]) -> list[str]:
    failed = [run for run in runs if run.verdict == "fail"]
    book = ledger(record)
    what = "runs" if record.trials else "traces"
    lines = [f"failed {what}, the step each first went wrong in, and why:"]
    for run in failed[:SHOWN]:
        name = beside(run.case_id, run.session) if run.trial is None else f"{run.case_id} #{run.trial}"
        why = " ".join(book.reasons(run)[:1])
        lines.append(f"  {name}: {_short(why) or 'failed'}")
        for trace in run.traces:
            attribution = book.attributions.get(trace.trace_id)
            if attribution is None:
                continue
            first = _step(run, trace, attribution.first_failing_step)
            if first:
                lines.append(f"      first failing step: {first}")
            lines += [f"      {said}" for said in _causes(book, run, trace, attribution, why)]
    if len(failed) > SHOWN:
        lines.append(f"  … and {len(failed) - SHOWN} more, in the report")
    return lines


def _causes(book: Ledger, run: Unit, trace: Trace, attribution: Attribution, why: str) -> list[str]:
    """The step a failure began in and the reason, as far as `why` does not say it; all of them where it is one of
    several."""
    many = len(attribution.root_causes) > 1
    lines = []
    for cause in attribution.root_causes[:CAUSES]:
        same = cause.step_id == attribution.first_failing_step
        where = "the same step" if same and not many else _step(run, trace, cause.step_id)
        word = "possible cause" if attribution.ambiguous else "root cause"
        reason = book.reason(run, (trace.trace_id, cause.step_id), cause.reason, 2_000)
        before, found, after = reason.partition(why.rstrip(".")) if why else ("", "", reason)
        said = _short(after.lstrip(";,. ") if found and len(before) < 100 else reason)
        lines.append(f"{word}: {where}{': ' if said else ''}{said}")
    left = len(attribution.root_causes) - CAUSES
    return [*lines, f"… and {left} more, in the report"] if left > 0 else lines


def _step(run: Unit, trace: Trace, step_id: str | None) -> str:
    """A step by its number in the run, as the report has it."""
    before = sum(len(earlier.steps) for earlier in run.traces[: run.traces.index(trace)])
    found = next((found for found in enumerate(trace.steps, before + 1) if found[1].step_id == step_id), None)
    of = sum(len(one.steps) for one in run.traces)
    return f"step {found[0]} of {of}, {found[1].kind} {found[1].name}" if found else ""


def _not_judged(record: RunRecord) -> list[str]:
    sessions = {trace.trace_id: trace.session for trace in record.traces}
    reasons = (with_sessions(reason, sessions) for reason in record.reasons[:SHOWN])
    lines = ["not judged, because:", *(f"  {reason}" for reason in reasons)]
    return lines + ([f"  … and {len(record.reasons) - SHOWN} more"] if len(record.reasons) > SHOWN else [])


def _rejected(row: Mapping[str, Json]) -> str:
    return _short(f"{row.get('file')}:{row.get('line')}: {row.get('reason')}")


def _short(text: str, most: int = 400) -> str:
    """One line. A longer text ends after a whole sentence; if there is none, at a word with an ellipsis: the report has
    all of it."""
    flat = " ".join(text.split())
    if len(flat) <= most:
        return flat
    whole = list(_SENTENCE.finditer(flat, 0, most))
    return flat[: whole[-1].start()] if whole else flat[:most].rsplit(" ", 1)[0] + " …"


def plain(text: str) -> str:
    """The text without control and formatting characters, which could steer the terminal that shows it."""
    return "".join(c if c == "\n" or c.isprintable() else " " for c in text)
