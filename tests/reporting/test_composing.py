import json
from dataclasses import replace

from evalagent.model import Attribution, Step
from evalagent.records import JudgeUse
from evalagent.reporting import html, junit, markdown, wording
from evalagent.reporting import json as report_json
from evalagent.reporting.composing import FAILED_SHOWN, STEPS_LISTED, compose
from evalagent.statistics.intervals import Interval
from tests.reporting.library_desk import library_desk, loose_traces
from tests.reporting.small_run import GOLDEN, rendered

RUN = library_desk()
REPORT = compose(RUN)


def test_the_json_form_is_what_it_was() -> None:
    assert rendered("report.json") == (GOLDEN / "report.json").read_text("utf-8")


def test_the_json_form_holds_only_json() -> None:
    odd = replace(RUN, receipt={"share": float("nan"), "text": "\ud800"})
    told = json.loads(report_json.render(compose(odd)))
    assert told["receipt"] == {"share": None, "text": "?"}
    assert told["scorecard"]["success"]["rate"] == 0.8


def test_failed_runs_are_grouped_by_cause_with_count_interval_and_words() -> None:
    first = REPORT.causes[0]
    assert (first.title, len(first.runs), first.n, first.rate, first.costly) == ("Wrong value", 4, 40, 0.1, 4)
    assert 0 < first.interval.low < 0.1 < first.interval.high
    assert first.quotes[0].text.startswith("wrong_argument_value: fee is 18")
    assert [len(cause.runs) for cause in REPORT.causes] == [4, 2, 1, 1]
    assert sum(len(cause.runs) for cause in REPORT.causes) == 8


def test_recommendations_come_in_the_order_of_the_failed_runs_they_account_for() -> None:
    assert [(item.runs, item.of) for item in REPORT.recommendations] == [(4, 8), (2, 8), (1, 8), (1, 8)]
    assert REPORT.headline.first == REPORT.recommendations[0].text


def test_a_run_whose_origin_is_unknown_is_grouped_by_how_it_ended() -> None:
    [late] = [cause for cause in REPORT.causes if cause.title == "The agent ran out of time"]
    assert [run.name for run in late.runs] == ["extend-reserved, trial 2"]


def test_an_ambiguous_origin_is_said_and_never_claimed() -> None:
    unsure = tuple(
        Attribution(a.trace_id, a.verdict, None, (), (), ambiguous=True) if a.root_causes else a
        for a in RUN.attributions
    )
    report = compose(replace(RUN, attributions=unsure))
    assert report.causes[0].title == "Origin ambiguous"
    assert all(detail.ambiguous for detail in report.failed if detail.line.case_id != "extend-reserved")


def test_costly_failures_come_first() -> None:
    assert [detail.severity for detail in REPORT.failed] == ["costly"] * 6 + ["normal"] * 2


def test_a_failed_run_tells_task_expectation_world_steps_and_cause() -> None:
    [detail] = [d for d in REPORT.failed if d.line.name == "waive-fee, trial 3"]
    assert detail.task.startswith("Waive the 4.50 late fee")
    assert 'World: fees[17]: state becomes "waived"' in detail.expected
    assert [line.state for line in detail.world] == ["missing", "as expected", "unexpected", "unexpected", "masked"]
    assert 'fees[18]: state "open" → "waived"' in [line.text for line in detail.world]
    assert [step.number for step in detail.steps] == [1, 2, 3, 4, 5, 6]
    assert detail.steps[3].marks == ("root cause", "first failing", "on the way")
    assert detail.causes[0].path[0].startswith("4 model step") and len(detail.causes[0].path) == 3
    assert {finding.code for finding in detail.findings} == {"wrong_argument_value", "false_success"}
    assert detail.steps[3].parents[0].number == 2


def test_passing_runs_worth_reading_are_named_with_the_reason() -> None:
    [read] = REPORT.to_read
    assert (read.line.name, read.why) == ("reserve-copy, trial 3", "1 error made good on the way")
    [detail] = [d for d in REPORT.others if d.line.name == read.line.name]
    assert "made good by step 7" in detail.recovered[0]


def test_what_is_not_judged_is_told_with_why_and_how_to_judge_it() -> None:
    told = compose(library_desk(unjudged=True)).not_judged
    assert [run.name for run in told.runs] == ["extend-loan, trial 1"]
    assert told.steps == sum(count for _, count in told.reasons)
    assert "ANTHROPIC_API_KEY" in told.advice and "--judge anthropic" in told.advice


def test_a_model_that_failed_is_named_in_place_of_the_advice_to_switch_one_on() -> None:
    told = compose(replace(RUN, judge=JudgeUse("anthropic", calls=9, failed=3))).not_judged
    assert told.advice.startswith("3 calls to the judge failed")


def test_a_good_run_says_how_weak_its_evidence_is() -> None:
    good = library_desk(only=("close-account", "extend-loan", "opening-hours"))
    head = compose(replace(good, exit_code=0, verdict="pass", reasons=())).headline
    assert head.word == "PASS"
    assert "12 of 12 judged runs passed: 100 % (95 % interval 29–100 %)" in head.works
    assert head.breaks == "Nothing that was judged failed."


def test_traces_that_nobody_judged_are_never_called_good() -> None:
    head = compose(loose_traces(0, "not_judged", "not_judged")).headline
    assert head.word == "NOT JUDGED"
    assert head.works.startswith("It cannot be told")


def test_more_failed_runs_than_can_be_told_are_counted() -> None:
    report = compose(loose_traces(1, *["fail"] * (FAILED_SHOWN + 5)))
    assert (len(report.failed), report.failed_left_out) == (FAILED_SHOWN, 5)
    assert len(report.runs) == FAILED_SHOWN + 5
    assert [run.anchor for run in report.runs].count(None) == 5


def test_a_long_run_lists_what_matters_and_says_how_much_it_left_out() -> None:
    record = loose_traces(1, "fail")
    trace = record.traces[0]
    steps = tuple(Step(trace.trace_id, f"s{n}", (), "tool", "t", n, n + 1) for n in range(1_000))
    cause = replace(RUN.attributions[0], trace_id=trace.trace_id, verdict="fail", first_failing_step="s700")
    report = compose(replace(record, traces=(replace(trace, steps=steps),), attributions=(cause,)))
    [detail] = report.failed
    assert {700, 701, 702} <= {step.number for step in detail.steps}
    assert detail.steps_left_out == 1_000 - len(detail.steps)
    assert sum(step.skipped_before for step in detail.steps) <= detail.steps_left_out
    assert detail.first_failing == "step 701, tool t"


def test_a_text_that_is_cut_says_how_much_is_missing() -> None:
    assert wording.bounded("x" * 30, 10) == "x" * 10 + "… (20 more characters)"
    assert wording.value({"b": 1, "a": None}, 50) == '{"a": null, "b": 1}'


def test_a_share_is_never_rounded_to_all_or_nothing() -> None:
    assert wording.percent(1.0) == "100 %"
    assert wording.percent(0.999) == "99.9 %"
    assert wording.percent(0.9999) == "99.9 %"
    assert wording.percent(0.0001) == "0.1 %"
    assert wording.percent(0.0) == "0 %"
    assert wording.percent(None) == "not known"


def test_what_is_not_known_is_said_and_not_shown_as_zero() -> None:
    assert wording.number(None) == wording.seconds(None) == "not known"
    assert wording.span(None) == "no interval from so few"
    assert wording.span(Interval(0.525, 0.931, "")) == "95 % interval 52–93 %"
    assert wording.number(0.0) == "0"


def test_a_cause_that_is_not_certain_is_called_possible_everywhere() -> None:
    unsure = tuple(replace(a, ambiguous=True) if a.root_causes else a for a in RUN.attributions)
    report = compose(replace(RUN, attributions=unsure))
    assert report.causes[0].ambiguous == 4
    assert "Ambiguous in 4" in report.headline.breaks
    for text in (html.render(report), markdown.render(report), junit.render(report)):
        assert "possible cause" in text.lower()
        assert "root cause:" not in text.lower()


def test_the_passing_run_that_made_most_errors_good_is_read_first() -> None:
    twice = {a.trace_id: a for a in RUN.attributions if a.recovered}
    [(trace_id, seen)] = twice.items()
    fine = next(trial for trial in RUN.trials if trial.verdict == "pass" and trial.trace_ids != (trace_id,))
    more = tuple(
        replace(a, recovered=seen.recovered * 2) if a.trace_id in fine.trace_ids else a for a in RUN.attributions
    )
    told = compose(replace(RUN, attributions=more)).to_read
    assert [read.line.name for read in told] == [f"{fine.case_id}, trial {fine.trial}", "reserve-copy, trial 3"]


def test_many_long_runs_share_the_steps_that_are_listed() -> None:
    record = loose_traces(1, *["fail"] * FAILED_SHOWN)
    steps = tuple(replace(record.traces[0].steps[1], step_id=f"s{n}", parents=()) for n in range(300))
    long = tuple(replace(t, steps=tuple(replace(s, trace_id=t.trace_id) for s in steps)) for t in record.traces)
    report = compose(replace(record, traces=long))
    assert sum(len(detail.steps) for detail in report.failed) <= STEPS_LISTED
    assert all(len(detail.steps) + detail.steps_left_out == 300 for detail in report.failed)
