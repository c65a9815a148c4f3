import json
from dataclasses import replace

from evalagent.model import Attribution, Finding, RootCause, Step
from evalagent.records import JudgeUse, RunRecord
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


def test_a_failed_run_that_no_step_explains_says_so_and_where_to_look() -> None:
    nothing = tuple(
        Attribution(a.trace_id, a.verdict, None, (), (), ambiguous=True) if a.root_causes else a
        for a in RUN.attributions
    )
    report = compose(replace(RUN, attributions=nothing))
    assert (report.causes[0].title, report.causes[0].where) == ("Wrong end state", "no step of the trace explains it")
    assert report.headline.first.startswith("Compare the changes of the world in these runs with the calls that write")
    assert "first failing step" not in report.headline.first
    [detail] = [d for d in report.failed if d.line.name == "waive-fee, trial 3"]
    assert detail.hints == (
        "No step of the trace explains it.",
        "Compare the changes of the world with the calls that write to fees, notes.",
    )
    assert not detail.ambiguous
    for text in (html.render(report), markdown.render(report), junit.render(report)):
        assert "No step of the trace explains it." in text


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


def test_a_run_with_several_root_causes_counts_under_the_first_and_is_named_under_the_others() -> None:
    by_trace = {trace.trace_id: trace for trace in RUN.traces}
    two = tuple(
        replace(a, root_causes=(*a.root_causes, RootCause(by_trace[a.trace_id].steps[0].step_id, None, "F06", (), "-")))
        if a.root_causes
        else a
        for a in RUN.attributions
    )
    report = compose(replace(RUN, attributions=two))
    assert sum(len(cause.runs) for cause in report.causes) == 8
    last = report.causes[-1]
    assert (len(last.runs), len(last.also), last.category) == (0, 7, "F06")
    assert sum(item.runs for item in report.recommendations) == 8
    assert (report.recommendations[-1].runs, report.recommendations[-1].also) == (0, 7)
    assert "First in none, also in 7 of 8 failed runs" in markdown.render(report)


def test_of_two_causes_with_equally_many_runs_the_costlier_comes_first() -> None:
    only = library_desk(only=("extend-reserved", "merge-accounts"))
    assert [(cause.title, cause.costly) for cause in compose(only).causes][-1] == ("The agent ran out of time", 0)


def looping_over_budget() -> RunRecord:
    """A run that fails by its budget alone, with a loop that the checks only warn of."""
    [trial] = [t for t in RUN.trials if (t.case_id, t.trial) == ("merge-accounts", 4)]
    [trace] = [t for t in RUN.traces if t.trace_id in trial.trace_ids]
    looped = "`search_cards` was called 5 times with the same result"
    ids = [step.step_id for step in trace.steps if step.name == "search_cards"]
    return replace(
        RUN,
        traces=(trace,),
        trials=(replace(trial, reasons=("over_budget: over budget: 16 steps, allowed are 12",)),),
        outcomes=(),
        verdicts=(),
        attributions=(Attribution(trace.trace_id, "fail", None, (), (), ambiguous=True),),
        findings=(
            Finding(trace.trace_id, ids[1], "loop", "warning", looped, {"times": 5, "steps": ids}),
            Finding(trace.trace_id, None, "over_budget", "error", "over budget: 16 steps, allowed are 12"),
        ),
    )


def test_a_loop_in_a_run_over_budget_is_named_as_what_to_mend_in_every_form() -> None:
    report = compose(looping_over_budget())
    assert [(cause.title, cause.where) for cause in report.causes] == [("Over budget in a loop", "tool search_cards")]
    assert report.headline.first.startswith("Stop after two calls with the same result")
    assert report.failed[0].hints[1].startswith("Loop, step 7: `search_cards` was called 5 times")
    assert report.failed[0].findings[1].quotes == ("times: 5", "steps: step 5, step 7, step 9, step 11, step 13")
    assert "Loop, step 7:" in markdown.render(report).replace("\\", "")
    assert "Loop, <a href=" in html.render(report)
    assert "Loop, step 7:" in junit.render(report)


def test_a_crashed_run_shows_its_reasons_in_full_and_says_where_stderr_stands() -> None:
    last_line = "stderr ends: ModuleNotFoundError: " + "no module named desk " * 25
    [trial] = [t for t in RUN.trials if (t.case_id, t.trial) == ("extend-reserved", 2)]
    crashed = replace(
        trial, exit="crashed", trace_ids=(), steps=0, reasons=("the agent exited with code 1", last_line.strip())
    )
    report = compose(replace(RUN, traces=(), trials=(crashed,), outcomes=(), attributions=(), findings=(), verdicts=()))
    assert report.causes[0].title == "The agent crashed"
    assert report.causes[0].quotes[0].text.startswith("the agent exited with code 1; stderr ends: ModuleNotFoundError")
    assert "`trials/CASE/N/trial.json`" in report.recommendations[0].text
    assert report.failed[0].line.reasons[1] == last_line.strip()
    for text in (html.render(report), markdown.render(report).replace("\\", "")):
        assert last_line.strip() in text
        assert "stderr_tail" in text


def test_where_no_model_call_was_seen_the_first_screen_says_so_and_nothing_is_free() -> None:
    blind = tuple(replace(t, steps=tuple(s for s in t.steps if s.kind != "llm")) for t in RUN.traces)
    zero = tuple(replace(t, tokens=0, cost_usd=0.0) for t in RUN.trials)
    report = compose(replace(RUN, traces=blind, trials=zero))
    asked = "No model call was seen: is the client instrumented?"
    assert report.health.notice == f"{asked} Tokens and cost are not known."
    known = {line.name: (line.n, line.unknown, line.total) for line in report.budgets}
    assert known["tokens"] == known["cost"] == (0, 40, None)
    page, text = html.render(report), markdown.render(report)
    assert page.index(asked) < page.index("</header>") < page.rindex(asked)
    assert text.index(asked) < text.index("## Numbers") < text.rindex(asked)
    assert REPORT.health.notice == ""


def test_what_held_out_means_is_said_where_there_are_held_out_cases() -> None:
    for render in (html.render, markdown.render):
        assert wording.HELD_OUT in render(REPORT)
        assert wording.HELD_OUT not in render(compose(library_desk(only=("waive-fee",))))


SELECTED = loose_traces(1, "fail", "fail", "not_judged")
FOUND = "2 failures found; 1 trace not judged (between 0 % and 33 % passed)"


def test_failures_picked_out_of_given_traces_are_no_rate_in_any_form() -> None:
    report = compose(SELECTED)
    assert report.headline.works.startswith(FOUND)
    assert FOUND in markdown.render(report)
    assert FOUND in html.render(report)
    assert f'<property name="success" value="{FOUND}"/>' in junit.render(report)
    told = json.loads(report_json.render(report))
    assert told["scorecard"]["success"]["rate"] is None
    assert all(cause["rate"] is None and cause["interval"] is None for cause in told["causes"])
    for text in (markdown.render(report), html.render(report), junit.render(report)):
        assert "95 % interval 0" not in text and "0 % (" not in text


def test_every_trace_is_named_with_its_session_in_every_form() -> None:
    report = compose(SELECTED)
    told = json.loads(report_json.render(report))
    assert [run["session"] for run in told["runs"]] == ["talk-0", "talk-1", "talk-2"]
    assert {detail["line"]["session"] for detail in told["failed"]} == {"talk-0", "talk-1"}
    first = SELECTED.traces[0].trace_id
    reasons = compose(replace(SELECTED, reasons=(f"trace {first}: loop",))).reasons
    assert reasons == (f"trace {first} (session talk-0): loop",)
    for run in report.runs:
        named = f"{run.case_id} (session {run.session})"
        assert named in markdown.render(report)
        assert f'<testcase name="{named}"' in junit.render(report)
        assert f'title="{named}"' in html.render(report)


def test_a_page_shows_short_ids_and_keeps_the_whole_one_at_hand() -> None:
    assert wording.brief("4bf92f3577b34da6a3ce929d0e0e4736") == "4bf92f35…"
    assert wording.brief("0000000000000000a3ce929d0e0e4736") == "…0e0e4736"
    assert wording.brief("short") == "short"
    assert wording.shortened("x" * 36) == "x" * 36
    assert wording.shortened("airline/some-very-long-model-name/17/0", 20) == "airline/s…-name/17/0"


def test_money_keeps_two_significant_digits_below_a_cent() -> None:
    said = {0.0: "$0", 0.0000351: "$0.000035", 0.00999: "$0.01", 0.0834: "$0.0834", 0.5: "$0.5", 1234.5: "$1,234.50"}
    assert {amount: wording.money(amount) for amount in said} == said
    assert wording.money(None) == "cost not known"
    assert wording.number(0.0000351) == "0.000035"
