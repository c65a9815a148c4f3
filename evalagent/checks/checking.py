"""All rules over one trace. Pure, and near-linear in the trace's content."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from evalagent.checks.answers import answer_findings
from evalagent.checks.arguments import undeclared_and_malformed
from evalagent.checks.calls import read_calls
from evalagent.checks.codes import CODES, COMPLETE, CodeInfo
from evalagent.checks.execution import failures, loops, lost, other_failures, repetitions
from evalagent.checks.expecting import expectation_findings
from evalagent.checks.grounding import ungrounded_values, unseen_ids
from evalagent.checks.settings import Settings, read_settings
from evalagent.checks.sightings import read_sightings
from evalagent.model import Expectation, Finding, Json, Trace

__all__ = ["COMPLETE", "CodeInfo", "check", "known_codes", "read_settings"]


def known_codes() -> Mapping[str, CodeInfo]:
    """Every code of the checks: default severity, meaning, category of the taxonomy, and whose fault it is."""
    return CODES


def check(
    trace: Trace, expectation: Expectation | None = None, settings: Mapping[str, Json] | None = None
) -> tuple[Finding, ...]:
    """What the rules find in a trace, in the order of its steps; findings on the whole trace (step_id None) come last.

    An error that a later step made good has severity info and evidence `recovered_by`. `settings` is the `checks`
    part of a suite; UsageError for a code or an option that does not exist.
    """
    wanted = expectation or Expectation()
    chosen = read_settings(settings)
    calls = read_calls(trace)
    found: list[Finding] = []
    found += undeclared_and_malformed(trace, wanted, calls)
    found += failures(calls)
    found += other_failures(trace)
    found += repetitions(calls, chosen)
    found += loops(calls, chosen)
    found += lost(trace, calls)
    if not {"id_never_seen", "ungrounded_value"} <= chosen.off:
        seen = read_sightings(trace, wanted)
        found += unseen_ids(trace, calls, seen)
        found += ungrounded_values(trace, calls, seen, chosen)
    found += answer_findings(trace, wanted, calls)
    found += expectation_findings(trace, wanted, calls)
    return _ordered(_tuned(found, chosen), calls.positions)


def _tuned(found: Iterable[Finding], settings: Settings) -> list[Finding]:
    """Without what is switched off, and as heavy as the suite says; what was made good stays info."""
    kept = []
    for finding in found:
        if finding.code in settings.off:
            continue
        severity = settings.severities.get(finding.code)
        kept.append(replace(finding, severity=severity) if severity and finding.severity != "info" else finding)
    return kept


def _ordered(found: list[Finding], positions: Mapping[str, int]) -> tuple[Finding, ...]:
    end = len(positions)
    return tuple(
        sorted(found, key=lambda f: (end if f.step_id is None else positions.get(f.step_id, end), f.code, f.message))
    )
