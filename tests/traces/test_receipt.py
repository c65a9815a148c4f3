"""The receipt accounts for everything that came in, and says when it does not."""

from dataclasses import dataclass

from evalagent.model import Container, LogRecord, Rejected, Span, Step, Trace
from evalagent.traces.reading import Reading
from evalagent.traces.receipt import adds_up, receipt


@dataclass(frozen=True)
class Built:
    traces: tuple[Trace, ...]
    duplicates: int
    log_attached: int
    log_ignored: int


def span(number: int) -> Span:
    return Span("a" * 32, f"{number:016x}", None, "x", 1, 2)


def reading(file: str, spans: int, logs: int, rejected: tuple[int, ...] = ()) -> Reading:
    records = tuple(LogRecord("a" * 32, "b" * 16, 1, "e", None) for _ in range(logs))
    bad = tuple(Rejected(file, line, "no JSON value") for line in rejected)
    return Reading(file, "otlp", 100, 7, tuple(map(span, range(spans))), records, bad)


STEP = Step("a" * 32, "s", ("s", "twin"), "tool", "renew", 1, 2)
TRACE = Trace(
    "a" * 32,
    (STEP, Step("a" * 32, "s#c1", (), "tool", "renew", 1, 2, virtual=True)),
    (Container("a" * 32, "c", "agent", "desk", None),),
    {"p": "plumbing", "q": "plumbing", "r": "abandoned_attempt"},
)


def test_every_span_log_record_and_bad_line_is_counted_once() -> None:
    numbers = receipt(
        [reading("b", 4, 2, (9, 2)), reading("a", 3, 0, (0,))], Built((TRACE,), 1, log_attached=1, log_ignored=1)
    )
    assert numbers == {
        "files": 2,
        "bytes": 200,
        "lines": {"in": 14, "rejected": 3},
        "spans_in": 7,
        "step_spans": 2,
        "virtual_steps": 1,
        "containers": 1,
        "ignored": {"abandoned_attempt": 1, "plumbing": 2},
        "duplicates": 1,
        "log_records": {"in": 2, "attached": 1, "ignored": 1},
        "rejected": [
            {"file": "a", "line": 0, "reason": "no JSON value"},
            {"file": "b", "line": 2, "reason": "no JSON value"},
            {"file": "b", "line": 9, "reason": "no JSON value"},
        ],
    }
    assert adds_up(numbers)


def test_a_span_or_log_record_that_got_lost_does_not_add_up() -> None:
    built = Built((TRACE,), 1, log_attached=1, log_ignored=0)
    assert adds_up(receipt([reading("a", 7, 1)], built))
    assert not adds_up(receipt([reading("a", 8, 1)], built))
    assert not adds_up(receipt([reading("a", 6, 1)], built))
    assert not adds_up(receipt([reading("a", 7, 2)], built))
