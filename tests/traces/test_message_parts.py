"""A message of GenAI parts is read on a short way; on the long one it comes to the same."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evalagent.traces.parts import read_message

TEXTS = st.sampled_from(
    ["", "hello", "Calling tools:\n[{'name': 'f', 'arguments': {}}]", '{"a": 1}', '[{"text": "x"}]']
)
VALUES = st.sampled_from([None, "", "text", '{"a": [1.0]}', {"a": 1}, [], [{"text": "one"}, {"text": "two"}], 7])
IDS = st.sampled_from([None, "", "c1", "c2"])
PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "content": TEXTS}),
    st.fixed_dictionaries(
        {"type": st.just("tool_call"), "id": IDS, "name": st.sampled_from(["f", ""]), "arguments": VALUES}
    ),
    st.fixed_dictionaries({"type": st.just("tool_call_response"), "id": IDS, "response": VALUES}),
    st.fixed_dictionaries({"type": st.just("tool_call_response"), "id": IDS, "result": VALUES}),
    st.fixed_dictionaries({"type": st.just("reasoning"), "content": TEXTS}),
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool", "model", "Developer", "", "critic"])


@given(ROLES, st.lists(PARTS, max_size=4), st.sampled_from(["user", "assistant", "system"]))
def test_the_short_way_is_the_long_way(role: str, parts: list[Any], otherwise: str) -> None:
    message = {"role": role, "parts": parts, "finish_reason": "stop"}
    assert read_message(message, otherwise) == read_message(message | {"of no known meaning": 0}, otherwise)
