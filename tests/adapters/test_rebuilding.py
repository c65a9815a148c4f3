"""Steps from the store: whatever the order, however often and in how many loads, the rows are those of one building."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evalagent.adapters import batch_building, companies, rebuilding
from evalagent.adapters.intake import load
from evalagent.adapters.rebuilding import map_built, rebuild
from evalagent.adapters.trace_store import TraceStore
from evalagent.model import Link, LogRecord, Span
from evalagent.rows import finding_row, step_rows
from evalagent.traces import strands
from evalagent.traces.building import Built, build
from evalagent.traces.receipt import adds_up
from tests.adapters.otlp_files import inputs, line
from tests.traces.loans import span
from tests.traces.spans import AGENT, answers, asks, chat, said, tool

MINUTE = 60_000
TABLES = ("spans", "traces", "steps", "edges", "findings", "fates", "ties", "stale", "log_records")
SERVICE = {"service.name": "desk"}


def in_session(session: str) -> dict[str, Any]:
    return {"attributes": {"gen_ai.conversation.id": session}}


HELLO, ASKED = said("hello", "user"), asks(("c1", "look", {"a": 1}), ("c2", "look", {"a": 2}))
A, B, C, D, E, F, G = (f"{letter * 2}" * 16 for letter in "abcdef9")
SPANS = [
    # a session of two traces: the second goes on from the reply of the first
    span(1, None, "invoke", 0, 20, AGENT, trace=A),
    chat(2, 1, 1, 5, [HELLO], said("yes"), trace=A, **in_session("s")),
    chat(3, None, 30, 40, [HELLO, said("yes"), said("more", "user")], said("done"), trace=B, **in_session("s")),
    # a call whose tool lost its context, joined by its id, and one joined by name and arguments
    chat(4, None, 50, 60, [HELLO], ASKED, trace=C, resource=SERVICE),
    tool(5, None, "look", 61, 62, "c1", {"a": 1}, "one", trace=D, resource=SERVICE),
    tool(6, None, "look", 63, 64, None, {"a": 2}, "two", trace=E, resource=SERVICE),
    # a trace that a link joins to the first
    chat(7, None, 70, 80, [HELLO], said("linked"), trace=F, links=[Link(A, f"{1:016x}")]),
    # too late for the call of C, and a trace without a step
    tool(8, None, "look", 11 * MINUTE, 11 * MINUTE + 1, "c1", {"a": 1}, trace=G, resource=SERVICE),
    span(9, None, "GET /", 1, 2, {"http.route": "/"}, trace="11" * 16),
    # a call that a second instrumentation told in a trace of its own
    span(10, None, "invoke", 89, 112, AGENT, trace="12" * 16, resource=SERVICE),
    chat(11, 10, 90, 110, [HELLO], said("twice told"), trace="12" * 16, resource=SERVICE, scope="one"),
    chat(12, None, 91, 109, [HELLO], said("twice told"), trace="13" * 16, resource=SERVICE, scope="other"),
    # a conversation without a name: the second trace begins with the history of the first
    chat(13, None, 120, 130, [HELLO], asks(("z1", "find", {"b": 1})), trace="14" * 16),
    tool(14, None, "find", 131, 132, "z1", {"b": 1}, "found", trace="14" * 16),
    chat(
        15,
        None,
        140,
        150,
        [HELLO, asks(("z1", "find", {"b": 1})), answers(("z1", "found"))],
        said("so"),
        trace="15" * 16,
    ),
    # a call whose answer was read before the tool of another run returned another one
    chat(16, None, 160, 165, [HELLO], asks(("y1", "find", {"b": 9})), trace="16" * 16, resource=SERVICE),
    chat(
        17,
        None,
        170,
        175,
        [HELLO, asks(("y1", "find", {"b": 9})), answers(("y1", "found"))],
        said("so"),
        trace="16" * 16,
        resource=SERVICE,
    ),
    tool(18, None, "find", 900, 910, None, {"b": 9}, "other", trace="17" * 16, resource=SERVICE),
]
TRACES = len({one.trace_id for one in SPANS})
FULLER = chat(2, 1, 1, 6, [HELLO], said("yes"), trace=A, attributes={"gen_ai.conversation.id": "s", "more": "said"})
OTHER = chat(2, 1, 1, 5, [HELLO], said("no!"), trace=A, **in_session("s"))
LOGS = [
    LogRecord(A, f"{2:016x}", 2_000_000, "gen_ai.user.message", {"content": "by log"}),
    LogRecord(A, "77" * 8, 2_000_000, "gen_ai.user.message", {"content": "of no span"}),
    LogRecord("", "", 2_000_000, "app.started", None),
]


def rows(store: TraceStore) -> dict[str, list[tuple[Any, ...]]]:
    """All rows but those that tell how the store was filled."""
    found = {}
    with store.connection(read_only=True) as connection:
        for table in TABLES:
            less = "EXCLUDE (input)" if table in ("spans", "log_records") else ""
            found[table] = sorted(map(repr, connection.execute(f"SELECT * {less} FROM {table}").fetchall()))
    return found


def told(built: Built) -> tuple[Any, ...]:
    traces = sorted(built.traces, key=lambda trace: trace.trace_id)
    return (
        list(step_rows(traces)),
        [finding_row(finding) for trace in traces for finding in trace.health],
        [
            (trace.trace_id, trace.session, trace.task, trace.answer, trace.quality, dict(trace.ignored))
            for trace in traces
        ],
        (built.duplicates, built.log_attached, built.log_ignored),
    )


def whole(built: Built) -> Built:
    return built


def together(parts: Sequence[Built]) -> Built:
    return Built(
        tuple(trace for part in parts for trace in part.traces),
        sum(part.duplicates for part in parts),
        sum(part.log_attached for part in parts),
        sum(part.log_ignored for part in parts),
    )


def loaded(folder: Path, store: TraceStore, *files: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    load(store, inputs(folder, files), workers=0)


PIECES: list[tuple[list[Span], list[LogRecord]]] = [([one], []) for one in [*SPANS, FULLER, OTHER]] + [
    ([], [log]) for log in LOGS
]


@given(st.data())
@settings(
    max_examples=12,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_the_rows_do_not_depend_on_order_repetition_or_how_the_spans_were_split_over_loads(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("permuted")
    order = data.draw(st.permutations(PIECES))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), max_size=3)))
    loads = [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    again = data.draw(st.lists(st.sampled_from(PIECES), max_size=3))
    batch = data.draw(st.sampled_from([1, 3, 100]))
    store = TraceStore(folder / "home")
    for number, pieces in enumerate([*loads, again]):
        loaded(folder / str(number), store, *(line(spans, logs) for spans, logs in pieces), b"\n" * (number + 1))
        if data.draw(st.booleans()):
            rebuild(store, workers=0, batch_spans=batch)
    rebuild(store, workers=0, batch_spans=batch)
    given_spans = [one for spans, _ in order + again for one in spans]
    given_logs = [one for _, logs in order + again for one in logs]

    built = build(given_spans, given_logs)
    with TraceStore.temporary(folder) as fresh:
        loaded(folder / "fresh", fresh, b"".join(line(spans, logs) for spans, logs in order + again))
        assert told(together(list(map_built(fresh, whole, workers=0, batch_spans=batch)))) == told(built)
        rebuild(fresh, workers=0)
        assert rows(fresh)["stale"] == []
        everything = rows(fresh)
        assert fresh.receipt()["duplicates"] == built.duplicates
    if not store_knew_again(store, given_spans, given_logs):
        assert rows(store) == everything
    before = rows(store)
    rebuild(store, workers=0, everything=True)
    assert rows(store) == before
    assert adds_up(store.receipt())


def store_knew_again(store: TraceStore, spans: list[Span], logs: list[LogRecord]) -> bool:
    """Whether the store passed over a file since it had the very same bytes before: copies are fewer then."""
    receipt = store.receipt()
    return bool(receipt["spans_in"] != len(spans) or receipt["log_records"]["in"] != len(logs))


def test_what_the_spans_of_these_tests_say_is_what_they_are_to_show(tmp_path: Path) -> None:
    built = build(SPANS, LOGS)
    steps = {step.step_id: step for trace in built.traces for step in trace.steps}
    afar = {
        (step.step_id[-1], edge.step_id[-1], edge.via)
        for step in steps.values()
        for edge in step.parents
        if edge.trace_id
    }
    assert {("3", "2", "data"), ("5", "4", "call"), ("6", "4", "call")} <= afar
    assert ("f", "e", "data") in afar
    assert not steps[f"{8:016x}"].parents
    assert f"{12:016x}" not in steps


def test_a_late_span_has_only_its_own_company_built_again(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "home")
    loaded(tmp_path / "1", store, b"".join(line([one]) for one in SPANS[1:]))
    assert rebuild(store).traces == TRACES
    loaded(tmp_path / "2", store, line(SPANS[:1]))
    assert rebuild(store).traces == 3  # itself, its session, and what links to it
    assert rebuild(store) == rebuilding.RebuildReceipt(0, 0, 0)


def test_a_fuller_span_takes_the_place_of_the_one_before_and_a_poorer_one_does_not(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "home")
    loaded(tmp_path / "1", store, line([SPANS[1]]))
    for number, (late, extra) in enumerate([(FULLER, True), (SPANS[1], True), (OTHER, True)]):
        loaded(tmp_path / f"late{number}", store, b" " * number + line([late]))
        with store.connection(read_only=True) as connection:
            found = connection.execute("SELECT copies, payload->'attributes'->>'more' = 'said' FROM spans").fetchall()
        assert found == [(number + 2, extra)]


def test_a_rebuild_that_is_interrupted_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = TraceStore(tmp_path / "home")
    loaded(tmp_path / "1", store, b"".join(line([one]) for one in SPANS))
    before = rows(store)

    def interrupted(*_: object) -> Iterator[object]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rebuilding, "insert_rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            rebuild(store, workers=0)
    assert rows(store) == before
    assert rebuild(store).traces == TRACES


def test_a_session_larger_than_can_be_built_at_once_is_cut_by_time_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (batch_building, rebuilding):
        monkeypatch.setattr(module, "MOST_TOGETHER", 4)
    spans = [
        chat(n, None, 10 * n, 10 * n + 5, [HELLO], said(f"{n}"), trace=f"{n:032x}", **in_session("for ever"))
        for n in range(1, 11)
    ]
    store = TraceStore(tmp_path / "home")
    loaded(tmp_path / "1", store, b"".join(line([one]) for one in spans))
    rebuild(store)
    with store.connection(read_only=True) as connection:
        found = connection.execute("SELECT count(*), min(message) FROM findings WHERE code = 'session_cut'").fetchall()
        together = connection.execute("SELECT count(DISTINCT company) FROM traces").fetchall()
    assert found[0][0] == 10
    assert "session id that never changes" in found[0][1]
    assert together == [(3,)]


def test_a_store_without_any_step_says_so_as_an_error_and_beside_others_it_does_not(tmp_path: Path) -> None:
    def severities(store: TraceStore) -> list[Any]:
        with store.connection(read_only=True) as connection:
            return connection.execute("SELECT severity FROM findings WHERE code = 'no_agent_steps'").fetchall()

    store = TraceStore(tmp_path / "home")
    loaded(tmp_path / "1", store, line([SPANS[8]]))
    (part,) = map_built(store, whole)
    assert [finding.severity for trace in part.traces for finding in trace.health] == ["error"]
    rebuild(store)
    assert severities(store) == [("error",)]
    loaded(tmp_path / "2", store, line([SPANS[3]]))
    rebuild(store)
    assert severities(store) == [("info",)]


def test_results_come_in_order_of_start_whatever_the_batches(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "home")
    loaded(tmp_path / "1", store, b"".join(line([one]) for one in reversed(SPANS)))
    for batch in (1, 2, 100):
        starts = [min(t.start_ns for t in part.traces) for part in map_built(store, whole, batch_spans=batch)]
        assert starts == sorted(starts)


def test_the_window_for_lost_tools_is_that_of_building() -> None:
    assert companies.WINDOW_NS == strands.WINDOW_NS
