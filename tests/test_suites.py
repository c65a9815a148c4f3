"""What is wrong with a suite is said with file, line and key."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalagent.errors import UsageError
from evalagent.suites import parse_cases, parse_suite
from evalagent.suites.documents import read_yaml

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


def test_what_yaml_cannot_make_a_value_of_is_named_with_its_line() -> None:
    for scalar in (
        "2001-13-45",
        "2001-01-02",
        "!!timestamp foo",
        '!!int "abc"',
        '!!int ""',
        "!!bool foo",
        "!!float x",
        "!!null x",
        "!!binary '###'",
        "!!set {a, b}",
        "!!python/object/apply:os.system [id]",
        "9" * 5000,
        "0x" + "f" * 5000,
        "9" * 25,
        ".inf",
        "-.inf",
        ".nan",
        "1e999",
        r'"a\0b"',
        r'"\ud800"',
        r'"\UFFFFFFFF"',
        r'"\x4"',
        "*nobody",
    ):
        assert "suite.yaml:6: " in told(GOOD + f"checks: {{loop: {scalar}}}\n"), scalar
    assert "suite.yaml:6: " in told(GOOD + "\0")
    assert "suite.yaml:6: " in told(GOOD + "---\n" + GOOD)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "checks: &a {x: *a}\n", "suite.yaml:6: not valid here: `*a` stands inside of what it repeats"),
        (GOOD.replace("cases.jsonl", "&a [*a]"), "suite.yaml:5: not valid here: `*a` stands inside"),
        (GOOD + "checks: {a: " + "[" * 260 + "]" * 260 + "}\n", "suite.yaml:6: lists and objects are nested deeper"),
        (GOOD + "checks: {a: " + "[" * 3000 + "]" * 3000 + "}\n", "nested deeper than 64"),
        ("[" * 100_000, "nested deeper than 64"),
        ("\n".join(f"{' ' * n}k:" for n in range(500)), "nested deeper than 64"),
        (GOOD + "trials: 1\ntrials: 7\n", "suite.yaml:7: `trials`: stands here a second time"),
        (GOOD + "checks:\n  loop: off\n  loop: on\n", "suite.yaml:8: `loop`: stands here a second time"),
        (GOOD + "on: x\n", "suite.yaml:6: a key must be text; if it is, put it in quotes (got 'on')"),
        (GOOD + "[a]: x\n", "suite.yaml:6: a key must be text"),
        (GOOD + "<<: 5\n", "suite.yaml:6: `<<`: expected an object"),
    ],
    ids=[
        *("in itself", "list in itself", "260", "3000", "open", "block", "twice", "twice inside", "truth", "list"),
        "merge",
    ],
)
def test_nesting_aliases_and_keys_beyond_reason_are_refused(text: str, said: str) -> None:
    assert said in told(text)


def test_aliases_that_stand_for_billions_are_refused_at_once() -> None:
    bomb = "checks:\n  a: &a [x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"  {name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    began = time.monotonic()
    assert "suite.yaml:12: more than 100000 values" in told(GOOD + bomb)
    chain = "a: &a0 [x]\n" + "".join(f"k{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 100))
    assert "nested deeper" in told(chain)
    assert time.monotonic() - began < 1


def test_aliases_and_merges_within_reason_are_taken() -> None:
    text = GOOD + "judge: &j {tau: 0.6, floor: 0.1}\ngate: {max_drop: 0.2}\n"
    assert parse_suite(text, "s").judge.tau == 0.6
    document = read_yaml("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: [*a, *a]\nd: {<<: [{x: 5}, *a]}\n", "s")
    assert document.value == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        "c": [{"x": 1, "y": 2}] * 2,
        "d": {"x": 5, "y": 2},
    }
    assert document.line_of(("c", 1)) == 1


@given(st.text(alphabet=st.sampled_from("ab1 :-[]{}&*!<>|%?#,'\"\\\n\t\0~=."), max_size=60))
def test_no_text_makes_the_reader_of_yaml_fail_in_a_way_of_its_own(text: str) -> None:
    try:
        read_yaml(text, "s")
    except UsageError as error:
        assert error.line > 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("trials: true", "`trials`: "),
        ('trials: "3"', "`trials`: "),
        ("budgets: {steps: true}", "`budgets.steps`: "),
        ("budgets: {wall_s: 1e300}", "`budgets.wall_s`: "),
        ("budgets: {wall_s: 604801}", "`budgets.wall_s`: "),
        ("judge: {tau: true}", "`judge.tau`: "),
        ("seed: -1", "`seed`: "),
        ("prices: " + "x" * 300, "`prices`: is too long"),
        ("world: [{kind: files, path: " + "x" * 201 + "}]", "`world.0.path`: is longer than 200"),
        ("world: [{kind: files, path: a, seed: " + "x" * 256 + "}]", "`world.0.seed`: is too long"),
        ("world: [{kind: sqlite, path: .}]", "`world.0`: the path of a database must name a file"),
        (
            "world: [{kind: files, path: w}, {kind: sqlite, path: ./w/}]",
            "`world`: two parts of the world are at './w/'",
        ),
        ("world: [{kind: sqlite, path: w/a.db}, {kind: files, path: w}]", "`world`: 'w' holds 'w/a.db', and so has to"),
    ],
)
def test_numbers_and_paths_are_held_to_what_can_be_meant(more: str, said: str) -> None:
    assert f"suite.yaml:6: {said}" in told(GOOD + more + "\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("[python, -m, desk]", '[""]'), "suite.yaml:4: `agent.command`: names no program"),
        (GOOD.replace("[python, -m, desk]", r'["a\0b"]'), "suite.yaml:4: "),
        (GOOD.replace("cases:", '  env: [HOME, ""]\ncases:'), "suite.yaml:5: `agent.env`: '' is no name"),
        (GOOD.replace("cases:", '  env: ["A=B"]\ncases:'), "`agent.env`: 'A=B' is no name of an environment variable"),
        (GOOD.replace("./agent", r'"a\0"'), "suite.yaml:3: "),
        (GOOD.replace("./agent", "x" * 300), "suite.yaml:3: `agent.source`: is too long"),
        (GOOD.replace("cases.jsonl", "x" * 300), "suite.yaml:5: `cases`: is too long"),
        (
            GOOD.replace("cases.jsonl", "/etc/cases.jsonl"),
            "suite.yaml:5: `cases`: must be a path from the suite",
        ),
    ],
)
def test_what_could_never_be_started_or_opened_is_refused(text: str, said: str) -> None:
    assert said in told(text)


def test_a_number_may_be_written_with_a_power_of_ten() -> None:
    assert parse_suite(GOOD + "budgets: {cost_usd: 1e-3, wall_s: 2}\n", "s").budgets.cost_usd == 0.001


def test_a_world_may_lie_inside_one_that_is_seeded_before_it() -> None:
    inside = "world: [{kind: files, path: w}, {kind: sqlite, path: w/a.db}, {kind: files, path: w2}]\n"
    assert len(parse_suite(GOOD + inside, "s").world) == 3


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085"])
def test_a_line_of_cases_ends_with_a_line_feed_and_nothing_else(mark: str) -> None:
    text = f'\ufeff{{"id": "a", "input": "one{mark}two"}}\r\n\n{{"id": "b", "input": "x"}}\n'
    first, second = parse_cases(text, "c")
    assert (first.input, second.id) == (f"one{mark}two", "b")
    with pytest.raises(UsageError, match="c:3: "):
        parse_cases(text.replace('"b"', '"a"'), "c")


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ('{"id": "a", "input": "x", "input": "y"}', "c:1: `input`: stands twice"),
        ('{"id": "a", "input": "x", "expected": {"path": {"n": 1, "n": 1}}}', "c:1: `n`: stands twice"),
        (
            '{"id": "a", "input": "x", "expected": {"reply_values": [99999999999999999999]}}',
            "c:1: 9999999",
        ),
        ('{"id": "a", "input": "x", "expected": {"path": ' + "[" * 500 + "]" * 500 + "}}", "c:1: lists and objects"),
        ('{"id": "a", "input": "x", "held_out": 1}', "`held_out`"),
        (
            '{"id": "a", "input": "x", "expected": {"no_tools": true, "tools": [{"name": "t"}]}}',
            "c:1: `expected`: `no_tools` and the wanted tool 't' exclude each other",
        ),
        (
            '{"id": "a", "input": "x", "expected": {"forbidden_tools": ["u", "t"], "tools": [{"name": "t"}]}}',
            "c:1: `expected`: the tool 't' is wanted and forbidden",
        ),
    ],
    ids=["twice", "twice inside", "rounded", "deep", "truth", "no tools", "forbidden"],
)
def test_a_case_that_says_two_things_or_would_be_rounded_is_refused(case: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_cases(case, "c")
    assert said in str(caught.value)
