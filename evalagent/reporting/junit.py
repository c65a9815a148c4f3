"""The report as JUnit XML, for CI: one test case for each trial, or for each trace where there are no trials.

There is a `<failure>` if and only if the exit code is 1. What is not judged is an `<error>` where it is a reason for
the exit code, else `<skipped>`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from evalagent.reporting.headlines import selection
from evalagent.reporting.quality import in_words
from evalagent.reporting.report import Report, RunLine
from evalagent.reporting.wording import line, percent, span

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    group: str
    seconds: float | None
    outcome: str
    """"", failure, error or skipped."""
    message: str
    body: str


def render(report: Report) -> str:
    """A whole XML document; characters that XML cannot hold are replaced."""
    cases = [_case(report, run) for run in report.runs]
    cases += _rest(report, cases)
    suite = _attribute(report.title)
    tally = {outcome: sum(case.outcome == outcome for case in cases) for outcome in ("failure", "error", "skipped")}
    numbers = (
        f'tests="{len(cases)}" failures="{tally["failure"]}" errors="{tally["error"]}" skipped="{tally["skipped"]}"'
    )
    known = [case.seconds for case in cases if case.seconds is not None]
    if known:
        numbers += f' time="{sum(known):.3f}"'
    out = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={suite} {numbers}>",
        f"<testsuite name={suite} {numbers}>",
        "<properties>",
        *(f"<property name={_attribute(name)} value={_attribute(said)}/>" for name, said in _properties(report)),
        "</properties>",
        *(_element(case) for case in cases),
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(out) + "\n"


def _case(report: Report, run: RunLine) -> _Case:
    name = run.name if run.trial is None else f"{run.case_id} trial {run.trial}"
    group = f"{report.title}.{run.case_id}" if run.trial is not None else report.title
    first = run.reasons[0] if run.reasons else ""
    body = "\n".join([*run.reasons[:20], *_where(report, run)])
    if run.verdict == "pass":
        return _Case(name, group, run.wall_s, "", "", "")
    if run.verdict == "fail":
        if report.exit_code == 1:
            return _Case(name, group, run.wall_s, "failure", first or "failed", body)
        return _Case(name, group, run.wall_s, "error", f"failed, but it does not count: {first}", body)
    counts = report.exit_code in (3, 4) or (report.exit_code == 1 and (run.trial is not None or run.damaged))
    said = f"not judged: {first or 'no evidence for or against it'}"
    return _Case(name, group, run.wall_s, "error" if counts else "skipped", said, body if counts else "")


def _rest(report: Report, cases: Sequence[_Case]) -> list[_Case]:
    """What no test case shows: reasons of the exit code that belong to no run."""
    shown = {case.outcome for case in cases}
    said = report.reasons[0] if report.reasons else f"exit code {report.exit_code}"
    body = "\n".join(report.reasons)
    if report.exit_code == 1 and "failure" not in shown:
        return [_Case("the whole run", report.title, None, "failure", said, body)]
    if report.exit_code not in (0, 1) and "error" not in shown:
        return [_Case("the whole run", report.title, None, "error", f"not judged: {said}", body)]
    return []


def _where(report: Report, run: RunLine) -> list[str]:
    """First failing step and root causes, for those who read only the CI log."""
    for detail in report.failed:
        if detail.line.case_id == run.case_id and detail.line.trial == run.trial:
            word = "possible cause" if detail.ambiguous else "root cause"
            said = [f"first failing step: {detail.first_failing}"] if detail.first_failing else []
            said += [f"{word}: {cause.title}, {cause.where}: {line(cause.reason, 300)}" for cause in detail.causes[:3]]
            said += [line(hint, 400) for hint in detail.hints]
            said += [f"world: {change.state}: {change.text}" for change in detail.world if change.state in _WRONG][:10]
            return said
    return []


_WRONG = ("missing", "unexpected")


def _properties(report: Report) -> list[tuple[str, str]]:
    success = report.scorecard.success
    passed = f"{success.passed} of {success.n} judged, {percent(success.rate)}, {span(success.interval)}"
    return [
        ("run_id", report.run_id),
        ("exit_code", str(report.exit_code)),
        ("verdict", report.headline.word.lower()),
        ("success", selection(success) if success.selected else passed),
        ("steps_judged", f"{report.scorecard.coverage.judged} of {report.scorecard.coverage.steps}"),
        ("trace_quality", in_words(report.health.quality)),
        *((f"version.{name}", version) for name, version in report.versions.items()),
    ]


def _element(case: _Case) -> str:
    seconds = f' time="{case.seconds:.3f}"' if case.seconds is not None else ""
    head = f"<testcase name={_attribute(case.name)} classname={_attribute(case.group)}{seconds}"
    if not case.outcome:
        return f"{head}/>"
    body = f">{_text(case.body)}</{case.outcome}>" if case.body else "/>"
    return f"{head}><{case.outcome} message={_attribute(line(case.message, 400))}{body}</testcase>"


def _attribute(text: str) -> str:
    said = _text(text).replace("\n", "&#10;").replace("\t", "&#9;").replace("\r", "&#13;")
    return f'"{said}"'


def _text(text: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", text))
