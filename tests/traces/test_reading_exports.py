"""One run in every backend's export, and as every kind of transcript, is one DAG."""

import json

import pytest

from evalagent.model import Step, Trace
from evalagent.traces.building import build
from evalagent.traces.formats import FORMATS
from evalagent.traces.reading import Reading, read
from evalagent.traces.receipt import adds_up, receipt
from fuzz.seeds import request
from tests.traces.conversations import TRANSCRIPTS, responses
from tests.traces.exports import EXPORTS, agentcore, langfuse_older, langfuse_trace, mlflow, nested_runs, runs
from tests.traces.loans import ANSWER, DIALECTS, FIND, FOUND, MODEL, RENEW, RENEWED, TASK, TOKENS
from tests.traces.wrappings import PROTOBUF, messages


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


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_file_of_another_format_is_refused_with_its_name_and_the_way_out(format: str) -> None:
    for name, make in {**EXPORTS, **TRANSCRIPTS}.items():
        data = make()
        whole, reading = read(data, name), read(data, name, format)
        if reading.rejected:
            assert (reading.spans, reading.logs) == ((), ())
            assert reading.rejected[0].reason.startswith("this is ")
            assert f"which --format {format} does not take: use --format" in reading.rejected[0].reason
        else:
            assert (reading.spans, reading.logs) == (whole.spans, whole.logs)
    assert "no known shape" in read(b'{"price": 7}', "f", format).rejected[0].reason


def test_protobuf_is_refused_by_name_too() -> None:
    (data,) = PROTOBUF["varint lengths"](messages([request(*DIALECTS["genai"]())]))
    assert len(read(data, "f", "otlp").spans) == 6
    refused = read(data, "f", "langsmith")
    assert refused.spans == ()
    assert [piece.reason for piece in refused.rejected] == [
        "this is otlp, which --format langsmith does not take: use --format otlp or --format auto"
    ]


def test_a_parquet_file_is_refused_with_the_way_to_read_it() -> None:
    (piece,) = read(b"PAR1" + bytes(40) + b"PAR1", "runs.parquet").rejected
    assert "JSON lines first" in piece.reason


def test_a_trace_of_langfuse_that_only_names_its_observations_is_refused_with_the_way_out() -> None:
    for held in ({"observations": ["a", "b"]}, {}):
        value = {"id": "t", "name": "desk", "htmlPath": "/project/p", "input": None, **held}
        reading = read(json.dumps({"data": [value], "meta": {}}).encode(), "f")
        assert reading.spans == ()
        assert "without its observations: export" in reading.rejected[0].reason


def test_one_bad_observation_run_or_span_costs_itself_alone() -> None:
    trace = langfuse_trace()
    trace["observations"][2] = "gone"
    run = nested_runs()
    run["child_runs"][0] = None
    logged = mlflow(3)
    logged["data"]["spans"][1] = 7
    for value in (trace, run, logged):
        reading = read(json.dumps(value).encode(), "f")
        assert (len(reading.spans), len(reading.rejected)) == (5, 1)
        assert adds_up(receipt([reading], build(reading.spans, reading.logs)))


def test_an_id_that_is_a_fraction_costs_its_own_span_alone() -> None:
    told = request(*DIALECTS["genai"]())
    told["resourceSpans"][1]["scopeSpans"][0]["spans"][0]["spanId"] = 1.5
    reading = read(json.dumps(told).encode(), "f")
    assert (len(reading.spans), len(reading.rejected)) == (5, 1)
    assert "spans[0] is no span: an id written as a number with a fraction" in reading.rejected[0].reason


def test_rows_of_a_table_that_do_not_fit_its_heading_are_rejected_with_their_line() -> None:
    rows = EXPORTS["langfuse table"]().splitlines(keepends=True)
    reading = read(b"".join([*rows[:2], b"one,two\r\n", *rows[2:], b'"never ends']), "f")
    assert len(reading.spans) == 6
    assert [(piece.line, piece.reason.split()[0]) for piece in reading.rejected] == [(3, "a"), (9, "no")]


def test_what_agentcore_puts_into_spans_is_read_like_its_log_records() -> None:
    documents = agentcore()
    spans = [{**span, "span_events": [log]} for span, log in zip(documents[::2], documents[1::2], strict=True)]
    same_run(trace_of(json.dumps({"sessionSpans": spans}).encode())[1])


def test_usage_that_nobody_counted_is_unknown_and_not_nothing() -> None:
    trace = langfuse_trace()
    runs_ = runs()
    for held in trace["observations"]:
        held["usageDetails"] = {}
    for run in runs_:
        run["prompt_tokens"] = run["completion_tokens"] = 0
    for value in (trace, runs_):
        assert all(step.tokens is None for step in trace_of(json.dumps(value).encode())[1].steps)


def test_usage_is_found_in_the_reply_where_langsmith_did_not_count() -> None:
    told = runs()
    for run, (given, answered) in zip([r for r in told if r["run_type"] == "llm"], TOKENS, strict=True):
        run["prompt_tokens"] = run["completion_tokens"] = None
        run["outputs"]["usage"] = {"prompt_tokens": given, "completion_tokens": answered}
    trace = trace_of(json.dumps(told).encode())[1]
    assert [(s.tokens.input, s.tokens.output) for s in trace.steps if s.tokens is not None] == TOKENS


def test_an_error_is_the_step_s_and_an_interrupt_is_none() -> None:
    told = runs()
    renew = next(run for run in told if run["name"] == "renew_loan")
    renew |= {"error": "ValueError('the loan is blocked')Traceback: …", "status": "error"}
    failed = trace_of(json.dumps(told).encode())[1]
    assert [step.name for step in failed.steps if step.error] == ["renew_loan"]
    renew["error"] = "GraphInterrupt((Interrupt(value='sure?'),))"
    assert [step for step in trace_of(json.dumps(told).encode())[1].steps if step.error] == []
    trace = langfuse_trace()
    seen = next(held for held in trace["observations"] if held["name"] == "renew_loan")
    seen |= {"level": "ERROR", "statusMessage": "the loan is blocked"}
    (error,) = [step.error for step in trace_of(json.dumps(trace).encode())[1].steps if step.error]
    assert error == "the loan is blocked"


def test_tools_that_the_provider_ran_are_steps_that_were_answered() -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "Dune"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "text", "text": "a novel"}]}
    block = {"role": "assistant", "content": [search, found, {"type": "text", "text": "A novel."}]}
    item = {"type": "web_search_call", "id": "s1", "status": "completed", "action": {"query": "Dune"}}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A novel."}]}
    asked = {"role": "user", "content": "What is Dune?"}
    for messages_ in ([asked, block], [asked, item, said]):
        trace = trace_of(json.dumps(messages_).encode())[1]
        tools = [step for step in trace.steps if step.kind == "tool"]
        assert [(step.name, step.arguments, step.executed) for step in tools] == [
            ("web_search", {"query": "Dune"}, True)
        ]
        assert trace.answer == "A novel."


def test_a_call_told_in_the_content_and_beside_it_is_one_call() -> None:
    use = {"type": "tool_use", "id": "c1", "name": "find_loan", "input": {"title": "Dune"}}
    call = {"name": "find_loan", "args": {"title": "Dune"}, "id": "c1", "type": "tool_call"}
    told = [
        {"type": "human", "content": "Find Dune"},
        {"type": "ai", "content": [use], "tool_calls": [call]},
        {"type": "tool", "content": "it broke", "tool_call_id": "c1", "status": "error"},
    ]
    _, trace = trace_of(json.dumps(told).encode())
    assert [(step.kind, bool(step.error)) for step in trace.steps] == [("llm", False), ("tool", True)]


def test_langfuse_says_where_in_a_graph_an_observation_stands() -> None:
    """Two lanes of a graph that join, without a message that would show what came from what."""
    told: list[dict[str, object]] = []
    for number, (node, superstep, trigger) in enumerate(
        [("a", 1, "branch:to:a"), ("b", 1, "branch:to:b"), ("c", 2, "branch:to:c"), ("d", 3, "join:a+b:d")], 1
    ):
        place = {"langgraph_node": node, "langgraph_step": superstep, "langgraph_triggers": [trigger]}
        for kind, name, own, above in (("CHAIN", node, number, 9), ("TOOL", f"use {node}", number + 4, number)):
            told.append(
                {
                    "id": f"{own:016x}", "traceId": "5e" * 16, "type": kind, "name": name,
                    "parentObservationId": f"{above:016x}", "startTime": f"2026-03-01T09:00:0{superstep}Z",
                    "endTime": f"2026-03-01T09:00:0{superstep}.5Z", "input": {"n": number}, "output": f"done {number}",
                    "metadata": {**place, "thread_id": "t-1"},
                }
            )  # fmt: skip
    told.append({**told[0], "id": f"{9:016x}", "parentObservationId": None, "name": "graph", "metadata": {}})
    _, trace = trace_of(json.dumps({"data": told}).encode())
    parents = {step.name: {edge.step_id[-1] for edge in step.parents} for step in trace.steps}
    assert parents["use a"] == parents["use b"] == set()
    assert parents["use d"] == {"5", "6"}
    assert trace.session == "t-1"


def test_an_older_langfuse_that_knows_no_tools_shows_them_in_the_messages() -> None:
    reading, trace = trace_of(json.dumps(langfuse_older()).encode())
    assert len({span.span_id for span in reading.spans}) == 6
    assert {span.parent_id for span in reading.spans[1:]} == {reading.spans[0].span_id}
    same_run(trace)
    assert [step.virtual for step in trace.steps] == [False, True, False, True, False]
    assert [(s.tokens.input, s.tokens.output) for s in trace.steps if s.tokens is not None] == TOKENS


def test_items_that_are_neither_message_nor_call_make_no_step_of_their_own() -> None:
    told = responses()
    told.insert(2, {"type": "mcp_list_tools", "id": "m", "server_label": "desk", "tools": []})
    told.insert(
        3, {"type": "mcp_approval_request", "id": "a", "name": "find_loan", "arguments": "{}", "server_label": "desk"}
    )
    same_run(trace_of(json.dumps(told).encode())[1])
