"""What is wrong with a suite is said with file, line and key."""

import pytest

from evalagent.errors import UsageError
from evalagent.suites import parse_cases, parse_suite

GOOD = """\
name: desk
agent:
  source: ./agent
  command: [python, -m, desk]
cases: cases.jsonl
"""


def told(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse_suite(text, "suite.yaml")
    return str(caught.value)


def test_a_minimal_suite_has_the_documented_defaults() -> None:
    suite = parse_suite(GOOD, "suite.yaml")
    assert (suite.trials, suite.judge.tau, suite.gate.max_drop, suite.budgets.wall_s) == (1, 0.7, 0.05, 300.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("command:", "comand:"), "suite.yaml:4: `agent.comand`: unknown key; did you mean `command`?"),
        (GOOD + "trials: many\n", "suite.yaml:6: `trials`: "),
        (GOOD + "budgets:\n  tokens: -3\n", "suite.yaml:7: `budgets.tokens`: "),
        (GOOD + "world:\n  - {kind: sqlite, path: a}\n  - {kind: tape, path: b}\n", "suite.yaml:8: `world.1.kind`: "),
        (GOOD + "world:\n  - {kind: files, path: ../up}\n", "must be a path inside the agent's working directory"),
        (GOOD.replace("  command: [python, -m, desk]\n", ""), "say how the agent starts"),
        (GOOD + "  bad indent: [\n", "not valid YAML"),
        ("- just\n- a list\n", "expected keys such as"),
        ("", "expected keys such as"),
    ],
    ids=["typo", "type", "range", "item", "escape", "no start", "yaml", "list", "empty"],
)
def test_an_error_names_the_place_and_the_way_out(text: str, said: str) -> None:
    assert said in told(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": "a", "input": "x"}\n{"id": "a", "input": "y"}', "cases.jsonl:2: `id`: 'a' stands in line 1 already"),
        ('{"id": "a", "input": "x"}\n\n{not json}', "cases.jsonl:3: not valid JSON"),
        ('{"id": "a"}', "cases.jsonl:1: `input`: is missing"),
        ('{"id": "a", "input": "x", "expect": {}}', "did you mean `expected`?"),
        ('{"id": "a", "input": "x", "expected": {"changes": [{"table": "t", "set": {"a": 1}}]}}', "`set` needs `key`"),
        ('{"id": "../x", "input": "x"}', "`id`"),
        ("", "holds no case"),
    ],
    ids=["twice", "json", "missing", "typo", "no key", "path in id", "empty"],
)
def test_a_bad_case_names_its_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_cases(text, "cases.jsonl")
    assert said in str(caught.value)


def test_no_change_and_nothing_said_of_changes_are_two_things() -> None:
    silent, none = parse_cases('{"id":"a","input":"x"}\n{"id":"b","input":"x","expected":{"changes":[]}}', "c")
    assert silent.expected.changes is None
    assert none.expected.changes == []
