"""Which test a span meets first: remembered, and never wrongly."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from evalagent.model import Json, Span
from evalagent.traces.recognizing import Recognizer

VALUES = st.sampled_from(["a", "b", 1, True, 1.0, 0, None, [1], ["a"], {"x": 1}])
SPANS = st.builds(
    lambda name, scope, attributes: Span("t", "s", None, name, 0, 1, attributes=attributes, scope=scope),
    st.sampled_from(["chat", "tool"]),
    st.sampled_from(["", "here"]),
    st.dictionaries(st.sampled_from(["k", "l", "m"]), VALUES),
)
TESTS: list[Callable[[Span], bool]] = [
    lambda span: span.scope == "here" and span.name == "tool",
    lambda span: span.attributes.get("k") == "a" and span.attributes.get("l") is True,
    lambda span: "m" in span.attributes and str(span.attributes.get("l")) == "1",
    lambda span: [1] in span.attributes.values(),
    lambda span: span.name == "chat" and span.attributes.get("m") is not None,
]


def plainly(span: Span) -> int:
    return next((at for at, test in enumerate(TESTS) if test(span)), -1)


@given(st.lists(SPANS, max_size=40))
def test_what_is_remembered_is_what_the_tests_say(spans: list[Span]) -> None:
    recognizer = Recognizer(TESTS)
    assert [recognizer.first(span) for span in spans] == [plainly(span) for span in spans]


def test_spans_of_one_kind_are_tested_once() -> None:
    asked: list[str] = []

    def first(span: Span) -> bool:
        asked.append(span.name)
        return span.attributes.get("system") == "mine"

    recognizer = Recognizer([first, lambda span: True])
    systems: list[Json] = ["mine", "yours", "mine", "yours", "mine"]
    found = [recognizer.first(Span("t", str(n), None, "chat", n, n, attributes={"system": s, "id": n}))
             for n, s in enumerate(systems)]  # fmt: skip
    assert found == [0, 1, 0, 1, 0]
    assert len(asked) == 2


def test_ever_new_kinds_of_spans_do_not_fill_the_memory() -> None:
    recognizer = Recognizer([lambda span: "k" in span.attributes])
    for number in range(10_000):
        recognizer.first(Span("t", "s", None, f"cycle {number}", 0, 1))
    assert len(recognizer._known) <= 4096
