"""Two stored runs, compared."""

from dataclasses import dataclass
from pathlib import Path

from evalagent.adapters import runs
from evalagent.adapters.files import load_suite, read_lines
from evalagent.errors import UsageError
from evalagent.statistics import comparing
from evalagent.statistics.comparing import Comparison


@dataclass(frozen=True, slots=True)
class Compared:
    comparison: Comparison
    text: str

    @property
    def worse(self) -> bool:
        return self.comparison.worse


def compare(earlier: str, later: str, home: Path, max_drop: float | None = None) -> Compared:
    """UsageError if either run does not exist or has no trials."""
    folders = [runs.find_run(name, home) for name in (earlier, later)]
    counts = [passed_of_judged(folder) for folder in folders]
    allowed = (
        max_drop if max_drop is not None else load_suite(Path(runs.read_run(folders[1])["suite_file"]))[0].gate.max_drop
    )
    result = comparing.compare(counts[0], counts[1], allowed)
    return Compared(result, _text(folders, result))


def passed_of_judged(folder: Path) -> dict[str, tuple[int, int]]:
    """Case id → (passed, judged) of a run's trials; held-out cases too."""
    rows = read_lines(folder / "trials.jsonl")
    if not rows:
        raise UsageError(
            "has no judged trials to compare: `evalagent run` makes them, and an evaluation of given traces has none",
            file=str(folder),
        )
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        passed, judged = found.get(row["case_id"], (0, 0))
        if row["verdict"] != "not_judged":
            found[row["case_id"]] = (passed + (row["verdict"] == "pass"), judged + 1)
        else:
            found.setdefault(row["case_id"], (0, 0))
    return found


def baseline(suite: str, home: Path, but: str) -> Path | None:
    """The last finished run of a suite that passed its gate, else its first finished run; never the run `but`."""
    found = []
    for path in sorted((home / "runs").glob("*/run.json")):
        told = runs.read_run(path.parent)
        if told.get("suite") == suite and told.get("finished") and path.parent.name != but:
            found.append((told["finished"], told.get("passed_gate") is True, path.parent))
    good = [item for item in found if item[1]]
    return max(good)[2] if good else min(found)[2] if found else None


def _text(folders: list[Path], result: Comparison) -> str:
    lines = [f"before  {folders[0].name}", f"after   {folders[1].name}", ""]
    width = max([len(c.case_id) for c in result.cases], default=4)
    for change in result.cases:
        (p, n), (q, m) = change.before, change.after
        mark = "worse" if q / m < p / n else "better" if q / m > p / n else ""
        lines.append(f"  {change.case_id:<{width}}  {p} of {n} → {q} of {m}  {mark}".rstrip())
    if result.left_out:
        lines.append(f"  left out, judged in one run only: {', '.join(result.left_out)}")
    lines.append("")
    if result.drop is None:
        lines.append("no case was judged in both runs: nothing can be said")
        return "\n".join(lines)
    moved = "fell" if result.drop > 0 else "rose" if result.drop < 0 else "stayed"
    lines.append(f"the success rate {moved}" + (f" by {abs(result.drop):.0%}" if result.drop else ""))
    if result.interval:
        low, high = -result.interval.high, -result.interval.low
        lines.append(f"change with 95 % interval: {low:+.0%} to {high:+.0%} over {len(result.cases)} cases")
    if result.collapsed:
        lines.append(
            f"worse: {', '.join(result.collapsed)} fell beyond chance (Fisher's exact test, Holm's correction)"
        )
    elif result.worse:
        lines.append(f"worse: the whole interval is beyond the loss of {result.max_drop:.0%} that the suite allows")
    elif result.ruling == "undecided":
        lines.append(
            f"undecided: it fell by more than the {result.max_drop:.0%} allowed; with {len(result.cases)} cases and so "
            "few runs of each that may be chance: more cases or --trials tell"
        )
    else:
        lines.append("nothing speaks for a loss")
    return "\n".join(lines)
