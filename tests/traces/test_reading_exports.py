"""One run in every backend's export, and as every kind of transcript, is one DAG."""

import pytest

from evalagent.model import Step, Trace
from evalagent.traces.building import build
from evalagent.traces.reading import Reading, read
from evalagent.traces.receipt import adds_up, receipt
from tests.traces.conversations import TRANSCRIPTS
from tests.traces.exports import EXPORTS
from tests.traces.loans import ANSWER, FIND, FOUND, MODEL, RENEW, RENEWED, TASK, TOKENS


def trace_of(data: bytes) -> tuple[Reading, Trace]:
    reading = read(data, "export")
    assert reading.rejected == ()
    built = build(reading.spans, reading.logs)
    assert adds_up(receipt([reading], built))
    (trace,) = built.traces
    return reading, trace


@pytest.fixture(params=EXPORTS, scope="module")
def exported(request: pytest.FixtureRequest) -> tuple[str, Reading, Trace]:
    return (request.param, *trace_of(EXPORTS[request.param]()))


@pytest.fixture(params=TRANSCRIPTS, scope="module")
def transcript(request: pytest.FixtureRequest) -> Trace:
    return trace_of(TRANSCRIPTS[request.param]())[1]


def chain(trace: Trace) -> list[tuple[list[int], str]]:
    """Parents of each step by their place, and by what evidence."""
    place = {step.step_id: number for number, step in enumerate(trace.steps)}
    return [
        ([place[edge.step_id] for edge in step.parents], ",".join(e.via for e in step.parents)) for step in trace.steps
    ]


CHAIN = [([], ""), ([0], "call"), ([1], "data"), ([2], "call"), ([3], "data")]


def same_run(trace: Trace) -> tuple[Step, Step]:
    assert [step.kind for step in trace.steps] == ["llm", "tool", "llm", "tool", "llm"]
    assert chain(trace) == CHAIN
    find, renew = (step for step in trace.steps if step.kind == "tool")
    assert (find.name, find.arguments, find.result) == ("find_loan", FIND, FOUND)
    assert (renew.name, renew.arguments) == ("renew_loan", RENEW)
    assert renew.result in (RENEWED, {"result": RENEWED})
    assert find.request_step == trace.steps[0].step_id
    assert (trace.task, trace.answer) == (TASK, ANSWER)
    return find, renew


def test_every_export_gives_the_same_steps_edges_arguments_and_results(exported: tuple[str, Reading, Trace]) -> None:
    _, _, trace = exported
    same_run(trace)
    assert {step.name for step in trace.steps if step.kind == "llm"} == {MODEL}


def test_every_export_counts_each_token_once(exported: tuple[str, Reading, Trace]) -> None:
    _, _, trace = exported
    assert [(s.tokens.input, s.tokens.output) for s in trace.steps if s.tokens is not None] == TOKENS


def test_every_export_has_times_and_six_spans(exported: tuple[str, Reading, Trace]) -> None:
    name, reading, trace = exported
    assert len(reading.spans) == 6
    assert len(reading.logs) == (6 if name.startswith(("agentcore", "cloudwatch")) else 0)
    starts = [(step.start_ns - trace.start_ns) // 1_000_000 for step in trace.steps]
    assert starts == [10, 21, 30, 41, 50]
    assert trace.end_ns is not None
    assert (trace.end_ns - trace.start_ns) // 1_000_000 == 70


@pytest.mark.parametrize("name", [name for name in EXPORTS if name.split()[0] not in ("phoenix", "zipkin")])
def test_the_session_that_an_export_names_is_the_trace_s(name: str) -> None:
    held = b"visit-9" in EXPORTS[name]()
    assert trace_of(EXPORTS[name]())[1].session == ("visit-9" if held else None)


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_is_told_by_its_content_and_by_its_name(name: str) -> None:
    data = EXPORTS[name]()
    format = {"phoenix": "openinference", "agentcore": "cloudwatch"}.get(name.split()[0], name.split()[0])
    assert read(data, "f", format).spans == read(data, "f").spans
    refused = read(data, "f", "messages")
    assert refused.spans == ()
    assert refused.rejected
    assert all("--format auto" in piece.reason for piece in refused.rejected)


def test_every_transcript_gives_the_same_steps_edges_arguments_and_results(transcript: Trace) -> None:
    find, _ = same_run(transcript)
    assert find.answered_in[:1] == (transcript.steps[2].step_id,)


@pytest.mark.parametrize("name", ["langchain to_dict", "langchain dumpd", "langchain model_dump"])
def test_a_transcript_that_counts_tokens_keeps_them(name: str) -> None:
    trace = trace_of(TRANSCRIPTS[name]())[1]
    assert [(s.tokens.input, s.tokens.output) for s in trace.steps if s.tokens is not None] == TOKENS
    assert {step.model for step in trace.steps if step.kind == "llm"} == {MODEL}
