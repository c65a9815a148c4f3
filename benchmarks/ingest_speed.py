"""From a file of spans to rows in DuckDB, against the limit and against peers, on the same spans in the same run.

    python benchmarks/ingest_speed.py                      10k and 100k spans against orjson; 10k against the peers
    python benchmarks/ingest_speed.py --large              also 540k spans (2.3 GB) and a chain of a million steps

Every figure is a ratio of wall times taken in turn (the median over the rounds): rows, and rows with steps and edges,
over `orjson.loads` of every line of the same file; spans per second over those of a peer. Each job is a process of its
own, and its memory is that of all its processes together. What a peer does for the time is said in `ingest_peers.py`;
a server pays for HTTP and its own indexes too: that is the work a user of it gets.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import generated_spans
import ingest_peers

TARGETS = {"rows": 4.5, "steps": 8.0, "phoenix": 50.0, "mlflow": 15.0, "agentevals": 1.0, "store": 0.25, "MiB": 1024}
PARSE = """
import sys, time, orjson
start = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    for line in file:
        orjson.loads(line)
print(time.perf_counter() - start)
"""
LOAD = """
import sys, time
from pathlib import Path
from evalagent.adapters import intake, rebuilding
from evalagent.adapters.files import find_inputs
from evalagent.adapters.trace_store import TraceStore
if __name__ == "__main__":
    start = time.perf_counter()
    store = TraceStore(Path(sys.argv[2]))
    came = intake.load(store, find_inputs([sys.argv[1]]))
    rows = time.perf_counter() - start
    built = rebuilding.rebuild(store)
    print(rows, time.perf_counter() - start, came.spans_in, store.path.stat().st_size)
"""


@dataclass(slots=True)
class Job:
    seconds: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    peak_mib: float = 0.0


def run(code: str, *arguments: str, watched: bool = False) -> tuple[list[str], float]:
    """What the code printed last, and, where it is watched, the most memory (MiB) that it and its children had.
    Watching costs the watched time: the kernel walks all their pages for it."""
    script = Path(arguments[-1]).parent / "job.py" if len(arguments) > 1 else None
    command = [sys.executable, "-c", code, *arguments]
    if script is not None:  # worker processes import the main module: it must be a file
        script.write_text(code)
        command = [sys.executable, str(script), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while watched and not done.wait(0.2):
            peak[0] = max(peak[0], _memory(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate()
    done.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"a job failed: {arguments}")
    return out.split(), peak[0]


def _memory(pid: int) -> float:
    """Proportional set size of a process and all below it, MiB: pages that they share count once."""
    total, todo = 0.0, [pid]
    while todo:
        one = todo.pop()
        try:
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024
            for task in Path(f"/proc/{one}/task").iterdir():
                todo += map(int, (task / "children").read_text().split())
        except (OSError, StopIteration, ValueError):
            continue
    return total


def measure(file: Path, scratch: Path, rounds: int, *, memory: bool = True) -> dict[str, float]:
    """Ratios of one file, and its store's size and the peak memory."""
    parse, rows, steps = Job(), Job(), Job()
    told: Sequence[str] = ()
    home = scratch / "home"
    for _ in range(rounds):
        (took,), _ = run(PARSE, str(file))
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        told, _ = run(LOAD, str(file), str(home))
        parse.seconds.append(float(took))
        rows.seconds.append(float(told[0]))
        steps.seconds.append(float(told[1]))
    if memory:
        shutil.rmtree(home)
        home.mkdir()
        _, steps.peak_mib = run(LOAD, str(file), str(home), watched=True)
    spans, size = int(told[2]), int(told[3])
    pairs = list(zip(parse.seconds, rows.seconds, steps.seconds, strict=True))
    return {
        "spans": spans,
        "bytes": file.stat().st_size,
        "orjson_s": statistics.median(parse.seconds),
        "rows": statistics.median(r / p for p, r, _ in pairs),
        "steps": statistics.median(s / p for p, _, s in pairs),
        "us_per_span": statistics.median(steps.seconds) / spans * 1e6,
        "store": size / file.stat().st_size,
        "MiB": steps.peak_mib,
    }


def against_peers(file: Path, spans: int, peers: Path, scratch: Path, limit_s: float) -> dict[str, float]:
    """How many times as many spans per second as each peer."""
    bodies = ingest_peers.requests(file)
    found = {}
    ours = [measure(file, scratch, 1, memory=False)["us_per_span"] * spans / 1e6]
    for name, peer in (("phoenix", ingest_peers.phoenix), ("mlflow", ingest_peers.mlflow)):
        seconds, seen = peer(bodies, spans, peers, scratch, limit_s)
        print(f"  {name}: {seen} of {spans} spans in {seconds:.1f} s = {seen / seconds:.0f} spans/s", flush=True)
        ours.append(measure(file, scratch, 1, memory=False)["us_per_span"] * spans / 1e6)
        found[name] = (spans / ours[-1]) / (seen / seconds)
    seconds = ingest_peers.agentevals(file, peers)
    ours.append(measure(file, scratch, 1, memory=False)["us_per_span"] * spans / 1e6)
    print(f"  agentevals-cli: {spans} spans in {seconds:.1f} s = {spans / seconds:.0f} spans/s")
    print(f"  evalagent: {', '.join(f'{spans / s:.0f}' for s in ours)} spans/s")
    found["agentevals"] = (spans / ours[-1]) / (spans / seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "evalagent-ingest")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=Path, help="environments of the peers; none are measured without")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds that a peer gets")
    given = parser.parse_args()
    sizes = [(10_000, "runs"), (100_000, "runs"), (10_000, "chain"), (100_000, "chain")]
    sizes += [(540_000, "runs"), (1_000_000, "chain")] if given.large else []
    given.scratch.mkdir(parents=True, exist_ok=True)
    print(f"{os.cpu_count()} cores; targets {json.dumps(TARGETS)}")
    for count, shape in sizes:
        file = given.scratch / f"{shape}{count}.jsonl"
        if not file.exists():
            generated_spans.write(count, file, shape)
        start = time.perf_counter()
        told = measure(file, given.scratch, given.rounds if count <= 100_000 else 1)
        print(
            f"{count:>9} {shape:5} {told['bytes'] / 1e6:7.0f} MB  orjson {told['orjson_s']:6.2f} s  rows "
            f"{told['rows']:5.2f}x  with steps and edges {told['steps']:5.2f}x ({told['us_per_span']:5.0f} us/span)  "
            f"store {told['store']:.3f}  peak {told['MiB']:5.0f} MiB  [{time.perf_counter() - start:.0f} s]",
            flush=True,
        )
    if given.peers:
        file = given.scratch / "runs10000.jsonl"
        for name, ratio in against_peers(file, 10_000, given.peers, given.scratch, given.limit).items():
            print(f"  evalagent / {name}: {ratio:.1f}x (target {TARGETS[name]}x)")


if __name__ == "__main__":
    main()
