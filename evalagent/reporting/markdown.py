"""The report as Markdown, short enough for a comment on a pull request. Foreign text cannot make markup of itself."""

import re
from collections.abc import Iterable, Sequence

from evalagent.reporting.quality import decimals, in_words
from evalagent.reporting.report import Report, RunDetail, RunLine
from evalagent.reporting.wording import (
    HELD_OUT,
    RULINGS,
    beside,
    bounded,
    counted,
    ends,
    number,
    percent,
    seconds,
    span,
)

FAILED_SHOWN = 15
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$^=:/])")
_ROWS = 60
_TO_DO = 10


def md(text: str, limit: int = 400) -> str:
    """Foreign text on one line, with all that Markdown, HTML, a table, a link or a mention could be made of defused."""
    flat = bounded(" ".join(text.split()), limit)
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = re.sub(r"(?i)(www)\.", r"\1&#46;", flat.replace("@", "&#64;&#8203;"))
    flat = flat.replace("://", "&#58;//")
    return re.sub(r"(?<!&)#(?!\d+;)|[\\`*_\[\]|~$]|^[-+=:]|^\d+(?=[.)](?:\s|$))", _escaped, flat)


def _escaped(found: re.Match[str]) -> str:
    said = found[0]
    return f"{said}&#8203;" if said.isdigit() else f"\\{said}"


def render(report: Report) -> str:
    """The whole report; ends with a newline."""
    head = report.headline
    out = [
        f"# {md(report.title)}: {head.word}",
        "",
        f"Run `{_code(report.run_id)}`"
        + (f", started {md(report.started)}" if report.started else "")
        + f". Exit code {report.exit_code}.",
        "",
        f"**Does it work?** {md(head.works, 2000)}",
        "",
        f"**What breaks it most?** {md(head.breaks, 2000)}",
        "",
        f"**What to do first?** {md(head.first, 2000)}",
        "",
    ]
    if report.health.notice:
        out += [f"**{md(report.health.notice)}**", ""]
    if report.reasons:
        out += ["Reasons for the exit code:", "", *(f"- {md(r, 600)}" for r in report.reasons[:20])]
        out += [f"- … and {len(report.reasons) - 20} more"] if len(report.reasons) > 20 else []
        out.append("")
    out += ["## Numbers", "", *_numbers(report), ""]
    if report.unit == "trial":
        out += ["## Cases", "", *_cases(report), "", *([HELD_OUT, ""] if report.scorecard.held_out else [])]
    elif report.runs:
        out += ["## Traces", "", *_traces(report), ""]
    if report.causes:
        out += ["## What breaks it", "", *_causes(report), "", "## What to do", "", *_to_do(report), ""]
    if report.failed:
        out += [f"## Failed {_what(report)}s", ""]
        for detail in report.failed[:FAILED_SHOWN]:
            out += [*_detail(detail), ""]
        left = len(report.failed) + report.failed_left_out - FAILED_SHOWN
        out += (
            [f"{counted(left, f'more failed {_what(report)}')} not told here: see report.html.", ""] if left > 0 else []
        )
    if report.to_read:
        out += [
            f"## Passing {_what(report)}s to read",
            "",
            *(f"- {md(r.line.name)}: {md(r.why)}" for r in report.to_read),
            "",
        ]
    out += ["## Budgets", "", *_budgets(report), "", "## Not judged", "", *_not_judged(report), ""]
    out += ["## Health of the traces", "", *_health(report), "", "## Receipt and versions", "", *_receipt(report)]
    return "\n".join(out).rstrip("\n") + "\n"


def _what(report: Report) -> str:
    return "run" if report.unit == "trial" else "trace"


def _numbers(report: Report) -> list[str]:
    card = report.scorecard
    what = "Runs" if card.unit == "trial" else "Traces"
    between = f"between {percent(card.success.worst)} and {percent(card.success.best)}"
    rate = between if card.success.selected else percent(card.success.rate)
    rows = [(f"{what} that pass", rate, card.success.n, ends(card.success.interval))]
    rows += [
        (f"All {a.k} runs of a case pass", percent(a.rate), a.cases, f"{ends(a.interval)}; n counts cases")
        for a in card.pass_hat_k[1:]
    ]
    if card.held_out and card.open:
        rows.append(("… held-out cases", percent(card.held_out.rate), card.held_out.n, ends(card.held_out.interval)))
        rows.append(("… other cases", percent(card.open.rate), card.open.n, ends(card.open.interval)))
    if card.within_budget:
        said = ends(card.within_budget.interval)
        unknown = f"; {card.within_budget.unknown} not known" if card.within_budget.unknown else ""
        rows.append((f"{what} within budget", percent(card.within_budget.rate), card.within_budget.n, said + unknown))
    judges = ", ".join(f"{n} by {md(judge)}" for judge, n in card.coverage.by_judge.items()) or "by nobody"
    rows.append(("Steps judged", percent(card.coverage.share), card.coverage.steps, judges))
    return _table(("", "rate", "n", "95 % interval"), [(a, b, str(n), c) for a, b, n, c in rows])


def _cases(report: Report) -> list[str]:
    rows = [
        (
            md(case.case_id, 100) + (" (held out)" if case.held_out else ""),
            case.severity,
            f"{case.passed} of {case.judged}",
            case.state,
            ", ".join(f"\\#{run.trial} {RULINGS[run.verdict]}{_doubt(run)}" for run in case.runs),
            md(case.task, 80),
        )
        for case in report.cases[:_ROWS]
    ]
    more = [f"{len(report.cases) - _ROWS} more cases: see report.html."] if len(report.cases) > _ROWS else []
    return [*_table(("case", "severity", "passed", "", "runs", "task"), rows), *more]


def _doubt(run: RunLine) -> str:
    """What is to be said where a run's trace is not whole."""
    return f" (trace quality {decimals(run.quality)})" if run.quality is not None and run.quality < 1 else ""


def _traces(report: Report) -> list[str]:
    ordered = sorted(report.runs, key=lambda run: ("fail", "not_judged", "pass").index(run.verdict))
    rows = [
        (
            md(run.name, 120),
            RULINGS[run.verdict],
            str(run.steps),
            decimals(run.quality),
            md(run.reasons[0] if run.reasons else "", 200),
        )
        for run in ordered[:_ROWS]
    ]
    more = [f"{len(ordered) - _ROWS} more traces: see verdicts.jsonl."] if len(ordered) > _ROWS else []
    return [*_table(("trace", "verdict", "steps", "trace quality", "reason"), rows), *more]


def _causes(report: Report) -> list[str]:
    what = _what(report)
    rows = [
        (
            md(cause.title) + (f" ({md(cause.where)})" if cause.where else ""),
            f"{len(cause.runs)}"
            + (f", also in {len(cause.also)}" if cause.also else "")
            + (f" ({cause.ambiguous} ambiguous)" if cause.ambiguous else ""),
            f"{percent(cause.rate)} of {cause.n}, {span(cause.interval)}"
            if cause.rate is not None and cause.runs
            else "–",
            md(cause.quotes[0].text, 400) if cause.quotes else "",
        )
        for cause in report.causes[:_ROWS]
    ]
    left = len(report.causes) - _ROWS
    more = [f"{counted(left, 'more cause')}: see report.html."] if left > 0 else []
    told = _table(("root cause", f"failed {what}s", f"share of judged {what}s", "for example"), rows)
    return [*told, *more]


def _to_do(report: Report) -> list[str]:
    what = f"failed {_what(report)}"
    of = counted(len(report.failed) + report.failed_left_out, what)
    out = [f"Each failed {_what(report)} counts once, under the cause that ranks first in it.", ""]
    for place, item in enumerate(report.recommendations[:_TO_DO], 1):
        also = f", also in {item.also} more" if item.also else ""
        counts = (
            f"Accounts for {item.runs} of {of}{also}" if item.runs else f"First in none, also in {item.also} of {of}"
        )
        out.append(f"{place}. {md(item.text)} {counts}: {md(item.cause)}.")
    left = report.recommendations[_TO_DO:]
    if left:
        out += ["", f"… and {len(left)} more, for {sum(item.runs for item in left)} of {of}: see report.html."]
    return out


def _detail(detail: RunDetail) -> list[str]:
    out = [f"### {md(detail.line.name)}: {RULINGS[detail.line.verdict]}{_doubt(detail.line)}", ""]
    out += [f"- Task: {md(detail.task, 300)}"] if detail.task else []
    out += _some([f"- Expected: {md(said, 300)}" for said in detail.expected], 6)
    out += _some([f"- Reason: {md(reason, 600)}" for reason in detail.line.reasons], 6)
    wrong = [change for change in detail.world if change.state in _WRONG]
    out += _some([f"- World, {w.state}: {md(w.text, 300)} ({md(w.reason, 200)})" for w in wrong], 6)
    out += [f"- First failing step: {md(detail.first_failing)}"] if detail.first_failing else []
    cause = "Possible cause" if detail.ambiguous else "Root cause"
    out += _some([f"- {cause}: {md(c.title)}, {md(c.where)}: {md(c.reason, 400)}" for c in detail.causes], 3)
    out += [f"- {md(said)}" for said in detail.hints]
    out += ["- Which step began it is ambiguous."] if detail.ambiguous and detail.causes else []
    failing = [step for step in detail.steps if step.verdict == "fail"]
    out += _some([f"- Step {s.number} ({md(s.kind)} {md(s.name, 60)}) fail: {md(s.reason, 400)}" for s in failing], 5)
    out += _some([f"- Recovered: {md(said, 300)}" for said in detail.recovered], 3)
    return out


def _some(lines: Sequence[str], most: int) -> list[str]:
    """The first of these lines, and how many are left out."""
    more = len(lines) - most
    return [*lines[:most], f"- … and {more} more, in report.html"] if more > 0 else list(lines)


_WRONG = ("missing", "unexpected")


def _budgets(report: Report) -> list[str]:
    def amount(value: float | None, unit: str) -> str:
        return seconds(value) if unit == "s" else number(value)

    rows = [
        (
            line.name,
            amount(line.limit, line.unit) if line.limit is not None else "none",
            amount(line.p50, line.unit),
            amount(line.p95, line.unit),
            amount(line.total, line.unit)
            + (f" (known part {amount(line.known_total, line.unit)})" if line.total is None and line.n else ""),
            f"{line.n}" + (f", {line.unknown} not known" if line.unknown else ""),
            str(line.over),
        )
        for line in report.budgets
    ]
    by = ["", f"Cost by {md(report.versions['prices'])}."] if "prices" in report.versions else []
    return [*_table(("", f"limit of a {_what(report)}", "p50", "p95", "total", "n", "over the limit"), rows), *by]


def _not_judged(report: Report) -> list[str]:
    told = report.not_judged
    out = [f"{told.steps:,} of {counted(told.of_steps, 'step')}, {counted(len(told.runs), report.unit)}."]
    out += ["", *(f"- {counted(n, 'step')}: {md(reason)}" for reason, n in told.reasons)] if told.reasons else []
    out += ["", *(f"- {md(run.name)}: {md(_why(run), 600)}" for run in told.runs[:20])] if told.runs else []
    out += [f"- … and {len(told.runs) - 20} more"] if len(told.runs) > 20 else []
    return [*out, "", told.advice] if told.advice else out


def _why(run: RunLine) -> str:
    return "; ".join(run.reasons) if run.reasons else "no evidence for or against it"


def _health(report: Report) -> list[str]:
    health = report.health
    out = [f"{counted(health.traces, 'trace')}, {health.damaged} damaged. Quality: {in_words(health.quality)}."]
    out += ["", md(health.notice)] if health.notice else []
    out += (
        ["", *(f"- {md(code)} ({severity}) ×{n}: {md(said)}" for code, severity, n, said in health.codes)]
        if health.codes
        else []
    )
    out += [
        "",
        *(
            f"- quality {decimals(found)}: trace {md(beside(trace_id, session))}"
            for trace_id, found, session in health.lowest
        ),
    ]
    return out if health.lowest else out[:-1]


def _receipt(report: Report) -> list[str]:
    said = [(md(str(name)), md(_flat(part), 300)) for name, part in report.receipt.items()]
    use = report.judge
    cost = f"{number(use.cost_usd)} USD" if use.cost_usd is not None else "cost not known"
    judge = f"{use.name}: {use.calls} calls, {use.cached} from the cache, {use.failed} failed, {cost}"
    rows = [*said, ("judge", md(judge)), *((md(name), md(version)) for name, version in report.versions.items())]
    return _table(("", ""), rows)


def _flat(part: object) -> str:
    if isinstance(part, dict):
        return ", ".join(f"{name} {said}" for name, said in part.items())
    return f"{len(part)}" if isinstance(part, list) else str(part)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def _code(text: str) -> str:
    return re.sub(r"[`|\s<>&]", "_", text)
