"""The receipt agrees with a count that knows nothing of the readers, on every format."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evalagent.traces.building import build
from evalagent.traces.reading import read
from evalagent.traces.receipt import adds_up, receipt
from fuzz.seeds import request
from tests.traces.conversations import TRANSCRIPTS
from tests.traces.counting import count
from tests.traces.exports import EXPORTS
from tests.traces.loans import DIALECTS

HERE = Path(__file__).parent / "readers"
FILES: dict[str, Callable[[], bytes]] = {
    **{path.name: path.read_bytes for path in sorted(HERE.iterdir()) if ".spans." not in path.name},
    **{f"loan {name}": lambda tell=tell: json.dumps(request(*tell())).encode() for name, tell in DIALECTS.items()},
    **{name: make for name, make in EXPORTS.items() if name != "cloudwatch export"},
    **TRANSCRIPTS,
}


@pytest.mark.parametrize("name", FILES)
def test_the_receipt_agrees_with_an_independent_count_and_adds_up(name: str) -> None:
    data = FILES[name]()
    reading = read(data, name)
    built = build(reading.spans, reading.logs)
    numbers = receipt([reading], built)
    stood = count(data)
    assert (numbers["spans_in"], numbers["log_records"]["in"]) == stood
    assert stood.spans + stood.logs > 0
    assert numbers["lines"]["in"] == sum(bool(line.strip()) for line in data.splitlines())
    assert numbers["lines"]["rejected"] == 0
    assert adds_up(numbers)


@pytest.mark.parametrize("name", [name for name in FILES if "table" not in name])
def test_twice_the_file_is_twice_the_count_and_duplicates_say_so(name: str) -> None:
    data = FILES[name]()
    readings = [read(data, "a"), read(data, "b")]
    built = build([s for r in readings for s in r.spans], [log for r in readings for log in r.logs])
    numbers = receipt(readings, built)
    assert numbers["spans_in"] == 2 * count(data).spans
    assert numbers["duplicates"] == count(data).spans
    assert adds_up(numbers)
