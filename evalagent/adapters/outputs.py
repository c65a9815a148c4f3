"""The output folder of `evaluate` and `run`: the same files with the same rows, whoever made the record."""

from collections.abc import Iterable
from pathlib import Path

from evalagent import rows
from evalagent.adapters.files import (
    OUTPUTS,
    read_object,
    shown,
    write_bytes,
    write_json,
    write_lines,
    write_parts,
    wrote,
)
from evalagent.errors import UsageError
from evalagent.records import RunRecord
from evalagent.reporting import html, junit, markdown
from evalagent.reporting import json as report_json
from evalagent.reporting.composing import Report, Whole, compose
from evalagent.summaries import summary

RENDERERS = {
    "html": ("report.html", html.render),
    "md": ("report.md", markdown.render),
    "json": ("report.json", report_json.render),
    "junit": ("junit.xml", junit.render),
}
"""Format -> file name and renderer."""
_RECEIPT = {"spans_in", "step_spans", "containers", "rejected"}
"""Keys by which a receipt is told to be one."""


def write_record(
    record: RunRecord, folder: Path, *, steps: Iterable[bytes] | None = None, whole: Whole | None = None
) -> Report:
    """Write every output file of a record. receipt.json comes first and tells the folder to be ours; summary.json comes
    last: where it stands, the rest is whole.

    `steps` and `whole` where the record's traces are outlines: the lines of steps.jsonl, and the traces that the report
    tells in full.
    """
    write_json(folder / "receipt.json", record.receipt)
    traces = {trace.trace_id: trace for trace in record.traces}
    order = {(t, step.step_id): n for t, trace in traces.items() for n, step in enumerate(trace.steps)}
    if steps is None:
        write_lines(folder / "steps.jsonl", rows.step_rows(record.traces))
    else:
        write_parts(folder / "steps.jsonl", steps)
    findings = sorted(
        record.findings, key=lambda f: (f.trace_id, order.get((f.trace_id, f.step_id or ""), -1), f.code, f.message)
    )
    write_lines(folder / "findings.jsonl", map(rows.finding_row, findings))
    verdicts = sorted(
        record.verdicts, key=lambda v: (v.trace_id, order.get((v.trace_id, v.step_id or ""), -1), v.metric, v.judge)
    )
    write_lines(folder / "verdicts.jsonl", map(rows.verdict_row, verdicts))
    attributions = sorted(record.attributions, key=lambda a: a.trace_id)
    write_lines(folder / "attributions.jsonl", map(rows.attribution_row, attributions))
    outcomes = sorted(record.outcomes, key=lambda o: (o.case_id, o.trial))
    write_lines(folder / "outcomes.jsonl", map(rows.outcome_row, outcomes))
    trials = sorted(record.trials, key=lambda t: (t.case_id, t.trial))
    write_lines(folder / "trials.jsonl", map(rows.trial_row, trials))
    report = compose(record, whole)
    for name, render in RENDERERS.values():
        write_bytes(folder / name, render(report).encode("utf-8", "replace"))
    write_json(folder / "summary.json", summary(record))
    return report


def discard(folder: Path) -> None:
    """Remove what an earlier evaluation wrote, so that no file of it stands beside those of the next.

    Only the known names, and only where summary.json or receipt.json is one of ours.
    """
    if not wrote(folder) and not read_object(folder / "receipt.json").keys() >= _RECEIPT:
        return
    for name in sorted(OUTPUTS):
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"cannot be removed: {error.strerror}", file=shown(folder / name)) from error
