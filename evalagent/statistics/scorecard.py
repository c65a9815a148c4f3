"""The numbers of a run, each with n, interval and coverage. What is not defined is None, never 0."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from evalagent.model import Json, Step
from evalagent.outcomes.budgeting import over_budget, unknown_budget
from evalagent.records import RunRecord
from evalagent.statistics import passes
from evalagent.statistics.intervals import Interval, pass_hat_k_interval, quantiles, rate_interval
from evalagent.statistics.units import Unit, units

SEVERITIES = ("costly", "normal", "harmless")


@dataclass(frozen=True, slots=True)
class Success:
    """Runs that passed of those judged; the others stand apart, and bound what the rate could have been."""

    passed: int
    n: int
    """Judged runs."""
    rate: float | None
    """None without judged runs, and where those that are judged are a selection of failures (see `scorecard`)."""
    interval: Interval | None
    """95 %, clustered by case; None where there is no rate."""
    not_judged: int
    worst: float | None
    """The rate if every run not judged had failed."""
    best: float | None
    """The rate if every run not judged had passed."""

    @property
    def selected(self) -> bool:
        """Some runs are judged, but mostly because they failed: they say nothing of the share that pass."""
        return self.rate is None and self.n > 0


@dataclass(frozen=True, slots=True)
class AllOfK:
    """pass^k: that k runs of a case all pass, over the cases with at least k judged runs."""

    k: int
    rate: float | None
    interval: Interval | None
    cases: int
    of_cases: int
    worst: float | None
    best: float | None
    """Both over all cases with at least k runs, the runs not judged taken as failed or as passed."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many steps have a verdict of pass or fail."""

    steps: int
    judged: int
    share: float | None
    by_kind: Mapping[str, tuple[int, int]]
    """kind -> (judged, all)"""
    by_judge: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Spent:
    """One thing spent, over runs. `total` is None as soon as one run's part is not known."""

    total: float | None
    known_total: float | None
    """Of the runs where it is known; None if there is none."""
    n: int
    unknown: int
    p50: float | None
    p95: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class Within:
    """Runs within every budget, of those where that can be told."""

    within: int
    n: int
    rate: float | None
    interval: Interval | None
    unknown: int


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed runs of one severity, and the cases they belong to."""

    failed: int
    n: int
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FirstFailing:
    """How many failed runs first went wrong in a step of this kind, aspect and name; kind None: no step was found."""

    kind: str | None
    aspect: str | None
    name: str | None
    runs: int


@dataclass(frozen=True, slots=True)
class Scorecard:
    """All of it. `unit` says what a run is: a trial, or a trace where there are no trials."""

    unit: str
    runs: int
    cases: int
    success: Success
    pass_hat_k: tuple[AllOfK, ...]
    """For k = 1 to the trials of a case; empty without trials."""
    open: Success | None
    held_out: Success | None
    """Both None unless some case is held out."""
    intermittent: tuple[str, ...]
    """Cases that passed some of their judged runs and failed others."""
    coverage: Coverage
    steps: Spent
    tokens: Spent
    cost_usd: Spent
    wall_s: Spent
    within_budget: Within | None
    """None without budgets."""
    failures: Mapping[str, Failures]
    first_failing: tuple[FirstFailing, ...]
    """Most frequent first."""

    def to_json(self) -> dict[str, Json]:
        """Plain JSON values; shares rounded to 6 digits."""
        rounded: dict[str, Json] = _rounded(asdict(self))
        return rounded


def scorecard(record: RunRecord) -> Scorecard:
    """The scorecard of a run, or of an evaluation of given traces.

    Rules alone find failures in a given trace and hardly ever can say that all of it is right: what they judged is a
    selection. Where they leave traces not judged there is no rate and no interval, only the bounds.
    """
    runs = units(record)
    whole = bool(record.trials) or record.judge.name not in ("rules", "none")
    by_case: dict[str, list[Unit]] = defaultdict(list)
    for run in runs:
        by_case[run.case_id].append(run)
    held_out = any(run.held_out for run in runs)
    return Scorecard(
        unit="trial" if record.trials else "trace",
        runs=len(runs),
        cases=len(by_case),
        success=_success(runs, record.seed, whole or all(run.verdict != "not_judged" for run in runs)),
        pass_hat_k=_pass_hat_k(list(by_case.values()), record.seed) if record.trials else (),
        open=_success([run for run in runs if not run.held_out], record.seed) if held_out else None,
        held_out=_success([run for run in runs if run.held_out], record.seed) if held_out else None,
        intermittent=tuple(
            case for case, mine in sorted(by_case.items()) if {"pass", "fail"} <= {run.verdict for run in mine}
        ),
        coverage=_coverage(record),
        steps=_spent(run.steps for run in runs),
        tokens=_spent(run.tokens for run in runs),
        cost_usd=_spent(run.cost_usd for run in runs),
        wall_s=_spent(run.wall_s for run in runs),
        within_budget=_within(record, runs),
        failures=_failures(runs),
        first_failing=_first_failing(record, runs),
    )


def counts_of(runs: Iterable[Unit], hit: Callable[[Unit], bool]) -> list[tuple[int, int]]:
    """(hits, judged runs) for each case that has judged runs."""
    counts: dict[str, list[int]] = {}
    for run in runs:
        if run.verdict != "not_judged":
            pair = counts.setdefault(run.case_id, [0, 0])
            pair[0] += hit(run)
            pair[1] += 1
    return [(c, n) for c, n in counts.values()]


def _success(runs: Sequence[Unit], seed: int, fair: bool = True) -> Success:
    counts = counts_of(runs, lambda run: run.verdict == "pass")
    passed, n = sum(c for c, _ in counts), sum(n for _, n in counts)
    return Success(
        passed,
        n,
        passed / n if n and fair else None,
        rate_interval(counts, seed) if fair else None,
        len(runs) - n,
        passed / len(runs) if runs else None,
        (passed + len(runs) - n) / len(runs) if runs else None,
    )


def _pass_hat_k(cases: Sequence[Sequence[Unit]], seed: int) -> tuple[AllOfK, ...]:
    tallies = [
        (sum(r.verdict == "pass" for r in case), sum(r.verdict != "not_judged" for r in case), len(case))
        for case in cases
    ]
    found = []
    for k in range(1, max((of for _, _, of in tallies), default=0) + 1):
        judged = [(c, n) for c, n, _ in tallies if n >= k]
        all_ = [(c, n, of) for c, n, of in tallies if of >= k]
        found.append(
            AllOfK(
                k,
                passes.pass_hat_k(judged, k),
                pass_hat_k_interval(judged, k, seed),
                len(judged),
                len(tallies),
                passes.pass_hat_k([(c, of) for c, _, of in all_], k),
                passes.pass_hat_k([(c + of - n, of) for c, n, of in all_], k),
            )
        )
    return tuple(found)


def _coverage(record: RunRecord) -> Coverage:
    judges: dict[tuple[str, str], str] = {}
    for verdict in record.verdicts:
        if verdict.step_id is not None and verdict.verdict != "not_judged":
            judges.setdefault((verdict.trace_id, verdict.step_id), verdict.judge)
    by_kind: dict[str, list[int]] = {}
    by_judge: Counter[str] = Counter()
    for trace in record.traces:
        for step in trace.steps:
            pair = by_kind.setdefault(step.kind, [0, 0])
            pair[1] += 1
            judge = judges.get((trace.trace_id, step.step_id))
            if judge is not None:
                pair[0] += 1
                by_judge[judge] += 1
    steps, judged = sum(n for _, n in by_kind.values()), sum(by_judge.values())
    return Coverage(
        steps,
        judged,
        judged / steps if steps else None,
        {kind: (some, n) for kind, (some, n) in sorted(by_kind.items())},
        dict(sorted(by_judge.items())),
    )


def _spent(amounts: Iterable[float | None]) -> Spent:
    all_ = list(amounts)
    known = [amount for amount in all_ if amount is not None]
    total = round(sum(known), 9) if known else None
    p50, p95, top = quantiles(known, (0.5, 0.95, 1.0))
    return Spent(total if len(known) == len(all_) else None, total, len(known), len(all_) - len(known), p50, p95, top)


def _within(record: RunRecord, runs: Sequence[Unit]) -> Within | None:
    if record.budgets is None:
        return None
    told: dict[str, list[int]] = {}
    unknown = 0
    for run in runs:
        spent = {"steps": run.steps, "tokens": run.tokens, "cost_usd": run.cost_usd, "wall_s": run.wall_s}
        over = over_budget(record.budgets, **spent)  # type: ignore[arg-type]
        if not over and unknown_budget(record.budgets, **spent):  # type: ignore[arg-type]
            unknown += 1
            continue
        pair = told.setdefault(run.case_id, [0, 0])
        pair[0] += not over
        pair[1] += 1
    counts = [(c, n) for c, n in told.values()]
    within, n = sum(c for c, _ in counts), sum(n for _, n in counts)
    return Within(within, n, within / n if n else None, rate_interval(counts, record.seed), unknown)


def _failures(runs: Sequence[Unit]) -> dict[str, Failures]:
    found = {}
    for severity in SEVERITIES:
        mine = [run for run in runs if run.severity == severity and run.verdict != "not_judged"]
        failed = [run for run in mine if run.verdict == "fail"]
        found[severity] = Failures(len(failed), len(mine), tuple(sorted({run.case_id for run in failed})))
    return found


def _first_failing(record: RunRecord, runs: Sequence[Unit]) -> tuple[FirstFailing, ...]:
    first = {a.trace_id: a.first_failing_step for a in record.attributions if a.first_failing_step is not None}
    tally: Counter[tuple[str | None, str | None, str | None]] = Counter()
    for run in runs:
        if run.verdict != "fail":
            continue
        step = first_failing_step(run, first)
        tally[(step.kind, step.aspect, step.name) if step else (None, None, None)] += 1
    rows = sorted(tally.items(), key=lambda row: (-row[1], row[0][0] is None, tuple(part or "" for part in row[0])))
    return tuple(FirstFailing(*key, runs=n) for key, n in rows)


def first_failing_step(run: Unit, first: Mapping[str, str]) -> Step | None:
    """The first failing step of a run; `first` is trace id -> step id. Of several traces the earliest that has one."""
    for trace in run.traces:
        wanted = first.get(trace.trace_id)
        if wanted is not None:
            return next((step for step in trace.steps if step.step_id == wanted), None)
    return None


def _rounded(value: Json) -> Json:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
