"""What the terminal shows agrees with the record and cannot be steered by it."""

from dataclasses import replace

import pytest

from evalagent.model import Attribution, RootCause
from evalagent.reporting import text
from tests.reporting.library_desk import library_desk, loose_traces


def test_the_headline_is_the_exit_code() -> None:
    record = library_desk()
    assert "(exit 1)" in text.render(record).splitlines()[0]
    assert "could not be judged (exit 3)" in text.render(replace(record, exit_code=3)).splitlines()[0]


def test_every_case_stands_in_the_table_once() -> None:
    record = library_desk()
    lines = text.render(record).splitlines()
    start = next(n for n, line in enumerate(lines) if line.split()[:2] == ["case", "runs"])
    shown = [line.split()[0] for line in lines[start + 1 : start + 1 + len(record.cases)]]
    assert sorted(shown) == sorted({trial.case_id for trial in record.trials})


def test_how_to_switch_a_model_on_is_said_only_where_none_was_asked() -> None:
    record = library_desk()
    assert "--judge anthropic" in text.render(replace(record, judge=replace(record.judge, name="rules")))
    assert "--judge anthropic" not in text.render(replace(record, judge=replace(record.judge, name="anthropic")))


def test_control_characters_do_not_reach_the_terminal() -> None:
    record = replace(library_desk(), title="\x1b[31mred\x07 \u202egnp.exe")
    shown = text.render(record)
    assert not any(ord(c) < 32 and c != "\n" for c in shown)
    assert "\u202e" not in shown


def test_failed_runs_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "SHOWN", 3)
    record = library_desk()
    failed = sum(trial.verdict == "fail" for trial in record.trials)
    assert f"… and {failed - 3} more, in the report" in text.render(record)


def test_failures_among_given_traces_are_told_as_found_and_not_as_a_rate() -> None:
    lines = text.render(loose_traces(1, "fail", "not_judged", "not_judged", "not_judged")).splitlines()
    said = "1 failure found; 3 traces not judged (between 0 % and 75 % passed)"
    assert lines[0] == f"traces.jsonl: {said} (exit 1)"
    assert not any("interval" in line for line in lines)


def test_a_failed_trace_is_named_with_its_session() -> None:
    record = loose_traces(1, "fail")
    assert f"  {record.traces[0].trace_id} (session talk-0): " in text.render(record)


def test_several_possible_causes_are_all_said_and_steps_are_named_by_number() -> None:
    record = loose_traces(1, "fail")
    trace = record.traces[0]
    first, second, last = trace.steps[0].step_id, trace.steps[1].step_id, trace.steps[-1].step_id
    causes = (
        RootCause(second, None, None, (second,), f"not certain: step {first} before it was judged by nobody"),
        RootCause(first, None, None, (first,), "nothing before it failed"),
    )
    attribution = Attribution(trace.trace_id, "fail", last, causes, ambiguous=True)
    shown = text.render(replace(record, attributions=(attribution,)))
    of = len(trace.steps)
    assert f"first failing step: step {of} of {of}, " in shown
    assert f"possible cause: step 2 of {of}, " in shown
    assert f"possible cause: step 1 of {of}, " in shown
    assert "not certain: step 1 before it" in shown
    assert not any(step.step_id in shown for step in trace.steps)


def test_a_long_reason_ends_after_a_whole_sentence() -> None:
    record = loose_traces(1, "fail")
    why = "The desk answered with the wrong copy. " + "It went on and on about the shelves. " * 30
    [verdict] = [replace(v, reason=why) for v in record.verdicts]
    shown = text.render(replace(record, verdicts=(verdict,)))
    [line] = [line for line in shown.splitlines() if "wrong copy" in line]
    assert line.endswith("about the shelves") and len(line) < 500


def test_little_money_is_not_shown_as_none() -> None:
    record = loose_traces(1, "pass")
    [trace] = record.traces
    steps = tuple(replace(step, cost_usd=0.0000351 if n == 0 else 0.0) for n, step in enumerate(trace.steps))
    assert "$0.000035" in text.render(replace(record, traces=(replace(trace, steps=steps),)))
