"""Whatever stands in a trace, the checks answer, alike each time, and in time."""

import math
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalagent.attribution.attributing import attribute
from evalagent.attribution.effects import findings_from_outcome
from evalagent.checks.checking import check, known_codes
from evalagent.model import Expectation, ExpectedChange, Json, Outcome, ToolSchema, WorldChange
from tests.checks.parcel_runs import Run

KEYS = st.sampled_from(["id", "parcel_id", "error", "status", "type", "$ref"])
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
    | st.sampled_from(["Error: x", "PX-4711", "$1,234.50", "2025-13-45", "31.12.9999", "1e400", "\ud800", "{[", "٣٤٥٦"])
)  # fmt: skip
json = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=8) | KEYS, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(arguments=json, result=json, said=st.text(max_size=60) | st.sampled_from(["It is done.", "$61.27"]), wanted=json)
@settings(max_examples=250, deadline=None)
def test_any_content_gives_known_findings_on_known_steps_and_the_same_again(
    arguments: Json, result: Json, said: str, wanted: Json
) -> None:
    schema = ToolSchema("act", "", wanted if isinstance(wanted, dict) else None)
    run = (
        Run(said or "go", tools=(schema,))
        .asks(("act", arguments), ("act", wanted))
        .returns(result)
        .returns(result, error=said)
    )
    trace = run.asks(("act", arguments)).loses().answers(said).trace()
    expected = Expectation(wanted_tools=(("act", {"x": wanted}),), reply_values=(wanted,))
    findings = check(trace, expected)
    assert findings == check(trace, expected) or any(
        isinstance(v, float) and math.isnan(v) for v in (arguments, wanted)
    )
    assert {f.code for f in findings} <= set(known_codes())
    assert {f.step_id for f in findings} <= {s.step_id for s in trace.steps} | {None}
    row = {"id": arguments, "x": result}
    outcome = Outcome(
        "c", 1, "fail", (ExpectedChange({"table": "t", "key": wanted, "set": {"x": result}}, False, ""),),
        (WorldChange("t", wanted, "update", {"x": arguments}, {"x": result}), WorldChange("t", 1, "insert", None, row)),
    )  # fmt: skip
    more = findings_from_outcome(trace, outcome)
    assert [f.code for f in more] == ["unexpected_change", "unexpected_change", "missing_change"]
    assert attribute(trace, {}, (*findings, *more), True).verdict == "fail"


LONG = {
    "letters": "a" * 300_000,
    "capitals": "A" * 300_000,
    "digits": "7" * 300_000,
    "groups": "1,111" + ",111" * 80_000,
    "dots": "a" + "." * 300_000,
    "underscores": "a_" * 150_000,
    "days": "1-1-2025 " * 30_000,
    "spaces": "we" + " " * 300_000 + "x",
    "numbers": " ".join(str(n * 7919) for n in range(30_000)),
    "nested": "[" * 100_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.timeout(60)
def test_no_text_is_slow_to_read(text: str) -> None:
    run = Run(text).asks(("act", {"note": text, "parcel_id": text})).returns({"error": text}).answers(text)
    start = time.process_time()
    check(run.trace(), Expectation(reply_values=("x", 61.27, "2025-03-14")))
    assert time.process_time() - start < 20


def test_time_grows_with_the_trace_and_not_with_its_square() -> None:
    def seconds(turns: int) -> float:
        run = Run("Look after PX-1")
        for turn in range(turns):
            run.history = run.history[-6:]
            run.asks(("find", {"parcel_id": f"PX-{turn}", "n": turn})).returns(
                {"parcel_id": f"PX-{turn + 1}", "cents": turn * 7 + 1000}, error="HTTP 503" if turn % 50 == 7 else None
            )
        trace = replace(run.answers("All done.").trace(), task="Look after PX-0")
        start = time.process_time()
        check(trace)
        return time.process_time() - start

    small, large = seconds(500), seconds(4_000)
    assert large < 8 * 3 * small + 0.2
