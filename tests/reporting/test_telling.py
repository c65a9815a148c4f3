import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalagent.reporting.telling import folded, telling, whole
from evalagent.statistics.units import units
from tests.reporting.library_desk import library_desk

RUNS = units(library_desk(only=("waive-fee",)))
TELL = telling(RUNS)
RUN = RUNS[2]
IDS = [step.step_id for step in RUN.traces[0].steps]
OTHER = RUNS[0].traces[0].steps[0].step_id

FRAMES = """Traceback (most recent call last):


  File "/lib/chain/base.py", line 1099, in run
    response = context.run(self._run)
               ^^^^^^^^^^^^^^^^^^^^^^


  File "/desk/tools.py", line 92, in _read
    return rows[0]
           ~~~~^^^


"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"made by `refund` (step {IDS[4]})", "made by `refund` (step 5)"),
        (f"{IDS[0]} came before {IDS[5]}.", "step 1 came before step 6."),
        (f"Step {IDS[1]}: it failed", "Step 2: it failed"),
        (f'["{IDS[1]}","{IDS[2]}"]', '["step 2","step 3"]'),
        (f"a longer word {IDS[0]}ff stays", f"a longer word {IDS[0]}ff stays"),
        (f"a step of another run, {OTHER}, stays", f"a step of another run, {OTHER}, stays"),
    ],
)
def test_a_step_is_named_by_its_number(said, told) -> None:
    assert TELL.numbered(said, RUN) == told


def test_without_a_run_only_an_id_that_stands_for_one_step_is_translated() -> None:
    assert TELL.numbered(f"trace x: step {IDS[3]} failed") == "trace x: step 4 failed"
    twice = telling((*RUNS, RUNS[2]))
    assert IDS[3] in twice.numbered(f"step {IDS[3]} failed")


@given(st.lists(st.one_of(st.sampled_from(IDS), st.text(max_size=8)), max_size=8))
def test_no_id_of_the_run_is_left_and_nothing_else_changes(parts) -> None:
    told = TELL.numbered(" ".join(f"<{part}>" for part in parts), RUN)
    numbers = {step_id: f"step {n}" for n, step_id in enumerate(IDS, 1)}
    assert told == " ".join(f"<{numbers.get(part, part)}>" for part in parts)


def test_evidence_names_steps_by_number_and_not_twice() -> None:
    evidence = {"call": IDS[4], "steps": IDS[:2], "amount": 3}
    assert TELL.evidence(evidence, "`refund` (step 5) made it", RUN) == ("amount: 3", "steps: step 1, step 2")
    assert TELL.evidence({"call": IDS[4]}, "it was made", RUN) == ("call: step 5",)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{FRAMES}desk.NoSuchRow: row 7", "desk.NoSuchRow: row 7"),
        (f"`read` failed: {FRAMES}KeyError: 7", "`read` failed: KeyError: 7"),
        (f"`read` failed: KeyError(7){FRAMES}KeyError: 7", "`read` failed: KeyError(7)"),
        (f"`read` failed: KeyError(7){FRAMES[:150]}… (tried again)", "`read` failed: KeyError(7) (tried again)"),
        (
            f"`read` failed: {FRAMES[:150]}… (tried again)",
            "`read` failed: a traceback, cut before its exception (tried again)",
        ),
        ('Traceback (most recent call last): File "x.py", line 3, in f go() ValueError: no go', "ValueError: no go"),
        (
            f"{FRAMES}KeyError: 7\n\nDuring handling of the above, another:\n\n{FRAMES}ValueError: bad\nmore",
            "ValueError: bad\nmore",
        ),
        ("no traceback here: ValueError", "no traceback here: ValueError"),
    ],
)
def test_of_a_traceback_the_exception_is_shown(text, shown) -> None:
    assert folded(text).text == shown


def test_a_traceback_that_was_cut_gets_its_exception_from_the_error_of_its_step() -> None:
    said = folded(f"`read` failed: {FRAMES[:100]}…", f"{FRAMES}desk.NoSuchRow: row 7")
    assert said.text == "`read` failed: desk.NoSuchRow: row 7"
    assert said.rest == f"{FRAMES}desk.NoSuchRow: row 7"


@given(st.text(max_size=80))
def test_any_text_after_a_traceback_is_kept(text) -> None:
    said = folded(f"before {FRAMES}{text}")
    assert said.text.startswith("before")
    assert said.rest == f"{FRAMES}{text}"
    assert folded(text).text == text or re.search("Traceback", text)


def test_what_another_room_cut_is_put_back_in_full() -> None:
    full = "a" * 290 + "b" * 40
    assert whole(f"failed: {full[:300]}; next", (full, 300)) == f"failed: {full}; next"
    assert whole(f"failed: {full}", (full, 300)) == f"failed: {full}"
    assert whole("failed: short", ("short", 300), (None, 300)) == "failed: short"
