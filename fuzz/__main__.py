"""Run one engine for so many minutes of CPU time; keep each new kind of finding as a file; write a log.

    python -m fuzz --engine atheris --minutes 30 --out fuzz-out
    python -m fuzz --engine hypothesis --minutes 10 --out fuzz-out
    python -m fuzz --engine random --minutes 10 --out fuzz-out --seeds YOUR_TRACES
    python -m fuzz --replay fuzz-out/findings/SOME.bin

The exit is 0 without findings and 1 with some.
"""

import argparse
import os
import random
import signal
import sys
import time
import traceback
import zlib
from pathlib import Path
from typing import NoReturn

LIMIT = 24_000
"""Bytes of an input at most."""
KEPT = 3000
"""Changed files that the engine without coverage goes on from."""


class Findings:
    """What was found, one file for each kind, and how often each came."""

    def __init__(self, out: Path, engine: str) -> None:
        self.folder = out / "findings"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = (out / f"{engine}.log").open("a")
        self.counts: dict[str, int] = {}
        self.executions = 0
        self.shown = 0.0
        self.began = time.process_time()
        signal.signal(signal.SIGTERM, lambda *_: self.end())

    def kind(self, error: BaseException) -> str:
        """Where and how it broke, as a name that is the same each time."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "evalagent" in frame.filename]
        said = str(error).partition(":")[0] if type(error).__name__ == "Broken" else ""
        where = f"{Path(frames[-1].filename).stem}-{frames[-1].lineno}" if frames and not said else ""
        return "-".join(part.replace(" ", "_") for part in (type(error).__name__, said, where) if part)[:100]

    def keep(self, error: BaseException, data: bytes) -> str:
        """Note a finding; the first of its kind is kept with its input."""
        kind = self.kind(error)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.counts[kind] == 1:
            (self.folder / f"{kind}.bin").write_bytes(data)
            self.say(f"FOUND {kind}: {error}"[:600])
        return kind

    def spent(self) -> float:
        """CPU minutes so far."""
        return (time.process_time() - self.began) / 60

    def tick(self) -> None:
        """Count an execution; once a minute of CPU time say how it goes."""
        self.executions += 1
        if self.spent() - self.shown >= 1:
            self.shown = self.spent()
            self.say("")

    def say(self, text: str) -> None:
        """A line of the log."""
        line = f"{self.spent():.1f} CPU min, {self.executions} executions, {self.counts or 'no findings'}"
        print(text or line, file=self.log, flush=True)

    def end(self) -> NoReturn:
        """The last line, and out: libFuzzer cannot be asked to stop."""
        self.say("")
        self.say("ended")
        os._exit(1 if self.counts else 0)


def _atheris(out: Path, minutes: float, more: list[bytes]) -> None:
    import atheris

    with atheris.instrument_imports(include=["evalagent.traces", "evalagent.rows"]):
        from fuzz import laws
    from fuzz.mutating import mutated
    from fuzz.seeds import seeds

    corpus = out / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    named = [*seeds(), *((f"given-{number}", content) for number, content in enumerate(more))]
    known = [content for _, content in named]
    for name, content in named:
        (corpus / name.replace(" ", "_")).write_bytes(content)
    findings = Findings(out, "atheris")

    def once(data: bytes) -> None:
        if findings.spent() > minutes:
            findings.end()
        findings.tick()
        mark = zlib.crc32(data)
        format = laws.ALL_FORMATS[mark % len(laws.ALL_FORMATS)] if mark % 8 == 0 else "auto"
        try:
            laws.hold(data, format, again=mark % 3 == 0)
        except Exception as error:  # noqa: BLE001 - whatever it raises is the finding
            findings.keep(error, data)

    def change(data: bytes, most: int, seed: int) -> bytes:
        other = known[seed % len(known)]
        return mutated(data, seed, other, lambda raw: bytes(atheris.Mutate(raw, min(most, LIMIT))))[:most]

    log = os.open(out / "libfuzzer.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    atheris.Setup(
        [sys.argv[0], str(corpus), f"-max_len={LIMIT}", "-timeout=600", "-handle_term=0", "-rss_limit_mb=3000",
         "-print_final_stats=1",
         f"-artifact_prefix={out}/"],
        once,
        custom_mutator=change,
    )  # fmt: skip
    atheris.Fuzz()


def _random(out: Path, minutes: float, more: list[bytes]) -> None:
    """The same changes as atheris makes, without a look at coverage: five times as many of them."""
    from fuzz import laws
    from fuzz.mutating import mutated
    from fuzz.seeds import seeds

    findings = Findings(out, "random")
    chance = random.Random(time.time_ns())  # noqa: S311 - no secret
    known = [content for _, content in seeds()] + more
    pool = list(known)
    while findings.spent() < minutes:
        findings.tick()
        data = mutated(chance.choice(pool), chance.getrandbits(62), chance.choice(known), lambda raw: _cut(raw, chance))
        try:
            laws.hold(data, again=findings.executions % 3 == 0)
        except Exception as error:  # noqa: BLE001 - as above
            findings.keep(error, data)
        if len(pool) < KEPT:
            pool.append(data)
        else:
            pool[chance.randrange(len(known), KEPT)] = data
    findings.end()


def _cut(raw: bytes, chance: random.Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(changed) + 1)
        changed[at : at + chance.randrange(6)] = chance.randbytes(chance.randrange(4))
    return bytes(changed)


def _hypothesis(out: Path, minutes: float) -> NoReturn:
    from hypothesis import HealthCheck, Phase, given, seed, settings

    from fuzz import laws
    from fuzz.traces import spans, written

    findings = Findings(out, "hypothesis")
    round_ = int(time.time())
    while findings.spent() < minutes:
        round_ += 1
        last: list[tuple[BaseException, bytes]] = []

        @seed(round_)
        @settings(
            max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )  # fmt: skip
        @given(spans())
        def holds(found: list) -> None:  # type: ignore[type-arg]
            findings.tick()
            data = written(found)
            try:
                laws.hold(data)
            except Exception as error:
                if findings.kind(error) not in findings.counts:  # noqa: B023 - called within the round
                    last[:] = [(error, data)]  # noqa: B023
                    raise

        try:
            holds()
        except Exception:  # noqa: BLE001 - as above
            for error, data in last:
                findings.keep(error, data)
    findings.end()


def main() -> None:
    """The command line."""
    asked = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    asked.add_argument("--engine", choices=("atheris", "hypothesis", "random"), default="atheris")
    asked.add_argument("--minutes", type=float, default=30.0, help="of CPU time")
    asked.add_argument("--out", type=Path, default=Path("fuzz-out"))
    asked.add_argument("--seeds", type=Path, help="a folder of files to begin with, beside our own")
    asked.add_argument("--replay", type=Path, nargs="+", help="files to hold the laws against once")
    given = asked.parse_args()
    if given.replay:
        from fuzz import laws

        for path in given.replay:
            laws.hold(path.read_bytes())
        return
    given.out.mkdir(parents=True, exist_ok=True)
    if given.engine == "hypothesis":
        _hypothesis(given.out, given.minutes)
    files = sorted(given.seeds.iterdir()) if given.seeds else []
    more = [path.read_bytes() for path in files if path.is_file() and path.stat().st_size < 2 * LIMIT]
    (_atheris if given.engine == "atheris" else _random)(given.out, given.minutes, more)


if __name__ == "__main__":
    main()
