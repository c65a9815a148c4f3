import itertools

from hypothesis import given
from hypothesis import strategies as st

from evalagent.model import WorldChange
from evalagent.outcomes.diffing import diff
from evalagent.outcomes.grading import grade
from evalagent.outcomes.pairing import pair
from evalagent.suites import Case

BEFORE = {
    "orders": {
        "1": {"id": 1, "state": "open", "sum": 25, "seen": 0},
        "2": {"id": 2, "state": "open", "sum": 9, "seen": 0},
    },
    "notes": {},
    "outbox/": {'"old.txt"': {"text": "old", "sha256": "aa", "bytes": 3}},
}


def case(*changes: dict) -> Case:
    return Case.model_validate({"id": "c", "input": "do it", "expected": {"changes": list(changes)}})


def world(**tables) -> dict:
    return {**BEFORE, **{name.replace("__", "/"): rows for name, rows in tables.items()}}


def graded(wanted: Case, after: dict, masks=(), snapshot=None):
    return grade(wanted, 1, diff(BEFORE, after), masks, snapshot)


def orders(**columns) -> dict:
    return world(orders={**BEFORE["orders"], "1": {**BEFORE["orders"]["1"], **columns}})


def test_the_change_that_was_wanted_passes() -> None:
    outcome = graded(case({"table": "orders", "key": 1, "set": {"state": "paid"}}), orders(state="paid"))
    assert (outcome.verdict, outcome.unexpected) == ("pass", ())
    assert outcome.expected[0].met
    assert outcome.expected[0].change == {"table": "orders", "key": 1, "set": {"state": "paid"}}


def test_a_number_wanted_is_met_by_an_equal_float_and_not_by_its_text() -> None:
    wanted = case({"table": "orders", "key": 1, "set": {"sum": 30}})
    assert graded(wanted, orders(sum=30.0)).verdict == "pass"
    missed = graded(wanted, orders(sum="30"))
    assert missed.verdict == "fail"
    assert missed.expected[0].reason == '`sum` became "30", wanted is 30'


def test_a_boolean_is_no_number() -> None:
    assert graded(case({"table": "orders", "key": 1, "set": {"seen": 1}}), orders(seen=True)).verdict == "fail"


def test_another_column_of_an_expected_row_is_unexpected() -> None:
    outcome = graded(case({"table": "orders", "key": 1, "set": {"state": "paid"}}), orders(state="paid", sum=0))
    assert outcome.verdict == "fail"
    assert outcome.unexpected == (WorldChange("orders", 1, "update", {"sum": 25}, {"sum": 0}),)


def test_a_masked_column_may_change_and_is_told() -> None:
    wanted = case({"table": "orders", "key": 1, "set": {"state": "paid"}})
    outcome = graded(wanted, orders(state="paid", seen=9), ["orders.seen"])
    assert outcome.verdict == "pass"
    assert outcome.masked == (WorldChange("orders", 1, "update", {"seen": 0}, {"seen": 9}),)


def test_a_mask_of_one_column_hides_no_other_and_no_new_row() -> None:
    both = orders(seen=9, sum=1)
    assert graded(case(), both, ["orders.seen"]).unexpected[0].after == {"sum": 1}
    inserted = world(orders={**BEFORE["orders"], "3": {"id": 3, "seen": 1}})
    assert graded(case(), inserted, ["orders.seen"]).verdict == "fail"


def test_a_masked_table_may_change_freely() -> None:
    outcome = graded(case(), world(notes={"1": {"text": "x"}}), ["notes"])
    assert (outcome.verdict, len(outcome.masked)) == ("pass", 1)


def test_a_glob_for_files_hides_no_column_of_a_database() -> None:
    assert graded(case(), orders(seen=1), ["*.seen", "*"]).verdict == "fail"


def test_globs_mask_files_by_name_by_path_and_at_any_depth() -> None:
    def outcome(path: str, mask: str):
        rows = {**BEFORE["outbox/"], f'"{path}"': {"text": "t", "sha256": "bb", "bytes": 1}}
        return graded(case(), world(outbox__=rows), [mask]).verdict

    assert outcome("a/b/run.log", "*.log") == "pass"
    assert outcome("a/run.log", "a/*") == "pass"
    assert outcome("a/b/run.log", "a/*") == "fail"
    assert outcome("a/b/run.log", "a/**") == "pass"
    assert outcome("a/b/run.log", "**/run.log") == "pass"
    assert outcome("run.log", "outbox/*.log") == "pass"
    assert outcome("run.txt", "*.log") == "fail"
    assert outcome("runxlog", "run.log") == "fail"


def test_the_content_of_a_file_is_one_thing() -> None:
    rows = {'"old.txt"': {"text": "Refund 25", "sha256": "cc", "bytes": 9}}
    wanted = case({"table": "outbox/", "key": "old.txt", "set": {"text": {"contains": "25"}}})
    assert graded(wanted, world(outbox__=rows)).verdict == "pass"


def test_a_row_inserted_with_the_named_values_passes_whatever_else_is_in_it() -> None:
    after = world(notes={"7": {"id": 7, "member": 3, "at": "2026-01-01"}})
    assert graded(case({"table": "notes", "insert": {"member": 3}}), after).verdict == "pass"


def test_the_same_row_inserted_twice_is_one_too_many() -> None:
    after = world(notes={"7": {"member": 3}, "8": {"member": 3}})
    outcome = graded(case({"table": "notes", "insert": {"member": 3}}), after)
    assert outcome.verdict == "fail"
    assert len(outcome.unexpected) == 1


def test_one_row_answers_for_one_expectation_only() -> None:
    twice = case({"table": "notes", "insert": {"member": 3}}, {"table": "notes", "insert": {"member": 3}})
    outcome = graded(twice, world(notes={"7": {"member": 3}}))
    assert [expected.met for expected in outcome.expected] == [True, False]
    assert outcome.expected[1].reason == "no other row was inserted"


def test_a_loose_expectation_does_not_take_the_row_of_a_strict_one() -> None:
    loose, strict = (
        {"table": "notes", "insert": {"member": 3}},
        {"table": "notes", "insert": {"member": 3, "kind": "fee"}},
    )
    after = world(notes={"7": {"member": 3, "kind": "fee"}, "8": {"member": 3, "kind": "hold"}})
    for wanted in itertools.permutations([loose, strict]):
        assert graded(case(*wanted), after).verdict == "pass"


def test_an_insert_that_missed_tells_the_nearest_row() -> None:
    outcome = graded(
        case({"table": "notes", "insert": {"member": 3, "sum": 5}}), world(notes={"7": {"member": 3, "sum": 6}})
    )
    assert outcome.expected[0].reason == "`sum` of the new row is 6, wanted is 5"
    assert len(outcome.unexpected) == 1


def test_a_deleted_row_is_wanted_or_unexpected() -> None:
    gone = world(orders={"2": BEFORE["orders"]["2"]})
    assert graded(case({"table": "orders", "key": 1, "delete": True}), gone).verdict == "pass"
    assert graded(case(), gone).unexpected[0].change == "delete"
    outcome = graded(case({"table": "orders", "key": 1, "delete": True}), orders(sum=0))
    assert outcome.expected[0].reason == "the row was not deleted but updated"


def test_setting_columns_of_a_row_that_is_gone_fails() -> None:
    outcome = graded(case({"table": "orders", "key": 1, "set": {"state": "paid"}}), world(orders={}))
    assert outcome.expected[0].reason == "the row was deleted"
    assert len(outcome.unexpected) == 2


def test_nothing_may_change_where_the_case_says_so() -> None:
    assert graded(case(), BEFORE).verdict == "pass"
    assert graded(case(), orders(sum=26)).verdict == "fail"


def test_a_case_that_says_nothing_of_changes_is_not_judged() -> None:
    silent = Case(id="c", input="do it")
    outcome = grade(silent, 2, diff(BEFORE, orders(sum=1)), ())
    assert (outcome.verdict, outcome.trial) == ("not_judged", 2)
    assert "does not say" in outcome.reason
    assert "1 changes were seen" in outcome.reason


def test_a_world_that_was_not_observed_is_not_judged() -> None:
    assert grade(case(), 1, None, ()).verdict == "not_judged"


def test_a_value_that_was_right_before_counts_only_with_the_snapshot_after() -> None:
    wanted = case({"table": "orders", "key": 1, "set": {"state": "paid", "sum": 25}})
    after = orders(state="paid")
    assert graded(wanted, after).expected[0].reason == "`sum` did not change, wanted is 25"
    assert graded(wanted, after, snapshot=after).verdict == "pass"
    wrong = case({"table": "orders", "key": 1, "set": {"sum": 26}})
    assert graded(wrong, after, snapshot=after).expected[0].reason == "`sum` stayed 25, wanted is 26"


def test_a_key_may_be_written_as_an_object_of_one_column() -> None:
    assert graded(case({"table": "orders", "key": {"id": 1}, "set": {"sum": 1}}), orders(sum=1)).verdict == "pass"


def test_a_key_of_the_wrong_type_is_hinted_at() -> None:
    outcome = graded(case({"table": "orders", "key": "1", "set": {"sum": 1}}), orders(sum=1))
    assert outcome.verdict == "fail"
    assert "a number is not a text" in outcome.expected[0].reason


def test_matchers_fit_what_they_say_and_nothing_else() -> None:
    def verdict(matcher: dict, value) -> str:
        return graded(case({"table": "orders", "key": 1, "set": {"state": matcher}}), orders(state=value)).verdict

    assert verdict({"any": True}, "x") == "pass"
    assert verdict({"regex": "^re"}, "refunded") == "pass"
    assert verdict({"regex": "^re"}, 5) == "fail"
    assert verdict({"contains": "fun"}, "refunded") == "pass"
    assert verdict({"contains": "x"}, "refunded") == "fail"
    assert verdict({"within": [1, 2]}, 2.0) == "pass"
    assert verdict({"within": [1, 2]}, 2.01) == "fail"
    assert verdict({"within": [0, 1]}, True) == "fail"
    assert verdict({"within": ["2026-01-01", "2026-01-31"]}, "2026-01-07") == "pass"
    assert verdict({"one_of": ["a", 3]}, 3.0) == "pass"
    assert verdict({"one_of": ["a", 3]}, "3") == "fail"


def test_any_allows_a_column_to_stay_or_to_change() -> None:
    wanted = case({"table": "orders", "key": 1, "set": {"state": "paid", "seen": {"any": True}}})
    assert graded(wanted, orders(state="paid")).verdict == "pass"
    assert graded(wanted, orders(state="paid", seen=5)).verdict == "pass"


def test_an_expectation_that_cannot_be_read_is_not_judged_and_names_the_way_out() -> None:
    for matcher in ({"regexp": "x"}, {"regex": "("}, {"within": [2, 1]}, {"within": [1]}, {"one_of": []}, {"any": 1}):
        outcome = graded(case({"table": "orders", "key": 1, "set": {"state": matcher}}), orders(state="x"))
        assert outcome.verdict == "not_judged", matcher
        assert "case c, expected change 1, column `state`" in outcome.reason


def test_a_right_column_stays_expected_where_another_of_the_row_is_wrong() -> None:
    outcome = graded(
        case({"table": "orders", "key": 1, "set": {"state": "paid", "sum": 1}}), orders(state="paid", sum=2)
    )
    assert not outcome.expected[0].met
    assert outcome.unexpected == (WorldChange("orders", 1, "update", {"sum": 25}, {"sum": 2}),)


@given(st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 5), max_size=4, unique=True), max_size=6))
def test_pairing_serves_as_many_as_trying_everything_does(choices) -> None:
    def best(askers: list[int], taken: frozenset[int]) -> int:
        if not askers:
            return 0
        rest = best(askers[1:], taken)
        return max([rest, *(1 + best(askers[1:], taken | {c}) for c in choices[askers[0]] if c not in taken)])

    chosen = pair(choices)
    assert len(chosen) == best(list(choices), frozenset())
    assert len(set(chosen.values())) == len(chosen)
    assert all(choice in choices[asker] for asker, choice in chosen.items())


changed = st.builds(
    lambda table, key, columns: WorldChange(table, key, "update", {c: 0 for c in columns}, {c: 1 for c in columns}),
    st.sampled_from(["orders", "notes"]),
    st.integers(1, 9),
    st.sets(st.sampled_from(["state", "sum", "seen"]), min_size=1),
)


@given(
    st.lists(changed, max_size=8, unique_by=lambda c: (c.table, c.key)),
    st.sets(st.sampled_from(["orders", "orders.sum", "notes.seen"])),
)
def test_no_changed_column_is_lost_between_expected_unexpected_and_masked(changes, masks) -> None:
    outcome = grade(case({"table": "orders", "key": 1, "set": {"sum": 1}}), 1, changes, sorted(masks))
    cells = [(c.table, c.key, column) for c in (*outcome.unexpected, *outcome.masked) for column in c.after or {}]
    expected = [("orders", 1, "sum")] if outcome.expected[0].met else []
    assert sorted([*cells, *expected]) == sorted((c.table, c.key, column) for c in changes for column in c.after or {})


def test_a_mask_that_is_no_glob_stands_for_itself() -> None:
    def outcome(path: str):
        rows = {**BEFORE["outbox/"], f'"{path}"': {"text": "new", "sha256": "bb", "bytes": 3}}
        return graded(case(), world(outbox__=rows), ["[a"]).verdict

    assert (outcome("[a"), outcome("sub/[a"), outcome("a"), outcome("[")) == ("pass", "pass", "fail", "fail")
