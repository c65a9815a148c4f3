"""What the readers of the wire formats put together while they go through one file."""

from evalagent.model import LogRecord, Rejected, Span
from evalagent.traces.identifiers import InexactId
from evalagent.traces.masking import mask

BAD_CONTENT = (TypeError, ValueError, KeyError, AttributeError, OverflowError)
"""What reading a piece raises where its parts are not what they should be: that piece is rejected, no more."""


class Harvest:
    """Spans, log records and rejected pieces of one file, in the order in which they stand there."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.line = 0
        """Where the value that is being read starts, from 1; 0: the whole file."""
        self.exact = False
        """Whether the value was parsed with exact integers: an id that is inexact even so is bad content."""
        self.formats: set[str] = set()
        self.spans: list[Span] = []
        self.logs: list[LogRecord] = []
        self.rejected: list[Rejected] = []

    def reject(self, reason: str, line: int | None = None) -> None:
        """Name a piece that could not be read; what is around it is read all the same.

        The reason is short and shows no secret, whatever it quotes.
        """
        self.rejected.append(Rejected(self.file, self.line if line is None else line, mask(reason[:2000])[:300]))

    def refuse(self, piece: str, error: Exception) -> None:
        """Reject a piece for what reading it raised, one of `BAD_CONTENT`. An id that the fast parser could not hold
        is raised again, so that the whole value is parsed exactly."""
        if isinstance(error, InexactId) and not self.exact:
            raise error
        self.reject(f"{piece}: {error}")
