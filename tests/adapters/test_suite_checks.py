"""A mistake in a suite is the user's, found before an agent is started, and never the agent's failure."""

from pathlib import Path

import pytest

from evalagent.adapters.files import load_suite
from evalagent.adapters.suite_checks import check_suite
from evalagent.errors import UsageError

SUITE = """\
name: desk
agent: {source: ., command: [python, agent.py]}
world:
  - {kind: sqlite, path: world/app.db, seed: seed.sql}
  - {kind: files, path: outbox/}
cases: cases.jsonl
"""
CASE = '{"id": "a", "input": "x", "expected": {"changes": [{"table": "books", "key": 1, "delete": true}]}}'


def check(folder: Path, suite: str = SUITE, case: str = CASE) -> None:
    (folder / "seed.sql").write_text("CREATE TABLE books (id INTEGER PRIMARY KEY); INSERT INTO books VALUES (1);")
    (folder / "cases.jsonl").write_text(case)
    (folder / "suite.yaml").write_text(suite)
    check_suite(*load_suite(folder / "suite.yaml"), folder / "suite.yaml")


def test_a_right_suite_passes(tmp_path: Path) -> None:
    check(tmp_path)
    check(tmp_path, case=CASE.replace('"books"', '"outbox/"').replace("1,", '"mail.txt",'))


@pytest.mark.parametrize(
    ("suite", "case", "said"),
    [
        (SUITE, CASE.replace("books", "bookz"), "no table 'bookz' in the seeded world; there are books, outbox/"),
        (SUITE + "checks: {lop: off}\n", CASE, "lop"),
        (SUITE + "checks: {loop: {tims: 3}}\n", CASE, "tims"),
        (SUITE + 'secrets: ["ACME-["]\n', CASE, "no regular expression"),
        (SUITE.replace("command: [python, agent.py]", 'command: [python, agent.py], tools: ["nope"]'), CASE, "nope"),
        (SUITE.partition("world:")[0] + "cases: cases.jsonl\n", CASE, "no `world` to see them in"),
        (SUITE, CASE.replace('"changes"', '"path": {"mode": "sideways", "nodes": []}, "changes"'), "sideways"),
    ],
    ids=["table", "check", "option", "regex", "tools", "no world", "path"],
)
def test_a_mistake_is_named(tmp_path: Path, suite: str, case: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(tmp_path, suite, case)
    assert said in str(caught.value)


def test_a_seed_that_is_no_sql_is_named(tmp_path: Path) -> None:
    check(tmp_path)
    (tmp_path / "seed.sql").write_text("CREATE TABEL books")
    with pytest.raises(UsageError, match=r"seed\.sql"):
        check_suite(*load_suite(tmp_path / "suite.yaml"), tmp_path / "suite.yaml")


def test_a_seed_that_is_no_database_is_the_suites_fault(tmp_path: Path) -> None:
    (tmp_path / "app.db").write_text("this is no database, however long it may be" * 50)
    with pytest.raises(UsageError, match=r"suite\.yaml: `world`: the seeded world cannot be read: world/app\.db"):
        check(tmp_path, SUITE.replace("seed: seed.sql", "seed: app.db"))


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ("print('hello')\n", "prices.yaml:1: expected model names"),
        ("- a\n", "prices.yaml:1: expected model names"),
        ("a: {input: 1, output: 2}\nb: 7\n", "prices.yaml:2: `b`: expected `{input"),
        ("gpt-4o: {inptu: 1, output: 2}\n", "prices.yaml:1: `gpt-4o`: expected `{input"),
        ("a:\n  input: 1\n  output: 2\n  cache_raed: 1\n", "prices.yaml:4: `a.cache_raed`: unknown key; did you mean"),
        ("a: {input: 1, output: 2, cache_read: free}\n", "`a.cache_read`: expected dollars per million tokens"),
        ("a: {input: 1, output: -2}\n", "`a.output`: expected dollars"),
        ("a: {input: 1, output: .inf}\n", "prices.yaml:1: '.inf' is not finite"),
        ("a: {input: 1, output: 2}\na: {input: 1, output: 3}\n", "prices.yaml:2: `a`: stands here a second time"),
        ("a: " + "[" * 3000, "nested deeper"),
    ],
    ids=["program", "list", "number", "typo", "option", "text", "less", "endless", "twice", "deep"],
)
def test_a_table_of_prices_that_is_none_is_named_before_a_trial_runs(tmp_path: Path, prices: str, said: str) -> None:
    (tmp_path / "prices.yaml").write_text(prices)
    with pytest.raises(UsageError) as caught:
        check(tmp_path, SUITE + "prices: prices.yaml\n")
    assert said in str(caught.value)


def test_a_right_table_of_prices_passes(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("my-model: {input: 1, output: 5.0, cache_read: 0}\n")
    check(tmp_path, SUITE + "prices: prices.yaml\n")


def test_a_rubric_that_the_reader_of_yaml_would_break_on_is_named(tmp_path: Path) -> None:
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "tool.yaml").write_text("id: tool\nversion: 2001-13-45\n")
    with pytest.raises(UsageError, match=r"tool\.yaml:2: '2001-13-45' is a date"):
        check(tmp_path, SUITE + "rubrics: rubrics\n")
