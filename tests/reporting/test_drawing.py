from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from evalagent.model import Edge, Step, Trace
from evalagent.reporting.drawing import LIMIT, draw, svg
from tests.reporting.library_desk import HOSTILE


def trace(parents: list[list[int]], name: str = "tool") -> Trace:
    steps = [
        Step("t", f"s{n}", (f"s{n}",), "tool", name, n, n + 1, parents=tuple(Edge(f"s{p}", "data", 1.0) for p in mine))
        for n, mine in enumerate(parents)
    ]
    return Trace("t", tuple(steps))


def drawn(made: Trace, *paths: tuple[str, ...], failed: tuple[str, ...] = ()):
    return draw(
        made,
        lambda step_id: "fail" if step_id in failed else "pass",
        lambda step_id: ("root cause",) if any(step_id == path[0] for path in paths) else (),
        lambda step_id: f"step-{step_id}",
        paths,
    )


dags = st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=25).map(
    lambda rows: [sorted({p % n for p in mine}) if n else [] for n, mine in enumerate(rows)]
)


@given(dags)
def test_every_step_stands_in_a_place_of_its_own_below_all_its_parents(parents) -> None:
    drawing = drawn(trace(parents))
    assert len(drawing.nodes) == len(parents)
    assert len({(node.layer, node.slot) for node in drawing.nodes}) == len(parents)
    assert len(drawing.arrows) == sum(map(len, parents))
    assert all(drawing.nodes[arrow.tail].layer < drawing.nodes[arrow.head].layer for arrow in drawing.arrows)


@given(dags)
def test_any_drawing_is_well_formed_and_boxes_do_not_overlap(parents) -> None:
    root = ElementTree.fromstring(svg(drawn(trace(parents)), "d"))
    boxes = [{k: float(rect.get(k)) for k in ("x", "y", "width", "height")} for rect in root.iter(f"{NS}rect")]
    assert len(boxes) == len(parents)
    for n, a in enumerate(boxes):
        for b in boxes[n + 1 :]:
            beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]
        assert a["x"] >= 0 and a["x"] + a["width"] <= float(root.get("width"))
        assert a["y"] >= 0 and a["y"] + a["height"] <= float(root.get("height"))


NS = "{http://www.w3.org/2000/svg}"


def test_the_way_from_cause_to_symptom_stands_out_and_the_cause_is_marked() -> None:
    drawing = drawn(trace([[], [0], [0], [1, 2], [3]]), ("s1", "s3", "s4"), failed=("s1", "s3", "s4"))
    hot = [(drawing.nodes[a.tail].step_id, drawing.nodes[a.head].step_id) for a in drawing.arrows if a.on_path]
    assert sorted(hot) == [("s1", "s3"), ("s3", "s4")]
    text = svg(drawing, "d")
    assert text.count('class="edge data hot"') == 2
    assert '<text class="badge"' in text and "root cause" in text


def test_branches_stand_side_by_side_and_join_below() -> None:
    layers = {node.step_id: node.layer for node in drawn(trace([[], [0], [0], [1, 2]])).nodes}
    assert layers == {"s0": 0, "s1": 1, "s2": 1, "s3": 2}


def test_a_long_trace_is_cut_to_what_lies_around_the_way_and_says_so() -> None:
    made = trace([[n - 1] if n else [] for n in range(5_000)])
    drawing = drawn(made, ("s2500", "s2501", "s2502"))
    shown = {node.step_id for node in drawing.nodes}
    assert shown == {f"s{n}" for n in range(2498, 2505)}
    assert drawing.of_steps == 5_000
    assert drawing.cut == "the way from cause to symptom and what lies around it: 7 steps of 5,000, 4,993 not drawn"


def test_a_long_trace_without_a_known_cause_shows_its_failing_steps() -> None:
    made = trace([[n - 1] if n else [] for n in range(LIMIT + 50)])
    drawing = drawn(made, failed=("s100",))
    assert [node.number for node in drawing.nodes] == [99, 100, 101, 102, 103]
    assert drawing.cut.startswith("the failing steps")


def test_a_trace_of_the_limit_is_drawn_whole() -> None:
    drawing = drawn(trace([[]] * LIMIT))
    assert (len(drawing.nodes), drawing.cut) == (LIMIT, "")


def test_a_step_of_another_trace_is_no_node_and_no_crash() -> None:
    made = trace([[], [0]])
    far = replace(made.steps[1], parents=(Edge("s9", "link", 1.0, trace_id="u"),))
    assert drawn(replace(made, steps=(made.steps[0], far))).arrows == ()


def test_nothing_is_drawn_of_nothing() -> None:
    assert drawn(trace([])) is None


def test_hostile_names_stay_text_in_the_drawing() -> None:
    root = ElementTree.fromstring(svg(drawn(trace([[], [0]], HOSTILE)), "d"))
    assert {element.tag.removeprefix(NS) for element in root.iter()} <= {
        "svg", "defs", "marker", "path", "title", "a", "g", "rect", "text"
    }  # fmt: skip
