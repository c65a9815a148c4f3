"""The research flow example: agents side by side whose own spans make a graph with a fork and a join."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalagent.adapters import process_sandbox, worlds
from evalagent.adapters.receiver import Receiver
from evalagent.evaluating import examine, expectation
from evalagent.model import Finding, Outcome, Trace
from evalagent.outcomes.diffing import diff
from evalagent.outcomes.grading import grade
from evalagent.suites import parse_cases, parse_suite
from evalagent.traces.building import build
from evalagent.traces.reading import read

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "research_flow"
Collected = dict[tuple[str, int], tuple[Outcome, Trace, tuple[Finding, ...]]]


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collected]:
    folder = tmp_path_factory.mktemp("research")
    suite = parse_suite((EXAMPLE / "suite.yaml").read_text(), "suite.yaml")
    ended: Collected = {}
    for case in parse_cases((EXAMPLE / "cases.jsonl").read_text(), "cases.jsonl"):
        for trial in range(suite.trials):
            work = folder / f"{case.id}-{trial}"
            work.mkdir()
            worlds.prepare(suite.world, EXAMPLE, work)
            before = worlds.snapshot(suite.world, work)
            with Receiver(work / "otlp") as receiver:
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
            assert (run.exit, run.stderr_tail) == ("completed", "")
            after = worlds.snapshot(suite.world, work)
            outcome = grade(case, trial, diff(before, after), (), after)
            reading = read((work / "otlp" / "traces.jsonl").read_bytes(), "traces.jsonl")
            (trace,) = build(reading.spans, reading.logs).traces
            findings = examine(trace, expected=expectation(case), outcome=outcome, budgets=suite.budgets)
            ended[case.id, trial] = outcome, trace, findings
    process_sandbox.close()
    yield ended


def test_the_graph_forks_after_the_planner_and_joins_in_the_writer(collected: Collected) -> None:
    for _, trace, _ in collected.values():
        steps = {step.step_id: step for step in trace.steps}
        assert [step.kind for step in trace.steps].count("llm") == 7
        first = {
            agent: next(step for step in trace.steps if step.agent == agent)
            for agent in ("planner", "researcher_1", "researcher_2", "writer")
        }
        for researcher in ("researcher_1", "researcher_2"):
            assert {edge.step_id for edge in first[researcher].parents} == {first["planner"].step_id}
        joined = [steps[edge.step_id].agent for edge in first["writer"].parents]
        assert sorted(map(str, joined)) == ["researcher_1", "researcher_2"]


def test_the_planted_fault_breaks_the_report_and_starts_in_one_researcher(collected: Collected) -> None:
    verdicts = {key: outcome.verdict for key, (outcome, _, _) in collected.items()}
    assert set(verdicts.values()) == {"pass", "fail"}
    for outcome, trace, findings in collected.values():
        errors = {finding.code for finding in findings if finding.severity == "error"}
        assert bool(errors) == (outcome.verdict == "fail")
        if outcome.verdict == "fail":
            last = [step for step in trace.steps if step.agent == "researcher_2"][-1]
            note = next(step for step in trace.steps if step.agent == "researcher_2" and step.kind == "tool")
            figure = str(last.reply.text if last.reply else "").partition(" is ")[2].split()[0]
            assert figure.isdigit() and figure not in str(note.result)
