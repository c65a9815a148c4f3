"""The exit code of an evaluation, with every reason for it.

Where several hold: 1 (in a trace that is not damaged), then 4, 3, 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evalagent.evaluating import damaged
from evalagent.model import Ruling, Trace, Trial, Verdict

ORDER = (1, 4, 3)


@dataclass(frozen=True, slots=True)
class Exit:
    code: int
    verdict: Ruling
    """fail at 1; pass at 0 if everything judged passed and everything was judged; else not_judged."""
    reasons: tuple[str, ...]
    """Every reason, those of the code first."""


def exit_of(
    *,
    traces: Sequence[Trace],
    verdicts: Sequence[Verdict],
    trials: Sequence[Trial] = (),
    rejected: int = 0,
    allow_rejected: bool = False,
    asked_for_rules: bool = True,
    judge_failures: int = 0,
    floor: float = 0.0,
    budget_spent: str = "",
) -> Exit:
    """`verdicts` are those of steps and of whole traces (step_id None). With trials, their verdicts decide; without,
    those of the traces do."""
    found: list[tuple[int, str]] = []
    whole = {v.trace_id: v for v in verdicts if v.step_id is None}
    if trials:
        for trial in trials:
            where = f"case {trial.case_id}, trial {trial.trial}"
            if trial.verdict == "fail":
                found.append((1, f"{where}: {trial.reasons[0] if trial.reasons else 'failed'}"))
            elif trial.verdict == "not_judged":
                found.append((3, f"{where} not judged: {trial.reasons[0] if trial.reasons else 'no evidence'}"))
    else:
        found += [(1, f"trace {v.trace_id}: {v.reason}") for v in whole.values() if v.verdict == "fail"]
        found += [(3, f"trace {t.trace_id}: {_damage(t)}") for t in traces if damaged(t)]
    if not traces and not trials:
        found.append((3, "no trace with agent steps in the input"))
    if budget_spent:
        found.append((4, budget_spent))
    if rejected and not allow_rejected:
        found.append((3, f"{rejected} line(s) or file(s) could not be read: see `rejected` in receipt.json"))
    if judge_failures:
        found.append((3, f"the judge failed on {judge_failures} step(s): they are not judged"))
    steps = [v for v in verdicts if v.step_id is not None]
    judged = sum(v.verdict != "not_judged" for v in steps)
    if steps and judged / len(steps) < floor:
        found.append((3, f"coverage {judged}/{len(steps)} is under the floor {floor}"))
    if not asked_for_rules:
        touched = {v.trace_id for v in steps if v.verdict != "not_judged"}
        found += [
            (3, f"trace {t.trace_id}: none of its steps was judged")
            for t in traces
            if t.steps and t.trace_id not in touched
        ]
    code = next((code for code in ORDER if any(c == code for c, _ in found)), 0)
    reasons = tuple(text for _, text in sorted(found, key=lambda item: ORDER.index(item[0])))
    everything: list[Ruling] = [t.verdict for t in trials] or [v.verdict for v in whole.values()]
    passed = code == 0 and bool(everything) and all(ruling == "pass" for ruling in everything)
    return Exit(code, "fail" if code == 1 else "pass" if passed else "not_judged", reasons)


def _damage(trace: Trace) -> str:
    codes = sorted({f.code for f in trace.health})
    return "no agent steps in it" if "no_agent_steps" in codes else f"damaged ({', '.join(codes)})"
