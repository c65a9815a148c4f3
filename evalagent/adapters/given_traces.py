"""Judging given traces some at a time: what a worker process does, and what it hands back."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import zstandard

from evalagent.adapters.files import dump
from evalagent.evaluating import Bench, Concluded, Terms
from evalagent.judging.questions import Question
from evalagent.model import Trace, Verdict
from evalagent.rows import step_rows
from evalagent.traces.building import Built
from evalagent.traces.outlines import outline

Ask = Callable[[Sequence[Question]], Sequence[Verdict]]
"""A verdict for every question."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """What was said of some traces."""

    concluded: tuple[Concluded, ...]
    duplicates: int
    logs: tuple[int, int]
    """Log records attached and ignored."""
    steps: Mapping[str, bytes]
    """trace id -> its lines of steps.jsonl, where the traces above are outlines."""
    whole: Mapping[str, bytes]
    """trace id -> the trace with its content, packed, where the traces above are outlines."""


@dataclass(slots=True)
class Judging:
    """The work on some traces: examined, asked about if there is somebody to ask, and concluded."""

    terms: Terms
    ask: Ask | None = None
    outlined: bool = False
    """Hand back outlines, with the content packed: all together they may be larger than memory."""

    def __call__(self, built: Built) -> Sitting:
        bench = Bench(self.terms)
        examined = [bench.examined(trace) for trace in built.traces]
        answers: dict[str, list[Verdict]] = {}
        if self.ask is not None:
            for verdict in self.ask([question for one in examined for question in one.questions]):
                answers.setdefault(verdict.trace_id, []).append(verdict)
        concluded = tuple(bench.concluded(one, answers.get(one.trace.trace_id, ())) for one in examined)
        logs = (built.log_attached, built.log_ignored)
        if not self.outlined:
            return Sitting(concluded, built.duplicates, logs, {}, {})
        return Sitting(
            tuple(replace(one, trace=outline(one.trace)) for one in concluded),
            built.duplicates,
            logs,
            {t.trace_id: b"".join(dump(row) + b"\n" for row in step_rows([t])) for t in built.traces},
            {trace.trace_id: packed(trace) for trace in built.traces},
        )


def packed(trace: Trace) -> bytes:
    """A trace as few bytes; nothing at all where it is nested beyond what can be packed."""
    try:
        return zstandard.ZstdCompressor(level=1).compress(pickle.dumps(trace, pickle.HIGHEST_PROTOCOL))
    except RecursionError:
        return b""


def unpacked(data: bytes) -> Trace | None:
    """What `packed` was given; only for bytes that this program packed."""
    return pickle.loads(zstandard.ZstdDecompressor().decompress(data)) if data else None  # noqa: S301
