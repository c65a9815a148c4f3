"""How often each check fires on labelled runs that passed and on runs that failed.

    python benchmarks/checks_on_labelled.py DATA_DIR [--otlp] [--show CODE]

DATA_DIR holds `NAME.steps.jsonl.gz` (a run a line: steps with parents, and `gold.failed`) and, for `--otlp`,
`NAME.otlp.jsonl.gz` (the same runs as OTLP/JSON requests). Nothing is written. With `--show` the findings of one code
are printed. For runs whose gold names a step, how often the rules alone name the same one, with Wilson's interval.
"""

import argparse
import collections
import gzip
import json
import math
import sys
from pathlib import Path
from typing import Any

from evalagent.attribution.attributing import attribute
from evalagent.checks.checking import check
from evalagent.judging.deciding import decide
from evalagent.model import Edge, Message, Step, ToolAnswer, ToolRequest, Trace


def trace_of(run: dict[str, Any]) -> Trace:
    """A run's steps as a trace: histories, requests and answers as a model was given them."""
    steps: list[Step] = []
    history: list[Message] = []
    system = run.get("meta", {}).get("system_prompt")
    if system:
        history.append(Message("system", system))
    waiting: list[tuple[ToolRequest, str]] = []
    results_since: list[str] = []
    asker: str | None = None
    task = None
    for at, row in enumerate(run["steps"]):
        output = row["output"]
        if row["kind"] == "user":
            text = output if isinstance(output, str) else json.dumps(output)
            history.append(Message("user", text))
            task = task or text
            continue
        if row["kind"] == "llm":
            calls = row.get("tool_calls") or _next_calls(run["steps"], at)
            requests = [ToolRequest(call.get("id") or f"c{at}", call["name"], call["arguments"]) for call in calls]
            reply = Message("assistant", output if isinstance(output, str) else "", tuple(requests))
            parents = [Edge(p, "data", 1.0) for p in results_since] or ([Edge(asker, "data", 1.0)] if asker else [])
            steps.append(
                Step(
                    run["trace_id"], row["id"], (row["id"],), "llm", "model", at, at + 1, agent="assistant",
                    parents=tuple(parents), messages=tuple(history), reply=reply, output=output,
                )
            )  # fmt: skip
            history.append(reply)
            asker, results_since = row["id"], []
            waiting = [(r, row["id"]) for r in requests]
            continue
        request, by = next(((r, b) for r, b in waiting if r.name == row["name"]), (None, None))
        if request is not None:
            waiting.remove((request, by))  # type: ignore[arg-type]
        steps.append(
            Step(
                run["trace_id"], row["id"], (row["id"],), "tool", row["name"], at, at + 1, agent="assistant",
                parents=(Edge(by, "call", 1.0),) if by else (), arguments=row["input"], result=output,
                error=row["error"] if isinstance(row["error"], str) else (str(output) if row["error"] else None),
                call_id=request.id if request else None, request_step=by,
            )
        )  # fmt: skip
        history.append(Message("tool", "", (), (ToolAnswer(request.id if request else None, row["name"], output),)))
        results_since.append(row["id"])
    final = next((s.reply.text for s in reversed(steps) if s.kind == "llm" and s.reply and not s.reply.requests), None)
    return Trace(run["trace_id"], tuple(steps), task=task, answer=final)


def _next_calls(rows: list[dict[str, Any]], at: int) -> list[dict[str, Any]]:
    calls = []
    for row in rows[at + 1 :]:
        if row["kind"] != "tool":
            break
        calls.append({"id": f"c{row['id']}", "name": row["name"], "arguments": row["input"]})
    return calls


def wilson(hits: int, n: int) -> str:
    if not n:
        return "n = 0"
    z, p = 1.96, hits / n
    mid = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return f"{hits}/{n} = {p:.0%} [{mid - half:.0%}, {mid + half:.0%}]"


def said(name: str, bad: list[int], count: list[int]) -> None:
    print(f"{name:12} error findings: passed {wilson(bad[0], count[0])}, failed {wilson(bad[1], count[1])}")


def from_otlp(path: Path, runs: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Trace]]:
    """The same runs read and built from their spans, found again by `gen_ai.conversation.id`."""
    from evalagent.traces.building import build
    from evalagent.traces.reading import read

    reading = read(path.read_bytes(), path.name)
    built = build(reading.spans, reading.logs)
    conversations = {
        span.trace_id: str(span.attributes["gen_ai.conversation.id"])
        for span in reading.spans
        if "gen_ai.conversation.id" in span.attributes
    }
    by_name = {conversations.get(trace.trace_id): trace for trace in built.traces}
    return [(run, by_name[run["trace_id"]]) for run in runs if run["trace_id"] in by_name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--otlp", action="store_true")
    parser.add_argument("--show", default="")
    a = parser.parse_args()
    fired: dict[tuple[str, str], list[int]] = collections.defaultdict(lambda: [0, 0])
    runs_of = [0, 0]
    error_runs = [0, 0]
    first_hits = cause_hits = top_hits = named = gold_runs = 0
    for path in sorted(a.data.glob("*.steps.jsonl.gz")):
        runs = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        otlp = path.with_name(path.name.replace(".steps.", ".otlp."))
        pairs = from_otlp(otlp, runs) if a.otlp else [(run, trace_of(run)) for run in runs]
        bad = [0, 0]
        count = [0, 0]
        for run, trace in pairs:
            failed = bool(run["gold"]["failed"])
            findings = check(trace)
            count[failed] += 1
            bad[failed] += any(f.severity == "error" for f in findings)
            for key in {(f.code, f.severity) for f in findings}:
                fired[key][failed] += 1
            for f in findings:
                if f.code == a.show:
                    print("FAILED" if failed else "passed", run["trace_id"], f.step_id, f.severity, f.message[:250])
            if run["gold"].get("root_cause") and not a.otlp:
                gold_runs += 1
                found = attribute(trace, decide(trace, findings, 0.7, show=False).verdicts, findings, failed)
                named += bool(found.root_causes)
                first_hits += found.first_failing_step == run["gold"]["first_bad_step"]
                causes = [c.step_id for c in found.root_causes]
                top_hits += causes[:1] == [run["gold"]["root_cause"]]
                cause_hits += run["gold"]["root_cause"] in causes
        said(path.name.split(".")[0], bad, count)
        for side in (0, 1):
            runs_of[side] += count[side]
            error_runs[side] += bad[side]
    said("all", error_runs, runs_of)
    print(f"\n| code | severity | passed runs (n = {runs_of[0]}) | failed runs (n = {runs_of[1]}) | precision |")
    print("|---|---|---|---|---|")
    for (code, severity), (good, worse) in sorted(fired.items()):
        print(f"| `{code}` | {severity} | {good} | {worse} | {wilson(worse, good + worse)} |")
    if gold_runs:
        print(f"\nrules alone, runs with a person's label: a cause named {wilson(named, gold_runs)}")
        print(f"first failing step exact {wilson(first_hits, gold_runs)}")
        print(f"root cause exact, first of the list {wilson(top_hits, gold_runs)}")
        print(f"root cause exact, anywhere in it {wilson(cause_hits, gold_runs)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
