from hypothesis import given
from hypothesis import strategies as st

from evalagent.model import WorldChange
from evalagent.outcomes.diffing import diff
from evalagent.outcomes.snapshots import key_text, read_key, same

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=True), st.text(max_size=6)
)
keys = st.one_of(
    st.integers(-5, 5), st.text(max_size=3), st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.text(max_size=1)})
)
rows = st.dictionaries(st.sampled_from("pqr"), scalars, max_size=3)
tables = st.lists(st.tuples(keys, rows), max_size=5).map(lambda items: {key_text(k): r for k, r in items})
worlds = st.dictionaries(st.sampled_from(["s", "t"]), tables, max_size=2)


def test_numbers_are_equal_across_their_types_but_never_to_texts_or_booleans() -> None:
    assert same(25, 25.0)
    assert not same(25, "25")
    assert not same(True, 1)
    assert not same(0, False)
    assert not same(None, 0)
    assert not same(None, "")
    assert same(None, None)
    assert same({"a": [1, {"b": 2.0}]}, {"a": [1.0, {"b": 2}]})
    assert not same([1], [1, 2])
    assert not same({"a": 1}, {"b": 1})
    assert not same(2**53 + 1, float(2**53))


def test_a_value_that_is_not_a_number_is_the_same_as_itself() -> None:
    nan = float("nan")
    assert diff({"t": {"1": {"c": nan}}}, {"t": {"1": {"c": nan}}}) == ()


def test_equality_of_deeply_nested_values_needs_no_recursion() -> None:
    left: object = 1
    right: object = 1.0
    for _ in range(5_000):
        left, right = [left], [right]
    assert same(left, right)


def test_every_kind_of_change_is_told_with_the_columns_that_changed() -> None:
    before = {"orders": {"1": {"state": "open", "sum": 25}, "2": {"state": "open"}}}
    after = {"orders": {"1": {"state": "paid", "sum": 25.0}, "10": {"state": "new"}}}
    assert diff(before, after) == (
        WorldChange("orders", 1, "update", {"state": "open"}, {"state": "paid"}),
        WorldChange("orders", 2, "delete", {"state": "open"}, None),
        WorldChange("orders", 10, "insert", None, {"state": "new"}),
    )


def test_null_differs_from_an_absent_column_and_from_an_empty_text() -> None:
    assert diff({"t": {"1": {}}}, {"t": {"1": {"c": None}}}) == (WorldChange("t", 1, "update", {}, {"c": None}),)
    assert diff({"t": {"1": {"c": None}}}, {"t": {"1": {"c": ""}}})[0].after == {"c": ""}


def test_a_key_written_as_a_float_is_the_same_row() -> None:
    assert diff({"t": {"1": {"c": 1}}}, {"t": {"1.0": {"c": 1}}}) == ()


def test_keys_that_would_fall_together_are_kept_apart() -> None:
    before = {"t": {"1": {"c": "a"}, "1.0": {"c": "b"}}}
    assert [change.before for change in diff(before, {"t": {}})] == [{"c": "a"}, {"c": "b"}]


def test_the_order_of_names_in_a_composite_key_does_not_matter() -> None:
    assert diff({"t": {'{"b": 1, "a": 2}': {}}}, {"t": {'{"a":2,"b":1}': {}}}) == ()


def test_a_key_that_is_no_json_stands_for_itself() -> None:
    assert read_key("not json") == "not json"
    assert diff({}, {"t": {"not json": {"c": 1}}})[0].key == "not json"


def test_a_table_that_was_dropped_shows_as_deleted_rows() -> None:
    assert [change.change for change in diff({"t": {"1": {}, "2": {}}}, {})] == ["delete", "delete"]


@given(worlds)
def test_a_world_does_not_differ_from_itself(world) -> None:
    assert diff(world, world) == ()


@given(worlds, worlds)
def test_going_back_undoes_every_change(one, other) -> None:
    there, back = diff(one, other), diff(other, one)
    opposite = {"insert": "delete", "delete": "insert", "update": "update"}
    assert [(c.table, key_text(c.key), opposite[c.change]) for c in there] == [
        (c.table, key_text(c.key), c.change) for c in back
    ]


@given(worlds, worlds)
def test_changes_put_into_the_old_world_give_the_new_one(one, other) -> None:
    rebuilt = {table: {key_text(read_key(k)): dict(r) for k, r in rows_.items()} for table, rows_ in one.items()}
    for change in diff(one, other):
        table, key = rebuilt.setdefault(change.table, {}), key_text(change.key)
        if change.change == "delete":
            del table[key]
        else:
            row = table.setdefault(key, {})
            for column in (change.before or {}).keys() - (change.after or {}).keys():
                del row[column]
            row.update(change.after or {})
    assert diff(rebuilt, other) == ()
