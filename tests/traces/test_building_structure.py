"""Edges that graphs, links, sessions, retrievers and, last of all, time show."""

import json
from dataclasses import replace

from evalagent.model import Event, Json, Link, Span
from evalagent.traces.building import build
from tests.traces.loans import MODEL, span
from tests.traces.spans import AGENT, answers, asks, chat, only, pairs, said, step, tool


def node(number: int, name: str, step: int, start: float, end: float, *triggers: str) -> Span:
    meta = {"langgraph_step": step, "langgraph_node": name, "langgraph_triggers": list(triggers), "thread_id": "t"}
    return span(number, 1, name, start, end, {"openinference.span.kind": "CHAIN", "metadata": json.dumps(meta)})


def inside(number: int, parent: int, start: float, end: float, prompt: str, reply: str) -> Span:
    return span(
        number,
        parent,
        "ChatOpenAI",
        start,
        end,
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": MODEL,
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": prompt,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": reply,
        },
    )


def test_a_graph_that_forks_and_joins_gives_a_fork_and_a_join() -> None:
    trace = only(
        [
            span(1, None, "graph", 0, 99, {"openinference.span.kind": "CHAIN"}),
            node(10, "plan", 1, 1, 9, "branch:to:plan"),
            inside(11, 10, 2, 8, "make one", "outline ready"),
            node(20, "left", 2, 10, 30, "branch:to:left"),
            inside(21, 20, 11, 29, "go left", "left is done"),
            node(30, "right", 2, 10, 50, "branch:to:right"),
            inside(31, 30, 11, 49, "go right", "right is done"),
            node(40, "join", 3, 60, 70, "join:left+right:join"),
            inside(41, 40, 61, 69, "sum up", "finished"),
        ]
    )
    assert pairs(trace) == {("b", "15"), ("b", "1f"), ("15", "29"), ("1f", "29")}
    assert [s.node for s in trace.steps] == ["plan", "left", "right", "join"]


def test_static_edges_of_a_graph_tell_lanes_of_different_length_apart() -> None:
    def task(number: int, name: str, step: int, start: float, end: float) -> Span:
        base = "traceloop.association.properties."
        return span(
            number,
            1,
            f"execute_task {name}",
            start,
            end,
            {
                "gen_ai.operation.name": "execute_task",
                "gen_ai.task.name": name,
                "traceloop.span.kind": "task",
                base + "langgraph_node": name,
                base + "langgraph_step": step,
                base + "thread_id": "t",
            },
        )

    edges = ["start -> a", "start -> b", "a -> a2", "b -> end", "a2 -> end"]
    trace = only(
        [
            span(1, None, "g", 0, 99, AGENT | {"gen_ai.workflow.edges": edges}),
            task(2, "start", 1, 1, 5),
            task(3, "a", 2, 6, 20),
            task(4, "b", 2, 6, 25),
            task(5, "a2", 3, 30, 40),
            task(6, "end", 4, 50, 60),
        ]
    )
    assert [s.kind for s in trace.steps] == ["node"] * 5
    assert ("4", "5") not in pairs(trace)
    assert {("2", "3"), ("2", "4"), ("3", "5"), ("5", "6")} <= pairs(trace)


def test_a_node_that_waits_for_a_person_is_resumed_in_a_later_trace() -> None:
    waits = replace(
        node(3, "approve", 2, 10, 12), events=(Event("exception", 1, {"exception.type": "GraphInterrupt"}),)
    )
    later = replace(node(4, "approve", 2, 100, 105), trace_id="7b" * 16, parent_id=None)
    built = build([span(1, None, "g", 0, 20, {"openinference.span.kind": "CHAIN"}), waits, later])
    first, second = built.traces
    assert [s.kind for s in first.steps] == ["human"]
    assert first.steps[0].error is None
    assert [(e.step_id, e.trace_id, e.via) for e in second.steps[0].parents] == [
        (waits.span_id, first.trace_id, "link")
    ]


def test_links_carry_the_flow_of_a_workflow_and_not_its_nesting() -> None:
    def executor(number: int, start: float, end: float, *links: int) -> Span:
        known = [Link("5e" * 16, f"{to:016x}") for to in links]
        return span(number, 1, f"executor.process e{number}", start, end, {"executor.id": f"e{number}"}, links=known)

    trace = only(
        [
            span(1, None, "workflow.run", 0, 99),
            executor(2, 1, 5),
            span(20, 2, "message.send", 4, 5),
            executor(3, 6, 20, 20),
            span(30, 3, "message.send", 19, 20),
            executor(4, 6, 30, 20),
            span(40, 4, "message.send", 29, 30),
            executor(5, 31, 40, 30, 40),
        ]
    )
    assert pairs(trace) == {("2", "3"), ("2", "4"), ("3", "5"), ("4", "5")}
    assert {edge.via for s in trace.steps for edge in s.parents} == {"link"}
    assert set(trace.ignored.values()) == {"message_send"}


def test_links_lead_through_traces_without_steps() -> None:
    def trace_span(trace: str, number: int, name: str, start: float, *links: Link, **attributes: Json) -> Span:
        return span(
            number,
            None,
            name,
            start,
            start + 9,
            attributes,
            trace=trace * 16,
            links=links,
            scope="autogen SingleThreadedAgentRuntime",
        )

    first = tool(2, None, "transfer_to_b", 1, 3, "c1", trace="a1" * 16)
    between = trace_span("b2", 3, "autogen process Manager", 10, Link("a1" * 16, first.span_id))
    last = trace_span("c3", 4, "autogen process b", 20, Link("b2" * 16, between.span_id))
    work = tool(5, 4, "look", 21, 25, "c2", trace="c3" * 16)
    built = build([first, between, last, work])
    found = [
        (e.step_id, e.trace_id, e.via) for t in built.traces for s in t.steps if s.name == "look" for e in s.parents
    ]
    assert found == [(first.span_id, "a1" * 16, "link")]


def test_tools_that_lost_their_trace_in_a_thread_find_their_request_again() -> None:
    both = asks(("a", "look", {"n": 1}), ("b", "look", {"n": 2}))
    spans = [
        span(1, None, "d", 0, 9, AGENT),
        chat(2, 1, 1, 2, [said("go", "user")], both),
        tool(3, None, "look", 3, 4, None, {"n": 1}, "one", trace="a1" * 16),
        tool(4, None, "look", 3, 4, None, {"n": 2}, "two", trace="b2" * 16),
        chat(5, 1, 6, 7, [said("go", "user"), both, answers(("a", "one"), ("b", "two"))], said("done")),
    ]
    built = build(spans)
    assert not any(s.virtual for t in built.traces for s in t.steps)
    parents = {s.step_id[-1]: {(e.step_id[-1], e.trace_id) for e in s.parents} for t in built.traces for s in t.steps}
    assert parents["3"] == {("2", "5e" * 16)}
    assert {("3", "a1" * 16), ("4", "b2" * 16)} <= parents["5"]


def test_a_conversation_over_two_traces_of_one_session_is_one_flow() -> None:
    session = {"gen_ai.conversation.id": "s1"}
    first = chat(2, None, 0, 5, [said("hello there", "user")], said("what can I do?"), attributes=session)
    history = [said("hello there", "user"), said("what can I do?"), said("nothing", "user")]
    second = chat(3, None, 10, 15, history, said("fine"), attributes=session, trace="7b" * 16)
    built = build([first, second])
    (edge,) = built.traces[1].steps[0].parents
    assert (edge.step_id, edge.trace_id, edge.via) == (first.span_id, first.trace_id, "data")


def test_a_hand_off_leads_to_the_first_step_of_its_target() -> None:
    trace = only(
        [
            span(1, None, "w", 0, 99, {"gen_ai.operation.name": "invoke_workflow"}),
            span(2, 1, "invoke_agent a", 1, 20, AGENT | {"gen_ai.agent.name": "a"}),
            chat(3, 2, 2, 9, [said("help", "user")], asks(("c1", "transfer_to_b", {}))),
            tool(4, 2, "transfer_to_b", 10, 12, "c1", {}),
            span(5, 1, "invoke_agent b", 21, 50, AGENT | {"gen_ai.agent.name": "b"}),
            chat(6, 5, 22, 30, [said("you are b", "system")], said("I am b")),
        ]
    )
    assert step(trace, 4).kind == "handoff"
    assert [(e.step_id[-1], e.via, e.confidence) for e in step(trace, 6).parents] == [("4", "handoff", 0.9)]
    assert step(trace, 3).aspect == "delegate"


def test_what_a_retriever_found_leads_to_the_call_that_was_shown_it() -> None:
    trace = only(
        [
            span(1, None, "query", 0, 99, {"openinference.span.kind": "CHAIN"}),
            span(
                2,
                1,
                "retrieve",
                1,
                20,
                {
                    "openinference.span.kind": "RETRIEVER",
                    "input.value": "rules?",
                    "retrieval.documents.0.document.content": "Books are lent for three weeks.",
                },
            ),
            span(3, 2, "embed", 2, 10, {"openinference.span.kind": "EMBEDDING", "embedding.model_name": "e"}),
            inside(4, 1, 30, 40, "Use this: Books are lent for three weeks. Answer: rules?", "three weeks"),
        ]
    )
    assert pairs(trace) == {("3", "2"), ("2", "4")}
    assert step(trace, 4).parents[0].via == "data"


def test_a_fixed_prompt_is_no_dependency_on_the_step_that_later_says_the_same() -> None:
    rules = "Books are lent for three weeks."
    prompt = [{"role": "system", "parts": [{"type": "text", "content": rules}]}]
    trace = only(
        [
            chat(2, None, 0, 9, [*prompt, said("a", "user")], said("x")),
            tool(3, None, "rules", 1, 5, None, {}, rules),
            chat(4, None, 6, 20, [*prompt, said("b", "user")], said("y")),
        ]
    )
    assert [(edge.step_id[-1], edge.via) for edge in step(trace, 4).parents] == [("3", "order")]


def test_steps_that_overlap_do_not_wait_for_each_other() -> None:
    trace = only([tool(2, None, "a", 0, 10), tool(3, None, "b", 5, 15), tool(4, None, "c", 16, 20)])
    assert pairs(trace) == {("2", "4"), ("3", "4")}
    assert {edge.via for s in trace.steps for edge in s.parents} == {"order"}


def test_the_same_short_word_again_comes_from_who_said_it_last() -> None:
    def person(number: int, at: float) -> Span:
        return span(number, 1, "user", at, at + 1, {"gen_ai.agent.name": "user", "output.value": "yes please"})

    spans = [span(1, None, "d", 0, 99, AGENT)]
    for turn in range(3):
        spans += [person(2 * turn + 2, 10 * turn), chat(2 * turn + 3, 1, 10 * turn + 2, 10 * turn + 4,
                  [said("yes please", "user")], said(f"done {turn}"))]  # fmt: skip
    assert {("2", "3"), ("4", "5"), ("6", "7")} <= pairs(only(spans))
    assert ("2", "7") not in pairs(only(spans))
