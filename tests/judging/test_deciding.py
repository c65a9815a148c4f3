import pickle
import time

import pytest

from evalagent.checks.checking import COMPLETE, known_codes
from evalagent.judging.deciding import decide, not_judged_verdicts
from evalagent.model import Edge, Finding, Message, Step, ToolRequest, Trace
from tests.judging.small_runs import TRACE, alone, changed, finding, refund, step

ID = [f"{n:016x}" for n in range(10)]


def test_every_step_has_exactly_one_of_verdict_and_question() -> None:
    decision = decide(refund(), (finding(3, "id_never_seen"),), 0.7)
    asked = [q.step_id for q in decision.questions]
    assert sorted([*decision.verdicts, *asked]) == [s.step_id for s in refund().steps]
    assert not set(decision.verdicts) & set(asked)


def test_an_error_finding_decides_fail_with_the_code_s_category_and_fault() -> None:
    info = known_codes()["id_never_seen"]
    verdict = decide(refund(), (finding(3, "id_never_seen", message="order 99"),), 0.7).verdicts[ID[3]]
    assert (verdict.verdict, verdict.score, verdict.judge) == ("fail", 0.0, "rules")
    assert (verdict.category, verdict.own_fault) == (info.category, info.own_fault)
    assert "order 99" in verdict.reason
    assert verdict.aspect == "fill_arguments"


def test_of_several_errors_the_one_that_blames_the_step_names_it_and_all_are_told() -> None:
    codes = known_codes()
    blaming = next(code for code, info in codes.items() if info.own_fault == "yes" and info.severity == "error")
    open_one = next(code for code, info in codes.items() if info.own_fault == "unknown" and info.severity == "error")
    both = (finding(3, open_one), finding(3, blaming))
    verdict = decide(refund(), both, 0.7).verdicts[ID[3]]
    assert verdict == decide(refund(), both[::-1], 0.7).verdicts[ID[3]]
    assert (verdict.category, verdict.own_fault) == (codes[blaming].category, "yes")
    assert [e["code"] for e in verdict.evidence] == [blaming, open_one]


def test_what_a_finding_says_of_fault_and_class_goes_before_its_code() -> None:
    told = finding(2, "unexpected_change", evidence={"own_fault": "yes", "category": "F23"})
    verdict = decide(refund(), (told,), 0.7).verdicts[ID[2]]
    assert (verdict.verdict, verdict.own_fault, verdict.category) == ("fail", "yes", "F23")
    nonsense = finding(2, "unexpected_change", evidence={"own_fault": ["no"], "category": "F00"})
    verdict = decide(refund(), (nonsense,), 0.7).verdicts[ID[2]]
    info = known_codes()["unexpected_change"]
    assert (verdict.own_fault, verdict.category) == (info.own_fault, info.category)
    both = decide(refund(), (finding(2, "tool_error"), told), 0.7).verdicts[ID[2]]
    assert (both.own_fault, both.category) == ("yes", "F23")


def test_an_error_that_may_be_one_step_or_another_passes_and_fails_neither() -> None:
    open_ = Finding(TRACE, None, "unexpected_change", "error", "which one?", {"candidates": [ID[2], ID[4]]})
    decision = decide(refund(), (open_,), 0.7)
    assert not decision.verdicts
    assert next(q for q in decision.questions if q.step_id == ID[2]).warnings == ("unexpected_change",)


def test_silence_passes_only_kinds_that_the_checks_decide_completely() -> None:
    decision = decide(refund(), (), 0.7)
    kinds = {s.step_id: s.kind for s in refund().steps}
    assert {kinds[i] for i, v in decision.verdicts.items() if v.verdict == "pass"} <= set(COMPLETE)
    assert {kinds[q.step_id] for q in decision.questions} == {"llm"}


def test_silence_of_a_check_that_was_switched_off_passes_nothing() -> None:
    off = sorted(COMPLETE["tool"])[0]
    decision = decide(refund(), (), 0.7, skipped=(off,))
    assert not decision.verdicts
    assert len(decision.questions) == 5


@pytest.mark.parametrize("more", [{"content": False}, {"truncated": True, "result": None}])
def test_silence_passes_nothing_that_was_not_seen_whole(more: dict[str, object]) -> None:
    verdict = decide(changed(refund(), 2, **more), (), 0.7).verdicts[ID[2]]
    assert verdict.verdict == "not_judged"
    assert verdict.score is None


def test_a_cut_tool_result_is_asked_about_with_the_cut_declared() -> None:
    questions = decide(changed(refund(), 2, truncated=True), (), 0.7).questions
    question = next(q for q in questions if q.step_id == ID[2])
    assert any("limit of the recording" in line for line in question.omitted)


def test_a_recovered_error_costs_nothing() -> None:
    recovered = finding(2, "tool_error", "info", evidence={"recovered_by": ID[4]})
    verdict = decide(refund(), (recovered,), 0.7).verdicts[ID[2]]
    assert verdict.verdict == "pass"
    assert "made good" in verdict.reason


def test_a_warning_about_the_agent_breaks_the_silence_and_one_about_the_recording_does_not() -> None:
    asked = decide(refund(), (finding(2, "loop", "warning"),), 0.7)
    assert next(q for q in asked.questions if q.step_id == ID[2]).warnings == ("loop",)
    assert decide(refund(), (finding(2, "clock_skew", "warning"),), 0.7).verdicts[ID[2]].verdict == "pass"


def test_findings_of_other_traces_and_on_whole_traces_decide_no_step() -> None:
    foreign = Finding("f" * 32, ID[3], "unknown_tool", "error", "elsewhere")
    whole = Finding(TRACE, None, "over_budget", "error", "too many steps")
    assert decide(refund(), (foreign, whole), 0.7) == decide(refund(), (), 0.7)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (step(1, "llm", "m", content=False), "not captured"),
        (step(1, "llm", "m"), "answered was not captured"),
        (
            step(1, "llm", "m", reply=Message("assistant", "", (ToolRequest("a", "pay", '{"am', truncated=True),))),
            "cut by a limit",
        ),
        (step(1, "human", "reviewer", output="ok"), "not the agent's work"),
        (step(1, "embedding", "e", output=[0.1]), "numbers"),
        (step(1, "retrieval", "search"), "result was not captured"),
    ],
)
def test_what_nobody_can_read_is_not_judged_with_its_reason(one: Step, why: str) -> None:
    decision = decide(alone(one), (), 0.7)
    verdict = decision.verdicts[one.step_id]
    assert (verdict.verdict, verdict.score, verdict.own_fault) == ("not_judged", None, "unknown")
    assert why in verdict.reason
    assert not decision.questions


def test_an_empty_answer_that_was_captured_is_a_question() -> None:
    decision = decide(alone(step(1, "llm", "m", aspect="answer", reply=Message("assistant", ""))), (), 0.7)
    assert [q.rubric for q in decision.questions] == ["answer"]


def test_without_a_judge_every_question_becomes_not_judged() -> None:
    decision = decide(refund(), (), 0.7, show=False)
    verdicts = not_judged_verdicts(decision.questions, "no model was asked")
    assert set(verdicts) == {q.step_id for q in decision.questions}
    assert {(v.verdict, v.score, v.reason) for v in verdicts.values()} == {("not_judged", None, "no model was asked")}
    assert all(not q.pieces for q in decision.questions)


def test_deciding_a_hub_with_thousands_of_neighbours_stays_linear() -> None:
    """Doubling the steps around one hub must not take four times as long."""

    def fan(width: int) -> Trace:
        hub = step(1, "agent", "hub", output="plan")
        leaves = [step(n, "retrieval", "r", parents=[(1, "data")], result=f"found {n}") for n in range(2, width)]
        join = Step(
            TRACE,
            f"{width:016x}",
            (),
            "agent",
            "join",
            10**9,
            None,
            parents=tuple(Edge(leaf.step_id, "data", 1.0) for leaf in leaves),
            output="done",
        )
        return Trace(TRACE, (hub, *leaves, join), task="fan out")

    took = []
    for width in (1_500, 3_000):
        trace = fan(width)
        best = min(_timed(trace) for _ in range(3))
        took.append(best)
    assert took[1] < took[0] * 3.2
    last = decide(fan(1_500), (), 0.7).questions[-1]
    assert sum(p.place.startswith("before-") for p in last.pieces) < 12
    assert any("further steps that this step builds on" in line for line in last.omitted)


def _timed(trace: Trace) -> float:
    start = time.process_time()
    decide(trace, (), 0.7)
    return time.process_time() - start


def test_questions_and_verdicts_pass_between_processes_unchanged() -> None:
    decision = decide(refund(), (finding(3, "id_never_seen"),), 0.7)
    assert pickle.loads(pickle.dumps(decision.questions)) == decision.questions
    assert pickle.loads(pickle.dumps(dict(decision.verdicts))) == dict(decision.verdicts)


def test_a_question_holds_its_step_and_neighbourhood_and_not_the_run() -> None:
    """Ten times the run, the same question."""

    def sized(extra: int) -> int:
        more = tuple(step(n, "tool", "noise", arguments={"n": n}, result="x" * 500) for n in range(100, 100 + extra))
        trace = refund()
        questions = decide(Trace(TRACE, (*trace.steps, *more), task=trace.task), (), 0.7).questions
        return len(pickle.dumps(next(q for q in questions if q.step_id == ID[5])))

    assert sized(200) == sized(20)
