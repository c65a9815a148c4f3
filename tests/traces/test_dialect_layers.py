"""One call told by several layers of instrumentation is one call; two calls are two, however alike."""

import pytest

from evalagent.model import Json, Trace
from evalagent.traces.building import build
from tests.traces.loans import MODEL
from tests.traces.spans import answers, asks, chat, codes, only, pairs, said, step, tool

APP = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
OUTER, INNER = "opentelemetry.instrumentation.langchain", "opentelemetry.instrumentation.openai.v1"
SDK = "com.anthropic.sdk.python"


def usage(given: int, told: int) -> dict[str, Json]:
    return {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": told}


def kinds(trace: Trace) -> list[str]:
    return [s.kind for s in trace.steps]


def test_the_same_reply_told_side_by_side_by_two_instrumentations_is_one_step() -> None:
    question, asked = said("Where is Dune?", "user"), asks(("call_1", "find_book", {"title": "Dune"}))
    trace = only(
        [
            chat(2, None, 0, 20, [question], asked, scope=OUTER, attributes=usage(9, 4)),
            chat(3, None, 1, 19, [question], asks(("fc_1", "find_book", {"title": "Dune"})), scope=INNER),
            tool(4, None, "find_book", 21, 25, "call_1", {"title": "Dune"}, "with ada"),
        ]
    )
    assert kinds(trace) == ["llm", "tool"]
    assert trace.steps[0].span_ids == (f"{2:016x}", f"{3:016x}")
    assert trace.steps[0].tokens is not None and trace.steps[0].tokens.input == 9


@pytest.mark.parametrize("reply", ["Dune is with ben.", "Dune"])
def test_two_calls_at_once_that_answer_differently_are_two_steps(reply: str) -> None:
    trace = only(
        [
            chat(2, None, 0, 20, [said("a", "user")], said("Dune is with ada."), scope=OUTER),
            chat(3, None, 1, 19, [said("b", "user")], said(reply), scope=INNER),
        ]
    )
    assert kinds(trace) == ["llm", "llm"]


def test_two_calls_of_one_instrumentation_are_two_steps_though_they_answer_the_same() -> None:
    calls = [chat(n, None, n, 20 - n, [said("go", "user")], said("yes"), scope=OUTER) for n in (2, 3)]
    assert kinds(only(calls)) == ["llm", "llm"]


def test_of_a_stream_the_sdk_knows_best_what_was_put_out() -> None:
    trace = only(
        [
            chat(2, None, 0, 20, [said("a", "user")], said("b"), attributes=usage(20, 6), scope=INNER),
            chat(3, 2, 1, 19, [], None, attributes=usage(23, 5), scope=SDK),
        ]
    )
    assert [(s.tokens.input, s.tokens.output) for s in trace.steps if s.tokens] == [(20, 5)]


def test_a_call_told_again_in_a_trace_of_its_own_is_counted_once_in_any_order() -> None:
    question = said("Where is Dune?", "user")
    spans = [
        chat(2, None, 0, 20, [question], said("With ada."), scope=OUTER, attributes=usage(9, 4)),
        chat(3, None, 1, 19, [question], said("With ada."), scope=INNER, attributes=usage(9, 4), trace="b" * 32),
    ]
    for given in (spans, spans[::-1]):
        first, second = build(given).traces
        assert (kinds(first), kinds(second)) == (["llm"], [])
        assert list(second.ignored.values()) == ["told_in_another_trace"]
        assert codes(second) == []


@pytest.mark.parametrize(
    "change",
    [
        {"scope": OUTER},
        {"reply": said("With ben.")},
        {"end": 25},
        {"attributes": {"gen_ai.request.model": "another"}},
    ],
    ids=["one scope", "another reply", "ends later", "another model"],
)
def test_a_call_of_its_own_stays_one(change: dict[str, Json]) -> None:
    question = said("Where is Dune?", "user")
    reply, end = change.pop("reply", said("With ada.")), change.pop("end", 19)
    own = chat(3, None, 1, end, [question], reply, **{"scope": INNER, "trace": "b" * 32, **change})  # type: ignore[arg-type]
    first, second = build([chat(2, None, 0, 20, [question], said("With ada."), scope=OUTER), own]).traces
    assert (kinds(first), kinds(second)) == (["llm"], ["llm"])


def test_a_tool_belongs_to_the_call_before_it_however_soon_the_next_one_begins() -> None:
    look = {"title": "Dune"}
    first, second = asks(("call_1", "find_book", look)), asks(("call_2", "find_book", look))
    trace = only(
        [
            chat(2, None, 0, 10, [said("q", "user")], first),
            tool(3, None, "find_book", 10.1, 10.2, None, look, "with ada"),
            chat(4, None, 10.5, 20, [said("q", "user"), first, answers(("call_1", "with ada"))], second),
            tool(5, None, "find_book", 20.1, 20.2, None, look, "with ada"),
        ]
    )
    assert pairs(trace) == {("2", "3"), ("3", "4"), ("4", "5")}
    assert codes(trace) == ["tokens_unknown"]


def test_a_model_call_that_failed_is_not_asked_for_its_tokens() -> None:
    trace = only(
        [
            chat(2, None, 0, 5, [said("q", "user")], None, status="error", status_message="429"),
            chat(3, None, 6, 9, [said("q", "user")], said("a"), attributes=usage(1, 1)),
        ]
    )
    assert step(trace, 2).tokens is None
    assert codes(trace) == []


def test_with_contents_off_the_call_after_a_failed_one_is_its_retry() -> None:
    trace = only(
        [
            chat(2, None, 0, 5, [], None, status="error", status_message="500"),
            chat(3, None, 6, 9, [], None, attributes=usage(1, 1)),
        ]
    )
    assert [(edge.step_id[-1], edge.via) for edge in step(trace, 3).parents] == [("2", "retry")]


def test_ids_that_an_instrumentor_made_of_places_join_nothing() -> None:
    scope = "opentelemetry.instrumentation.google_genai"
    asked = asks(("find_loan_1", "find_loan", {"member": "ada"}), ("find_loan_2", "find_loan", {"member": "ben"}))
    back = answers(("find_loan_0", "ada has one"), ("find_loan_1", "ben has none"))
    question = said("Who has what?", "user")
    trace = only(
        [
            chat(2, None, 0, 9, [question], asked, scope=scope),
            chat(3, None, 10, 19, [question, asked, back], said("Only ada."), scope=scope),
        ]
    )
    found = {s.arguments["member"]: s.result for s in trace.steps if s.virtual and isinstance(s.arguments, dict)}
    assert found == {"ada": "ada has one", "ben": "ben has none"}


def test_with_contents_off_what_follows_two_calls_at_once_follows_both() -> None:
    trace = only([chat(2, None, 0, 20, [], None), chat(3, None, 1, 19, [], None), chat(4, None, 21, 30, [], None)])
    assert pairs(trace) == {("2", "4"), ("3", "4")}


def test_an_agent_that_nothing_names_lends_its_steps_no_name() -> None:
    unnamed = chat(1, None, 0, 30, [], None, attributes={"gen_ai.operation.name": "invoke_agent"})
    trace = only([unnamed, chat(2, 1, 1, 9, [said("q", "user")], said("a"))])
    assert [s.agent for s in trace.steps] == [None]


def test_a_calls_content_block_in_a_text_part_is_no_text() -> None:
    block = '{"arguments": "{}", "call_id": "call_1", "name": "find_book", "type": "function_call", "id": "fc_1"}'
    call = {"type": "tool_call", "id": "call_1", "name": "find_book", "arguments": {}}
    reply = {"role": "assistant", "parts": [{"type": "text", "content": block}, call]}
    made = only([chat(2, None, 0, 5, [said("q", "user")], reply)]).steps[0].reply
    assert made is not None and (made.text, len(made.requests)) == ("", 1)


def test_results_that_are_the_lines_of_one_message_without_ids_are_one_for_each_call() -> None:
    call = "llm.input_messages.1.message.tool_calls"
    spoken: dict[str, Json] = {"openinference.span.kind": "LLM", "llm.model_name": MODEL}
    for at, name in enumerate(("ada", "ben")):
        spoken[f"{call}.{at}.tool_call.function.name"] = "find_loan"
        spoken[f"{call}.{at}.tool_call.function.arguments"] = f'{{"member": "{name}"}}'
        spoken[f"llm.input_messages.2.message.contents.{at}.message_content.text"] = f"{name} has one"
    spoken["llm.input_messages.1.message.role"] = "assistant"
    spoken["llm.input_messages.2.message.role"] = "tool"
    spoken["llm.input_messages.0.message.content"] = "Who has what?"
    told = only([chat(2, None, 0, 5, [], None, attributes=spoken)]).steps[0].messages[-1]
    assert [answer.content for answer in told.answers] == ["ada has one", "ben has one"]
