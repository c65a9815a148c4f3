"""One file of traces in any known wire format: bytes to spans, log records and rejected lines."""

from dataclasses import dataclass

from evalagent.model import LogRecord, Rejected, Span


@dataclass(frozen=True, slots=True)
class Reading:
    """What one file held.

    `bytes` is the size as given (before unpacking); `lines_in` the lines of the unpacked text that are not blank,
    or the messages of a binary file.
    """

    file: str
    format: str
    bytes: int
    lines_in: int
    spans: tuple[Span, ...]
    logs: tuple[LogRecord, ...]
    rejected: tuple[Rejected, ...]


def read(data: bytes, file: str, format: str = "auto") -> Reading:
    """Read one file; bad content is rejected with its line and never raises."""
    raise NotImplementedError
