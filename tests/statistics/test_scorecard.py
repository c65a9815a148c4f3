import json
from dataclasses import replace

import pytest

from evalagent.statistics.scorecard import FirstFailing, scorecard
from tests.reporting.library_desk import library_desk, loose_traces

RUN = library_desk()
CARD = scorecard(RUN)


def test_ten_cases_of_four_trials_give_both_rates_and_name_the_intermittent_cases() -> None:
    assert (CARD.unit, CARD.runs, CARD.cases) == ("trial", 40, 10)
    assert (CARD.success.passed, CARD.success.n, CARD.success.rate) == (32, 40, 0.8)
    assert [(entry.k, entry.cases) for entry in CARD.pass_hat_k] == [(1, 10), (2, 10), (3, 10), (4, 10)]
    assert CARD.pass_hat_k[0].rate == pytest.approx(0.8)
    assert CARD.pass_hat_k[3].rate == pytest.approx(0.5)
    assert CARD.intermittent == (
        "extend-reserved",
        "merge-accounts",
        "move-reservation",
        "waive-fee",
        "waive-wrong-fee",
    )


def test_a_run_that_is_not_judged_counts_neither_way_and_bounds_the_rates() -> None:
    card = scorecard(library_desk(unjudged=True))
    assert (card.success.passed, card.success.n, card.success.not_judged) == (31, 39, 1)
    assert card.success.rate == pytest.approx(31 / 39)
    assert (card.success.worst, card.success.best) == (31 / 40, 32 / 40)
    last = card.pass_hat_k[-1]
    assert (last.cases, last.of_cases) == (9, 10)
    assert last.rate == pytest.approx(4 / 9)
    assert (last.worst, last.best) == (pytest.approx(0.4), pytest.approx(0.5))


def test_what_one_run_does_not_tell_leaves_the_total_unknown_and_the_known_part_said() -> None:
    assert CARD.tokens.total is None
    assert (CARD.tokens.n, CARD.tokens.unknown) == (39, 1)
    known = [trial.tokens for trial in RUN.trials if trial.tokens is not None]
    assert CARD.tokens.known_total == sum(known)
    assert CARD.steps.total == sum(trial.steps for trial in RUN.trials)
    assert CARD.wall_s.max == 61.5


def test_a_run_whose_spending_is_unknown_is_not_within_budget_and_not_over_it() -> None:
    assert CARD.within_budget is not None
    assert (CARD.within_budget.within, CARD.within_budget.n, CARD.within_budget.unknown) == (37, 39, 1)
    assert scorecard(replace(RUN, budgets=None)).within_budget is None


def test_steps_are_counted_as_judged_by_kind_and_by_who_did_it() -> None:
    coverage = CARD.coverage
    judged = {(v.trace_id, v.step_id) for v in RUN.verdicts if v.step_id and v.verdict != "not_judged"}
    assert (coverage.judged, coverage.steps) == (len(judged), sum(len(trace.steps) for trace in RUN.traces))
    assert coverage.by_kind["tool"][0] == coverage.by_kind["tool"][1]
    assert coverage.by_judge == {"rules": len(judged)}


def test_costly_failures_stand_apart_from_harmless_ones() -> None:
    assert (CARD.failures["costly"].failed, CARD.failures["costly"].n) == (6, 16)
    assert CARD.failures["costly"].cases == ("merge-accounts", "waive-fee", "waive-wrong-fee")
    assert (CARD.failures["harmless"].failed, CARD.failures["harmless"].n) == (0, 8)


def test_first_failing_steps_are_tallied_and_failed_runs_without_one_are_kept() -> None:
    assert CARD.first_failing[0] == FirstFailing("llm", "fill_arguments", "desk-model", 4)
    assert sum(row.runs for row in CARD.first_failing) == 8
    assert FirstFailing(None, None, None, 1) in CARD.first_failing


def test_held_out_cases_have_numbers_of_their_own() -> None:
    assert CARD.held_out is not None and CARD.open is not None
    assert (CARD.held_out.passed, CARD.held_out.n) == (5, 8)
    assert (CARD.open.passed, CARD.open.n) == (27, 32)
    none = scorecard(replace(RUN, trials=tuple(replace(t, held_out=False) for t in RUN.trials)))
    assert none.held_out is None and none.open is None


def test_traces_without_trials_are_the_runs_themselves() -> None:
    card = scorecard(loose_traces(1, "pass", "fail", "not_judged"))
    assert (card.unit, card.runs, card.success.passed, card.success.n) == ("trace", 3, 1, 2)
    assert card.pass_hat_k == ()
    assert card.within_budget is None
    assert card.tokens.total == 3 * 3_000


def test_nothing_to_count_is_null_and_never_zero() -> None:
    card = scorecard(replace(loose_traces(3), traces=(), verdicts=())).to_json()
    assert card["success"]["rate"] is None
    assert card["success"]["worst"] is None
    assert card["success"]["interval"] is None
    assert card["coverage"]["share"] is None
    assert card["tokens"]["total"] is None
    assert card["wall_s"]["p95"] is None


def test_a_wall_time_that_cannot_be_is_unknown() -> None:
    record = loose_traces(0, "pass")
    backwards = replace(record.traces[0], end_ns=record.traces[0].start_ns - 1)
    assert scorecard(replace(record, traces=(backwards,))).wall_s.total is None


def test_a_model_call_without_tokens_leaves_the_tokens_of_its_trace_unknown() -> None:
    record = loose_traces(0, "pass")
    steps = tuple(replace(step, tokens=None) if step.aspect == "plan" else step for step in record.traces[0].steps)
    card = scorecard(replace(record, traces=(replace(record.traces[0], steps=steps),)))
    assert card.tokens.total is None and card.tokens.known_total is None


def test_it_is_plain_json_and_the_same_again() -> None:
    once, again = (json.dumps(scorecard(library_desk()).to_json(), allow_nan=False) for _ in range(2))
    assert once == again


def test_the_order_of_the_record_does_not_matter() -> None:
    turned = replace(RUN, trials=RUN.trials[::-1], traces=RUN.traces[::-1], verdicts=RUN.verdicts[::-1])
    assert scorecard(turned).to_json() == CARD.to_json()


@pytest.mark.parametrize("judge", ["rules", "none"])
def test_failures_that_rules_picked_out_of_given_traces_give_bounds_and_no_rate(judge) -> None:
    picked = loose_traces(1, "fail", "fail", "not_judged", "not_judged", "not_judged")
    card = scorecard(replace(picked, judge=replace(picked.judge, name=judge)))
    assert card.success.selected
    told = card.to_json()["success"]
    assert (told["rate"], told["interval"]) == (None, None)
    assert (told["passed"], told["n"], told["not_judged"], told["worst"], told["best"]) == (0, 2, 3, 0.0, 0.6)


def test_a_rate_stands_where_all_given_traces_are_judged_or_a_model_was_asked() -> None:
    assert scorecard(loose_traces(1, "pass", "fail")).success.rate == 0.5
    asked = loose_traces(1, "pass", "fail", "not_judged")
    assert scorecard(replace(asked, judge=replace(asked.judge, name="anthropic"))).success.rate == 0.5


def test_trials_that_rules_judged_keep_their_rate_beside_those_not_judged() -> None:
    run = library_desk(unjudged=True)
    assert scorecard(replace(run, judge=replace(run.judge, name="rules"))).success.rate == pytest.approx(31 / 39)
