"""How much of the example's planted truth a run found: `python benchmarks/planted_truth.py RUN_FOLDER [TRUTH_FILE]`.

A failed run counts as found if its verdict is fail, a sound one as cleared if it is not. A root cause is right if the first
one named is the planted step, or one that the truth allows as well; it is listed if any of those named is.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def main(run: Path, truth_file: Path) -> None:
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
    found = cleared = first = top = listed = 0
    must_fail = [t for t in truth.values() if t["must_fail"]]
    for trial in rows(run / "trials.jsonl"):
        planted = truth[trial["case_id"], trial["trial"]]
        if not planted["must_fail"]:
            cleared += trial["verdict"] != "fail"
            if trial["verdict"] == "fail":
                print(f"false alarm: {trial['case_id']} #{trial['trial']}: {trial['reasons']}")
            continue
        found += trial["verdict"] == "fail"
        allowed = {planted["root"]["step"], *(a["step"] if isinstance(a, dict) else a for a in planted["also"])}
        told = (
            attributions[trial["trace_ids"][0]]
            if trial["trace_ids"]
            else {"root_causes": [], "first_failing_step": None}
        )
        trace = trial["trace_ids"][0] if trial["trace_ids"] else ""
        causes = [ordinal.get((trace, cause["step_id"])) for cause in told["root_causes"]]
        first += ordinal.get((trace, told["first_failing_step"])) in allowed
        top += bool(causes) and causes[0] in allowed
        listed += bool(allowed & set(causes))
        if not causes or causes[0] not in allowed:
            print(
                f"missed: {trial['case_id']} #{trial['trial']} {planted['fault']}: planted {sorted(allowed)}, "
                f"named {causes}, first failing {ordinal.get((trace, told['first_failing_step']))}: {trial['reasons'][:2]}"
            )
    n = len(must_fail)
    print(f"failed runs found {found}/{n}, sound runs cleared {cleared}/{len(truth) - n}")
    print(f"root cause right {top}/{n}, among those listed {listed}/{n}; first failing step right {first}/{n}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "examples/support_desk/truth.jsonl")
