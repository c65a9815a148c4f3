"""The support desk example: forty real trials, held against the truth that was planted in them."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalagent.adapters import process_sandbox, worlds
from evalagent.adapters.receiver import Receiver
from evalagent.evaluating import examine, expectation
from evalagent.model import Finding, Json, Outcome, Step, Trace, TrialRun
from evalagent.outcomes.diffing import diff
from evalagent.outcomes.grading import grade
from evalagent.suites import Suite, parse_cases, parse_suite
from evalagent.traces.building import build
from evalagent.traces.reading import read
from tests.adapters.scripted_model import call, message, serving, text

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "support_desk"
TRUTH = [json.loads(line) for line in (EXAMPLE / "truth.jsonl").read_text().splitlines()]


@dataclass(frozen=True)
class Observed:
    truth: dict[str, Json]
    run: TrialRun
    outcome: Outcome
    trace: Trace
    findings: tuple[Finding, ...]

    @property
    def steps(self) -> list[Step]:
        return sorted(
            (step for step in self.trace.steps if step.kind in ("llm", "tool")), key=lambda step: step.start_ns
        )

    @property
    def codes(self) -> set[str]:
        return {finding.code for finding in self.findings if finding.severity == "error"}


@pytest.fixture(scope="module")
def suite() -> Suite:
    return parse_suite((EXAMPLE / "suite.yaml").read_text(), "suite.yaml")


@pytest.fixture(scope="module")
def observed(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Observed]]:
    folder = tmp_path_factory.mktemp("desk")
    cases = {case.id: case for case in parse_cases((EXAMPLE / "cases.jsonl").read_text(), "cases.jsonl")}
    masks = [mask for part in suite.world for mask in part.mask]

    def collect(truth: dict[str, Json]) -> tuple[dict[str, Json], TrialRun, Outcome]:
        case, trial = cases[truth["case_id"]], truth["trial"]
        work = folder / f"{case.id}-{trial}"
        work.mkdir()
        worlds.prepare(suite.world, EXAMPLE, work)
        before = worlds.snapshot(suite.world, work)
        run = process_sandbox.run_trial(
            suite.agent,
            case,
            trial,
            suite_dir=EXAMPLE,
            work_dir=work,
            endpoint=receiver.endpoint,
            resource={},
            budgets=suite.budgets,
            env={"PATH": os.environ["PATH"]},
            attempt=f"{case.id}/{trial}",
        )
        after = worlds.snapshot(suite.world, work)
        return truth, run, grade(case, trial, diff(before, after), masks, after)

    with Receiver(folder / "otlp") as receiver, ThreadPoolExecutor(3) as pool:
        process_sandbox.warm(suite.agent, EXAMPLE, {"PATH": os.environ["PATH"]})
        collected = list(pool.map(collect, TRUTH))
    process_sandbox.close()
    reading = read((folder / "otlp" / "traces.jsonl").read_bytes(), "traces.jsonl")
    traces = {str(trace.resource["evalagent.attempt"]): trace for trace in build(reading.spans, reading.logs).traces}
    yield [
        Observed(
            truth,
            run,
            outcome,
            traces[run.attempt],
            examine(
                traces[run.attempt],
                expected=expectation(cases[run.case_id]),
                checks=suite.checks,
                outcome=outcome,
                budgets=suite.budgets,
                wall_s=run.wall_s,
            ),
        )
        for truth, run, outcome in collected
    ]


def test_the_truth_on_file_is_what_its_script_draws() -> None:
    drawn = subprocess.run([sys.executable, EXAMPLE / "truth.py", "7", "4"], capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in drawn.stdout.splitlines()] == TRUTH


def test_the_desk_is_neither_hopeless_nor_perfect() -> None:
    failing = Counter(line["case_id"] for line in TRUTH if line["must_fail"])
    assert 0.25 <= failing.total() / len(TRUTH) <= 0.35
    cases = {line["case_id"] for line in TRUTH}
    assert len(cases - failing.keys()) >= 2  # always pass
    assert sum(0 < count < 4 for count in failing.values()) >= 3  # intermittent
    assert {line["fault"] for line in TRUTH if line["fault"]} == {
        "wrong_order",
        "second_refund",
        "amount_text",
        "false_success",
        "loop",
        "gives_up",
        "busy",
    }


def test_every_trial_ends_and_answers(observed: list[Observed]) -> None:
    assert len(observed) == 40
    assert {each.run.exit for each in observed} == {"completed"}
    assert all(each.run.reply == each.trace.answer for each in observed)
    assert all(each.run.stderr_tail == "" for each in observed)


def test_what_must_fail_is_visible_in_world_budget_or_answer_and_nothing_else_is(observed: list[Observed]) -> None:
    for each in observed:
        wrong = each.outcome.verdict == "fail" or bool(each.codes)
        assert wrong == each.truth["must_fail"], (each.truth, each.outcome.reason, each.codes)


def test_a_loop_breaks_the_budget_and_a_right_end_does_not_excuse_it(observed: list[Observed]) -> None:
    loops = [each for each in observed if each.truth["fault"] == "loop"]
    assert loops
    for each in loops:
        assert each.outcome.verdict == "pass" and "over_budget" in each.codes


def test_the_steps_are_those_of_the_planted_truth(observed: list[Observed]) -> None:
    for each in observed:
        assert len(each.steps) == each.truth["steps"]
        for planted in filter(None, (each.truth["root"], each.truth["recovered"], *each.truth["also"])):
            step = each.steps[planted["step"] - 1]
            asked = step.reply.requests[0].name if step.reply and step.reply.requests else None
            assert (step.kind, step.name if step.kind == "tool" else asked) == (planted["kind"], planted["name"])


def test_the_spans_are_complete(observed: list[Observed]) -> None:
    for each in observed:
        assert each.trace.quality == 1.0, each.trace.health
        assert each.trace.task and each.trace.answer
        requests = {}
        for step in each.steps:
            if step.kind == "llm":
                assert step.messages[0].role == "system" and step.reply is not None and step.model == "scripted-desk-1"
                assert step.tokens and (step.tokens.input or 0) > 0 and (step.tokens.output or 0) > 0
                assert {tool.name for tool in step.tools} >= {"look_up_order", "refund", "send_mail"}
                requests.update({request.id: request for request in step.reply.requests})
            else:
                asked = requests[step.call_id]
                assert step.name == asked.name and step.arguments == asked.arguments
                assert step.result is not None or step.error
        assert len(requests) == sum(step.kind == "tool" for step in each.steps)


def test_the_busy_database_is_an_error_that_was_made_good(observed: list[Observed]) -> None:
    for each in observed:
        if each.truth["fault"] == "busy":
            failed = each.steps[each.truth["recovered"]["step"] - 1]
            assert "locked" in (failed.error or "")
            assert each.outcome.verdict == "pass"


def test_one_case_is_held_out_and_refusals_change_nothing(suite: Suite) -> None:
    cases = parse_cases((EXAMPLE / "cases.jsonl").read_text(), "cases.jsonl")
    assert sum(case.held_out for case in cases) == 1
    assert {case.severity for case in cases} == {"harmless", "normal", "costly"}
    assert all(case.expected.changes == [] for case in cases if case.scenario == "refusal")


def test_with_a_key_the_desk_asks_claude(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = parse_cases((EXAMPLE / "cases.jsonl").read_text(), "cases.jsonl")
    case = next(case for case in cases if case.id == "order-status")
    (tmp_path / "work").mkdir()
    worlds.prepare(suite.world, EXAMPLE, tmp_path / "work")
    monkeypatch.setenv("EVALAGENT_WARM", "0")
    asks = message(call({"order_id": "O-1002"}, "look_up_order"), stop_reason="tool_use")
    with serving(asks, text("Order O-1002 is shipped.")) as script, Receiver(tmp_path / "otlp") as receiver:
        run = process_sandbox.run_trial(
            suite.agent,
            case,
            0,
            suite_dir=EXAMPLE,
            work_dir=tmp_path / "work",
            endpoint=receiver.endpoint,
            resource={},
            budgets=suite.budgets,
            env={"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "sk-secret-1", "ANTHROPIC_BASE_URL": script.url},
            attempt="with-a-key",
        )
    assert (run.exit, run.reply) == ("completed", "Order O-1002 is shipped."), run.stderr_tail
    assert [request["model"] for request in script.requests] == ["claude-haiku-5-5"] * 2
    assert "desk lamp" in json.dumps(script.requests[1]["messages"][-1])
    lines = (tmp_path / "otlp" / "traces.jsonl").read_bytes()
    (trace,) = build(read(lines, "traces.jsonl").spans, ()).traces
    steps = sorted(trace.steps, key=lambda step: step.start_ns)
    assert [step.kind for step in steps] == ["llm", "tool", "llm"]
    assert steps[1].call_id == "toolu_scripted"
    assert b"sk-secret-1" not in lines
