"""What a run over its budget is blamed on, where one thing stands out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evalagent.model import Finding


def blamed_for_overrun(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings of one trace, with the largest repetition of a run over its budget no longer a warning but an error:
    it began where the overrun began. Without an overrun or a repetition, and done twice, nothing changes."""
    loops = [f for f in findings if f.code == "loop" and f.step_id is not None]
    over = any(f.code == "over_budget" and f.severity == "error" for f in findings)
    open_ = [f for f in loops if f.severity == "warning"]
    if not over or not open_ or any(f.severity == "error" for f in loops):
        return tuple(findings)
    largest = max(open_, key=_times)
    raised = replace(largest, severity="error", message=f"{largest.message}, and the run went over its budget")
    return tuple(raised if finding is largest else finding for finding in findings)


def _times(finding: Finding) -> int:
    times = finding.evidence.get("times") if isinstance(finding.evidence, Mapping) else None
    return times if isinstance(times, int) else 0
