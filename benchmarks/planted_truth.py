"""How much of the example's planted truth a run found.

    python benchmarks/planted_truth.py RUN_FOLDER [TRUTH_FILE]        a run that is there
    python benchmarks/planted_truth.py --seeds 7 1 2 3 [--trials 4]   other truths: drawn, run and judged by rules here

A failed run counts as found if its verdict is fail, a sound one as cleared if it is not. A root cause is right if the
first one named is the planted step, or one that the truth allows as well; it is listed if any of those named is.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "support_desk"


@dataclass
class Score:
    """Counts over the trials of one run, and what was missed."""

    failed: int = 0
    sound: int = 0
    found: int = 0
    cleared: int = 0
    right: int = 0
    listed: int = 0
    first: int = 0
    certain: int = 0
    """Runs whose attribution is not ambiguous."""
    certain_right: int = 0
    misses: list[str] = field(default_factory=list)

    def told(self) -> str:
        return (
            f"failed runs found {self.found}/{self.failed}, sound runs cleared {self.cleared}/{self.sound}\n"
            f"root cause right {self.right}/{self.failed}, among those listed {self.listed}/{self.failed}; "
            f"first failing step right {self.first}/{self.failed}\n"
            f"claimed without doubt {self.certain}/{self.failed}, of those right {self.certain_right}/{self.certain}"
        )


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def score(run: Path, truth_file: Path) -> Score:
    """A run folder held against a truth."""
    truth = {(t["case_id"], t["trial"]): t for t in rows(truth_file)}
    steps: dict[str, list[dict[str, Any]]] = {}
    for step in rows(run / "steps.jsonl"):
        if step["kind"] in ("llm", "tool"):
            steps.setdefault(step["trace_id"], []).append(step)
    ordinal = {
        (trace, step["step_id"]): n
        for trace, mine in steps.items()
        for n, step in enumerate(sorted(mine, key=lambda s: s["start_ns"]), 1)
    }
    attributions = {a["trace_id"]: a for a in rows(run / "attributions.jsonl")}
    nothing = {"root_causes": [], "first_failing_step": None, "ambiguous": True}
    result = Score()
    for trial in rows(run / "trials.jsonl"):
        planted = truth[trial["case_id"], trial["trial"]]
        label = f"{trial['case_id']} #{trial['trial']}"
        if not planted["must_fail"]:
            result.sound += 1
            result.cleared += trial["verdict"] != "fail"
            if trial["verdict"] == "fail":
                result.misses.append(f"false alarm: {label}: {trial['reasons']}")
            continue
        allowed = {planted["root"]["step"], *(a["step"] if isinstance(a, dict) else a for a in planted["also"])}
        trace = trial["trace_ids"][0] if trial["trace_ids"] else ""
        told = attributions.get(trace, nothing)
        causes = [ordinal.get((trace, cause["step_id"])) for cause in told["root_causes"]]
        first = ordinal.get((trace, told["first_failing_step"]))
        right = bool(causes) and causes[0] in allowed
        result.failed += 1
        result.found += trial["verdict"] == "fail"
        result.first += first in allowed
        result.right += right
        result.listed += bool(allowed & set(causes))
        result.certain += bool(causes) and not told["ambiguous"]
        result.certain_right += right and not told["ambiguous"]
        if not right:
            result.misses.append(
                f"missed: {label} {planted['fault']}: planted {sorted(allowed)}, named {causes}, "
                f"first failing {first}: {trial['reasons'][:2]}"
            )
    return result


def collected(folder: Path, seed: int, trials: int) -> tuple[Path, Path]:
    """Runs the example with the faults of a seed, in processes and judged by rules; run folder and truth file."""
    from evalagent.adapters import pipeline, runs, settings
    from evalagent.adapters.collection import Collection

    truth = folder / "truth.jsonl"
    drawn = subprocess.run(
        [sys.executable, EXAMPLE / "truth.py", str(seed), str(trials)], capture_output=True, text=True, check=True
    )
    shutil.copytree(EXAMPLE, folder / "desk", ignore=shutil.ignore_patterns(".evalagent", "__pycache__"))
    truth.write_text(drawn.stdout)
    suite = folder / "desk" / "suite.yaml"
    plan = runs.open_run(suite, home=folder / "home", trials=trials, only=(), judge="rules", sandbox="process")
    before = os.environ.get("DESK_SEED")
    os.environ["DESK_SEED"] = str(seed)
    try:
        with Collection(plan, settings.read_settings({})) as collection, ThreadPoolExecutor(3) as pool:
            list(pool.map(collection.collect, runs.planned_trials(plan)))
    finally:
        os.environ.pop("DESK_SEED")
        if before is not None:
            os.environ["DESK_SEED"] = before
    for stage in (pipeline.ingest, pipeline.build_steps, pipeline.grade, pipeline.check):
        stage(plan)
    pipeline.save_verdicts(plan, (), {})
    pipeline.attribute(plan)
    return plan.path, truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("truth", type=Path, nargs="?", default=EXAMPLE / "truth.jsonl")
    parser.add_argument("--seeds", type=int, nargs="+", default=[])
    parser.add_argument("--trials", type=int, default=4)
    given = parser.parse_args()
    if (given.run is None) == (not given.seeds):
        parser.error("give a run folder, or --seeds")
    if given.run is not None:
        found = score(given.run, given.truth)
        print(*found.misses, found.told(), sep="\n")
        return
    total = Score()
    for seed in given.seeds:
        with tempfile.TemporaryDirectory(prefix="planted-") as folder:
            found = score(*collected(Path(folder), seed, given.trials))
        print(f"seed {seed}", *found.misses, found.told(), sep="\n", flush=True)
        *counts, misses = [a + b for a, b in zip(astuple(total), astuple(found), strict=True)]
        total = Score(*counts, misses)
    if len(given.seeds) > 1:
        print(f"all {len(given.seeds)} seeds", total.told(), sep="\n")


if __name__ == "__main__":
    main()
