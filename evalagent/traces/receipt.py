"""The receipt: what came in, and what became of every piece of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from evalagent.model import Json, Trace
from evalagent.traces.reading import Reading


class Built(Protocol):
    """What was built from the spans and log records of the readings."""

    @property
    def traces(self) -> tuple[Trace, ...]: ...
    @property
    def duplicates(self) -> int: ...
    @property
    def log_attached(self) -> int: ...
    @property
    def log_ignored(self) -> int: ...


def receipt(readings: Sequence[Reading], built: Built) -> dict[str, Json]:
    """The numbers of `receipt.json`; each span and each log record that was read is counted exactly once.

    `lines.rejected` counts rejected pieces (a bad span of a good line is one, a line that is no JSON is one).
    """
    steps = [step for trace in built.traces for step in trace.steps]
    ignored = Counter(reason for trace in built.traces for reason in trace.ignored.values())
    rejected = [piece for reading in readings for piece in reading.rejected]
    return {
        "files": len(readings),
        "bytes": sum(reading.bytes for reading in readings),
        "lines": {"in": sum(reading.lines_in for reading in readings), "rejected": len(rejected)},
        "spans_in": sum(len(reading.spans) for reading in readings),
        "step_spans": sum(len(step.span_ids) for step in steps),
        "virtual_steps": sum(step.virtual for step in steps),
        "containers": sum(len(trace.containers) for trace in built.traces),
        "ignored": dict(sorted(ignored.items())),
        "duplicates": built.duplicates,
        "log_records": {
            "in": sum(len(reading.logs) for reading in readings),
            "attached": built.log_attached,
            "ignored": built.log_ignored,
        },
        "rejected": [
            {"file": piece.file, "line": piece.line, "reason": piece.reason}
            for piece in sorted(rejected, key=lambda piece: (piece.file, piece.line, piece.reason))
        ],
    }


def adds_up(numbers: Mapping[str, Json]) -> bool:
    """Whether nothing was lost between input and output: spans and log records are all accounted for."""
    logs = numbers["log_records"]
    spans = numbers["step_spans"] + numbers["containers"] + sum(numbers["ignored"].values()) + numbers["duplicates"]
    return bool(
        spans == numbers["spans_in"]
        and logs["in"] == logs["attached"] + logs["ignored"]
        and numbers["lines"]["rejected"] == len(numbers["rejected"])
    )
