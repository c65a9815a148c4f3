"""One run as a value: everything that the scorecard and the report are made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evalagent.model import Attribution, Finding, Json, Outcome, Ruling, Trace, Trial, Verdict
from evalagent.suites import Budgets, Case


@dataclass(frozen=True, slots=True)
class JudgeUse:
    """What judging by a model took, and how it went."""

    name: str
    """rules, none, anthropic, bedrock, or a name from the settings."""
    models: tuple[str, ...] = ()
    calls: int = 0
    cached: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None: a model without a known price was used."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run (`evalagent run`) or an evaluation of given traces (`evalagent evaluate`: no cases, no trials)."""

    run_id: str
    title: str
    """The suite's name, or what was given to `evaluate`."""
    started: str | None
    """ISO 8601, UTC; None where the output must not depend on the clock."""
    traces: tuple[Trace, ...]
    findings: tuple[Finding, ...]
    """Health and checks together."""
    verdicts: tuple[Verdict, ...]
    attributions: tuple[Attribution, ...]
    receipt: Mapping[str, Json]
    judge: JudgeUse
    cases: Mapping[str, Case] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    budgets: Budgets | None = None
    tau: float = 0.7
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0
    verdict: Ruling = "not_judged"
    reasons: tuple[str, ...] = ()
    """Every reason for the exit code, worst first."""
