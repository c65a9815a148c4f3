"""The cause of a failure, and when it cannot be told."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalagent.attribution.attributing import attribute
from evalagent.model import Edge, Finding, Message, Step, Trace, Verdict
from tests.attribution.planted import TRACE, planted, step, trace, verdict

EVIDENCE = {"call", "data", "handoff", "link"}


def verdicts(*found: Verdict) -> dict[str, Verdict]:
    return {v.step_id: v for v in found if v.step_id}


def test_blame_goes_to_the_worst_failing_parent_again_and_again() -> None:
    run = trace(step("a", 0), step("b", 1, "a"), step("c", 2), step("d", 3, "b", "c"), step("e", 4, "d"))
    found = attribute(
        run,
        verdicts(verdict("a", 0.2), verdict("b", 0.1), verdict("c", 0.5), verdict("d", 0.3), verdict("e", 0.4)),
        (),
        True,
    )
    assert (found.verdict, found.first_failing_step, found.ambiguous) == ("fail", "a", False)
    assert [(c.step_id, c.path) for c in found.root_causes] == [("a", ("a", "b", "d", "e")), ("c", ("c", "d", "e"))]


def test_ties_are_broken_by_the_earlier_start_then_by_the_id() -> None:
    run = trace(step("b", 0), step("a", 0), step("c", 3), step("d", 4, "a", "b", "c"))
    bad = verdicts(*(verdict(n, 0.0, "yes") for n in "abcd"))
    found = attribute(run, bad, (), True)
    assert [c.step_id for c in found.root_causes] == ["a", "b", "c"]
    assert found.root_causes[0].path == ("a", "d")
    assert not found.ambiguous


def test_where_scores_cannot_tell_which_of_two_origins_it_was_the_answer_is_ambiguous() -> None:
    run = trace(step("a", 0), step("b", 1), step("c", 2, "a", "b"))
    found = attribute(run, verdicts(verdict("a", 0.1), verdict("b", 0.1), verdict("c", 0.1)), (), True)
    assert found.ambiguous and {c.step_id for c in found.root_causes} == {"a", "b"}


def test_a_passing_step_between_two_failing_ones_parts_them() -> None:
    run = trace(step("a", 0), step("b", 1, "a"), step("c", 2, "b"))
    found = attribute(run, verdicts(verdict("a", 0.0), verdict("b", 0.9), verdict("c", 0.0)), (), True)
    assert {c.step_id: c.path for c in found.root_causes} == {"a": ("a",), "c": ("c",)}
    assert not found.ambiguous


def test_a_step_that_nobody_judged_on_the_way_gives_candidates_and_no_claim() -> None:
    run = trace(step("a", 0), step("b", 1, "a"), step("c", 2, "b"))
    found = attribute(run, verdicts(verdict("a", 0.0), verdict("b", None), verdict("c", 0.0)), (), True)
    assert found.ambiguous
    assert [(c.step_id, c.path) for c in found.root_causes] == [("a", ("a", "b", "c")), ("c", ("c",))]
    assert "nobody judged" in found.root_causes[0].reason


def test_a_fault_that_arose_here_is_kept_in_spite_of_unjudged_steps_before() -> None:
    run = trace(step("a", 0), step("b", 1, "a"))
    found = attribute(run, verdicts(verdict("a", None), verdict("b", 0.0, "yes")), (), True)
    assert ([c.step_id for c in found.root_causes], found.ambiguous) == (["b"], False)


def test_a_fault_that_was_in_the_inputs_passes_the_blame_on() -> None:
    run = trace(step("a", 0), step("b", 1, "a"), step("c", 2, "b"))
    found = attribute(run, verdicts(verdict("a", 0.0), verdict("b", None), verdict("c", 0.0, "no")), (), True)
    assert ([c.step_id for c in found.root_causes], found.ambiguous) == (["a"], True)


def test_a_fault_in_the_inputs_with_no_failing_step_behind_is_ambiguous() -> None:
    run = trace(step("a", 0), step("b", 1, "a"))
    assert attribute(run, verdicts(verdict("a", 1.0), verdict("b", 0.0, "no")), (), True).ambiguous
    assert not attribute(run, verdicts(verdict("a", 1.0), verdict("b", 0.0)), (), True).ambiguous


@pytest.mark.parametrize("via", ["order", "retry"])
def test_a_way_by_order_alone_is_no_claim(via: str) -> None:
    run = trace(step("a", 0), step("b", 1, "a", via=via))  # type: ignore[arg-type]
    found = attribute(run, verdicts(verdict("a", 0.0), verdict("b", 0.0)), (), True)
    assert found.ambiguous and {c.step_id for c in found.root_causes} == {"a", "b"}


def info(step_id: str, **evidence: object) -> Finding:
    return Finding(TRACE, step_id, "tool_error", "info", "it failed", evidence)


def error(step_id: str | None, code: str = "tool_error", **evidence: object) -> Finding:
    return Finding(TRACE, step_id, code, "error", "it failed", evidence or None)


def test_a_recovered_error_is_listed_and_blameless() -> None:
    run = trace(step("a", 0), replace(step("b", 1, "a", via="call"), kind="tool", request_step="a"), step("c", 2, "b"))
    bad = verdicts(verdict("a", 0.1), verdict("b", 0.0), verdict("c", 1.0))
    found = attribute(run, bad, (info("b", recovered_by="c", how="again"),), None)
    assert (found.verdict, found.first_failing_step, found.root_causes) == ("pass", None, ())
    assert [(r.step_id, r.by) for r in found.recovered] == [("a", "c"), ("b", "c")]


def test_recovered_errors_are_listed_in_a_failed_run_too_and_are_no_cause_of_it() -> None:
    run = trace(step("a", 0), step("b", 1, "a"), step("c", 2, "b"))
    bad = verdicts(verdict("a", 0.0), verdict("b", 1.0), verdict("c", 0.2))
    found = attribute(run, bad, (info("a", recovered_by="b"),), True)
    assert [c.step_id for c in found.root_causes] == ["c"]
    assert (found.first_failing_step, [r.step_id for r in found.recovered]) == ("c", ["a"])


def test_where_the_end_state_is_right_a_judges_doubt_is_no_failure_but_an_error_is() -> None:
    run = trace(step("a", 0), step("b", 1, "a"))
    doubted = attribute(run, verdicts(verdict("a", 0.2), verdict("b", 1.0)), (), False)
    assert (doubted.verdict, doubted.root_causes, [r.step_id for r in doubted.recovered]) == ("pass", (), ["a"])
    broken = attribute(run, verdicts(verdict("a", 1.0), verdict("b", 0.0)), (error("b", "false_success"),), False)
    assert (broken.verdict, broken.first_failing_step) == ("fail", "b")


def test_a_failure_with_no_failing_step_names_nobody_and_is_ambiguous_unless_no_step_explains_it() -> None:
    good = verdicts(verdict("a", 1.0))
    found = attribute(trace(step("a", 0)), good, (), True)
    assert (found.verdict, found.first_failing_step, found.root_causes, found.ambiguous) == ("fail", None, (), True)
    unexplained = attribute(trace(step("a", 0)), good, (error(None, "unexpected_change"),), True)
    assert unexplained == replace(found, ambiguous=False)


def test_without_verdicts_nothing_is_claimed() -> None:
    found = attribute(trace(step("a", 0)), {}, (), None)
    assert (found.verdict, found.ambiguous, found.root_causes) == ("not_judged", False, ())
    assert attribute(trace(step("a", 0)), verdicts(verdict("a", 1.0)), (), None).verdict == "pass"
    assert attribute(trace(), {}, (), None).verdict == "not_judged"


def test_an_error_finding_fails_a_step_even_without_a_verdict() -> None:
    found = attribute(trace(step("a", 0)), {}, (error("a", own_fault="yes", category="F25"),), None)
    assert (found.verdict, found.ambiguous) == ("fail", False)
    assert [(c.step_id, c.category, c.score) for c in found.root_causes] == [("a", "F25", None)]


def test_a_score_under_tau_fails_and_tau_can_be_chosen() -> None:
    run = trace(step("a", 0))
    passed = replace(verdict("a", 0.75), verdict="pass")
    assert attribute(run, verdicts(passed), (), None).verdict == "pass"
    assert attribute(run, verdicts(passed), (), None, tau=0.8).verdict == "fail"


def test_health_and_findings_of_other_traces_say_nothing_of_the_agent() -> None:
    other = Finding("e" * 32, "a", "tool_error", "error", "x")
    health = Finding(TRACE, None, "no_agent_steps", "error", "x")
    assert attribute(trace(step("a", 0)), {}, (other, health), None).verdict == "not_judged"


def test_the_first_failing_step_may_be_another_than_the_root_cause() -> None:
    run = trace(step("a", 0), step("b", 1), step("c", 2, "b"))
    found = attribute(run, verdicts(verdict("a", 0.6), verdict("b", 0.1), verdict("c", 0.2)), (), True)
    assert (found.first_failing_step, found.root_causes[0].step_id) == ("a", "b")


def test_steps_out_of_order_and_cycles_are_survived() -> None:
    run = trace(step("c", 2, "b"), step("b", 1, "a"), step("a", 0))
    found = attribute(run, verdicts(*(verdict(n, 0.1) for n in "abc")), (), True)
    assert [c.path for c in found.root_causes] == [("a", "b", "c")]
    circle = trace(step("a", 0, "b"), step("b", 1, "a"), step("c", 2, "b", "gone"))
    found = attribute(circle, verdicts(*(verdict(n, 0.1) for n in "abc")), (), True)
    assert [c.step_id for c in found.root_causes] == ["a"]


def test_a_parent_in_another_trace_leaves_it_open_where_it_began() -> None:
    away = replace(step("a", 0), parents=(Edge("z", "link", 1.0, "e" * 32),))
    assert attribute(trace(away), verdicts(verdict("a", 0.1)), (), True).ambiguous
    assert not attribute(trace(away), verdicts(verdict("a", 0.1, "yes")), (), True).ambiguous


# --- through calls that did as they were asked ---------------------------------------------------------


def call(name: str, start: int, asker: str, result: object) -> Step:
    made = step(name, start, asker, via="call")
    return replace(made, kind="tool", request_step=asker, arguments={}, result=result)


def says(name: str, start: int, *parents: str, text: str) -> Step:
    return replace(step(name, start, *parents), reply=Message("assistant", text))


def handed_on(text: str, task: str | None = None) -> Trace:
    """a asks, b answers AX-77, c speaks of it."""
    steps = (step("a", 0), call("b", 1, "a", {"item": "AX-77"}), says("c", 2, "b", text=text))
    return replace(trace(*steps), task=task)


def test_blame_passes_through_a_call_that_did_as_it_was_asked() -> None:
    bad = verdicts(verdict("a", 0.0), verdict("b", 1.0), verdict("c", 0.0))
    found = attribute(handed_on("It is AX-77."), bad, (), True)
    assert [(c.step_id, c.path) for c in found.root_causes] == [("a", ("a", "b", "c"))]
    assert not found.ambiguous


def test_what_left_no_value_behind_is_not_known_to_have_had_a_part() -> None:
    bad = verdicts(verdict("a", 0.0), verdict("b", 1.0), verdict("c", 0.0))
    for run in (handed_on("I cannot help."), handed_on("It is AX-77.", task="What of AX-77?")):
        found = attribute(run, bad, (), True)
        assert [c.step_id for c in found.root_causes] == ["a", "c"] and found.ambiguous
    bad["c"] = verdict("c", 0.0, "no")
    assert [c.step_id for c in attribute(handed_on("I cannot help."), bad, (), True).root_causes] == ["a"]


def test_a_fault_of_its_own_stays_whatever_was_asked_before() -> None:
    bad = verdicts(verdict("a", 0.0), verdict("b", 1.0), verdict("c", 0.0, "yes"))
    found = attribute(handed_on("It is AX-77."), bad, (), True)
    assert ([c.step_id for c in found.root_causes], found.ambiguous) == (["a", "c"], False)


def test_a_call_that_a_judge_found_right_parts_what_is_before_and_after_it() -> None:
    bad = verdicts(verdict("a", 0.0), replace(verdict("b", 1.0), judge="a model"), verdict("c", 0.0))
    found = attribute(handed_on("It is AX-77."), bad, (), True)
    assert [c.step_id for c in found.root_causes] == ["a", "c"]


def test_an_asking_step_that_nobody_judged_leaves_it_open_where_it_began() -> None:
    bad = verdicts(verdict("a", None), verdict("b", 1.0), verdict("c", 0.0))
    found = attribute(handed_on("It is AX-77."), bad, (), True)
    assert ([c.step_id for c in found.root_causes], found.ambiguous) == (["c"], True)
    assert "step a before it was judged by nobody" in found.root_causes[0].reason


def test_the_origin_that_explains_most_is_named_first_wherever_the_run_ended() -> None:
    run = trace(step("a", 0), step("b", 1, "a"), step("c", 2, "b"), step("d", 3))
    found = attribute(run, verdicts(*(verdict(n, 0.0) for n in "abcd")), (), True)
    assert [c.step_id for c in found.root_causes] == ["a", "d"]
    apart = attribute(trace(step("b", 1), step("a", 1), step("z", 0)), {}, tuple(error(n) for n in "abz"), True)
    assert [c.step_id for c in apart.root_causes] == ["z", "a", "b"]


def test_an_excused_slip_counts_again_where_the_run_failed_and_the_failure_goes_back_to_it() -> None:
    slip = Finding(TRACE, "a", "id_never_seen", "info", "made up", {"excused_by": "the end state is right"})
    bad = verdicts(verdict("a", None), verdict("b", 1.0), verdict("c", 0.0))
    found = attribute(handed_on("It is AX-77."), bad, (slip,), True)
    assert (found.first_failing_step, [c.step_id for c in found.root_causes], found.recovered) == ("a", ["a"], ())
    apart = attribute(replace(handed_on("No."), steps=(*handed_on("No.").steps, step("e", 9))), verdicts(
        verdict("a", None), verdict("b", 1.0), verdict("c", 1.0), verdict("e", 0.0)), (slip,), True)  # fmt: skip
    assert (apart.first_failing_step, [c.step_id for c in apart.root_causes]) == ("e", ["e"])
    assert [r.step_id for r in apart.recovered] == ["a"]


def test_a_run_over_its_budget_is_put_down_to_its_largest_repetition_or_to_nobody() -> None:
    run = trace(step("a", 0), step("b", 1, "a"), step("c", 2, "b"))
    over = Finding(TRACE, None, "over_budget", "error", "27 steps, allowed are 15")
    rounds = tuple(Finding(TRACE, n, "loop", "warning", "again", {"times": t}) for n, t in (("a", 4), ("b", 9)))
    found = attribute(run, {}, (over, *rounds), True)
    assert (found.first_failing_step, [(c.step_id, c.category) for c in found.root_causes]) == ("b", [("b", "F07")])
    none = attribute(run, {}, (over,), True)
    assert (none.verdict, none.first_failing_step, none.root_causes, none.ambiguous) == ("fail", None, (), True)
    assert attribute(run, {}, rounds, None).root_causes == ()


# --- laws -----------------------------------------------------------------------------------------


@st.composite
def judged_dags(draw: st.DrawFn) -> tuple[Trace, dict[str, Verdict]]:
    size = draw(st.integers(1, 14))
    steps = []
    for at in range(size):
        parents = draw(st.lists(st.integers(0, at - 1), max_size=3, unique=True)) if at else []
        edges = tuple(
            Edge(f"s{p}", draw(st.sampled_from(["call", "data", "handoff", "link", "order", "retry"])), 1.0)
            for p in parents
        )
        steps.append(replace(step(f"s{at}", draw(st.integers(0, 5))), parents=edges))
    scores = st.sampled_from([None, 0.0, 0.1, 0.5, 1.0])
    faults = st.sampled_from(["yes", "no", "unknown"])
    return trace(*steps), {s.step_id: verdict(s.step_id, draw(scores), draw(faults)) for s in steps}  # type: ignore[arg-type]


@given(judged_dags(), st.sampled_from([True, None]))
@settings(max_examples=300, deadline=None)
def test_each_cause_fails_has_no_failing_parent_and_leads_to_its_symptom(
    run: tuple[Trace, dict[str, Verdict]], failed: bool | None
) -> None:
    dag, judged = run
    found = attribute(dag, judged, (), failed)
    failing = {i for i, v in judged.items() if v.verdict == "fail"}
    edges = {s.step_id: {e.step_id for e in s.parents if e.via in EVIDENCE} for s in dag.steps}
    assert (found.first_failing_step in failing) == bool(failing)
    assert bool(found.root_causes) == bool(failing)
    assert len({c.step_id for c in found.root_causes}) == len(found.root_causes)
    for cause in found.root_causes:
        assert cause.step_id in failing
        assert not edges[cause.step_id] & failing
        assert cause.path[0] == cause.step_id and cause.path[-1] in failing
        assert all(a in edges[b] for a, b in zip(cause.path, cause.path[1:], strict=False))
        if not found.ambiguous:
            assert set(cause.path) <= failing
    if not found.ambiguous:
        sources = {i for i in failing if not edges[i] & failing}
        assert {c.step_id for c in found.root_causes} == sources
    assert found == attribute(dag, judged, (), failed)


def test_one_planted_fault_is_found_first_in_at_least_95_of_100_runs() -> None:
    right = 0
    for seed in range(200):
        run = planted(seed)
        found = attribute(run.trace, run.verdicts, (), True)
        right += found.root_causes[0].step_id == run.faults[0] and not found.ambiguous
    assert right >= 190


def test_two_planted_faults_are_both_listed() -> None:
    both = 0
    for seed in range(200):
        run = planted(seed, faults=2)
        found = attribute(run.trace, run.verdicts, (), True)
        both += set(run.faults) <= {c.step_id for c in found.root_causes}
    assert both == 200


def test_a_very_long_chain_takes_no_recursion_and_linear_time() -> None:
    size = 100_000
    steps = tuple(step(f"{at}", at, *((f"{at - 1}",) if at else ())) for at in range(size))
    bad = verdict("0", 0.1)
    judged = {f"{at}": bad for at in range(size)}
    found = attribute(trace(*steps), judged, (), True)
    assert [(c.step_id, len(c.path)) for c in found.root_causes] == [("0", size)]
