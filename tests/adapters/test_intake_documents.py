"""Values that are too large to be held: read part by part they give what they give as a whole."""

import json
from collections import Counter
from pathlib import Path

import pytest

from evalagent.adapters import intake, intake_documents, intake_streams
from evalagent.adapters.files import Input
from evalagent.adapters.intake import load
from evalagent.adapters.trace_store import TraceStore
from evalagent.model import Json
from evalagent.traces.reading import read
from tests.adapters.otlp_files import inputs
from tests.adapters.test_intake import agrees
from tests.traces.exports import EXPORTS
from tests.traces.wrappings import LAYOUTS, SPELLINGS
from tests.traces.test_reading_wrappings import RUNS

READERS = Path(__file__).parent.parent / "traces" / "readers"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 300, 200)


def limit(monkeypatch: pytest.MonkeyPatch, large: int, piece: int) -> None:
    monkeypatch.setattr(intake, "LARGE", large)
    monkeypatch.setattr(intake_documents, "LARGE", large)
    monkeypatch.setattr(intake, "PIECE", piece)
    monkeypatch.setattr(intake_streams, "_BLOCK", max(piece // 3, 1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_requests_in_any_spelling_and_layout(tmp_path: Path, tiny: None, spelling: str, layout: str) -> None:
    spelled = [SPELLINGS[spelling](one) for one in RUNS[sorted(RUNS)[3]]]
    data = LAYOUTS[layout](spelled)
    with TraceStore.temporary(tmp_path) as store:
        agrees(store, [("000.jsonl", data)], inputs(tmp_path, [data]))


@pytest.mark.parametrize("name", [path.name for path in sorted(READERS.iterdir()) if ".spans." not in path.name])
def test_files_of_every_reader(tmp_path: Path, tiny: None, name: str) -> None:
    with TraceStore.temporary(tmp_path) as store:
        agrees(store, [(name, (READERS / name).read_bytes())], [Input(name, READERS / name)])


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_of_every_backend(tmp_path: Path, tiny: None, name: str) -> None:
    data = EXPORTS[name]()
    with TraceStore.temporary(tmp_path) as store:
        agrees(store, [("000.jsonl", data)], inputs(tmp_path, [data]))
