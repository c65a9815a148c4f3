"""What the terminal shows agrees with the record and cannot be steered by it."""

from dataclasses import replace

import pytest

from evalagent.reporting import text
from tests.reporting.library_desk import library_desk


def test_the_headline_is_the_exit_code() -> None:
    record = library_desk()
    assert "(exit 1)" in text.render(record).splitlines()[0]
    assert "could not be judged (exit 3)" in text.render(replace(record, exit_code=3)).splitlines()[0]


def test_every_case_stands_in_the_table_once() -> None:
    record = library_desk()
    lines = text.render(record).splitlines()
    start = next(n for n, line in enumerate(lines) if line.split()[:2] == ["case", "runs"])
    shown = [line.split()[0] for line in lines[start + 1 : start + 1 + len(record.cases)]]
    assert sorted(shown) == sorted({trial.case_id for trial in record.trials})


def test_how_to_switch_a_model_on_is_said_only_where_none_was_asked() -> None:
    record = library_desk()
    assert "--judge anthropic" in text.render(replace(record, judge=replace(record.judge, name="rules")))
    assert "--judge anthropic" not in text.render(replace(record, judge=replace(record.judge, name="anthropic")))


def test_control_characters_do_not_reach_the_terminal() -> None:
    record = replace(library_desk(), title="\x1b[31mred\x07 \u202egnp.exe")
    shown = text.render(record)
    assert not any(ord(c) < 32 and c != "\n" for c in shown)
    assert "\u202e" not in shown


def test_failed_runs_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "SHOWN", 3)
    record = library_desk()
    failed = sum(trial.verdict == "fail" for trial in record.trials)
    assert f"… and {failed - 3} more, in the report" in text.render(record)
