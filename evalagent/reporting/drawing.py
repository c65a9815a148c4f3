"""A run's steps as a layered drawing: dependencies point down, the way from cause to symptom stands out."""

from collections.abc import Callable, Collection, Mapping, Sequence
from html import escape
from itertools import pairwise

from evalagent.model import Ruling, Step, Trace
from evalagent.reporting.naming import label
from evalagent.reporting.report import Arrow, Drawing, Node
from evalagent.reporting.wording import RULINGS, counted, line

LIMIT = 150
"""Traces of more steps are cut to what lies around the way from cause to symptom."""
_AROUND = 2
_SWEEPS = 4

WIDTH, HEIGHT, BADGE, GAP_X, GAP_Y, MARGIN, LANE = 188, 46, 15, 22, 30, 14, 9
_LANES = 14
_SIGNS = {"pass": "✓", "fail": "✗", "not_judged": "?"}


def draw(
    trace: Trace,
    verdict_of: Callable[[str], Ruling],
    marks_of: Callable[[str], tuple[str, ...]],
    anchor_of: Callable[[str], str | None],
    paths: Sequence[Sequence[str]],
    first: int = 1,
) -> Drawing | None:
    """The drawing of a trace; None for one without steps. `paths` are the ways from causes to symptoms, `first` is the
    number of the trace's first step. Near-linear: each step and edge is looked at a few times."""
    steps = {step.step_id: step for step in trace.steps}
    numbers = {step.step_id: number for number, step in enumerate(trace.steps, first)}
    if not steps:
        return None
    shown, cut = _shown(trace, steps, paths, [s for s in steps if verdict_of(s) == "fail"])
    parents = {
        step_id: [(e.step_id, e.via) for e in steps[step_id].parents if e.trace_id is None and e.step_id in shown]
        for step_id in steps
        if step_id in shown
    }
    layers = _layers(parents, {step_id for step_id in parents if len(parents[step_id]) < len(steps[step_id].parents)})
    places = {step_id: (y, x) for y, layer in enumerate(layers) for x, step_id in enumerate(layer)}
    order = sorted(places, key=lambda step_id: places[step_id])
    index = {step_id: number for number, step_id in enumerate(order)}
    on_path = {(a, b) for path in paths for a, b in pairwise(path)}
    nodes = tuple(
        Node(
            step_id,
            anchor_of(step_id),
            numbers[step_id],
            label(steps[step_id]),
            steps[step_id].kind,
            verdict_of(step_id),
            marks_of(step_id),
            *places[step_id],
        )
        for step_id in order
    )
    arrows = tuple(
        Arrow(index[parent], index[step_id], via, (parent, step_id) in on_path)
        for step_id in order
        for parent, via in parents[step_id]
    )
    return Drawing(f"trace {line(trace.trace_id, 40)}", nodes, arrows, len(steps), cut)


def _shown(
    trace: Trace, steps: Mapping[str, Step], paths: Sequence[Sequence[str]], failed: Sequence[str]
) -> tuple[set[str], str]:
    """The steps to draw and, if those are not all, what they are."""
    if len(steps) <= LIMIT:
        return set(steps), ""
    neighbours: dict[str, list[str]] = {step_id: [] for step_id in steps}
    for step in trace.steps:
        for edge in step.parents:
            if edge.trace_id is None and edge.step_id in neighbours:
                neighbours[step.step_id].append(edge.step_id)
                neighbours[edge.step_id].append(step.step_id)
    way = [step_id for path in paths for step_id in path if step_id in steps] or list(failed)
    what = "the way from cause to symptom" if paths else "the failing steps"
    if not way:
        way, what = [step.step_id for step in trace.steps[: LIMIT // 2]], "the first steps"
    kept = dict.fromkeys(way if len(way) <= LIMIT else [*way[: LIMIT // 2], *way[-LIMIT // 2 :]])
    edge_of_it = list(kept)
    for _ in range(_AROUND):
        edge_of_it = [near for step_id in edge_of_it for near in neighbours[step_id] if near not in kept]
        for step_id in edge_of_it:
            if len(kept) < LIMIT:
                kept[step_id] = None
    left = len(steps) - len(kept)
    return set(
        kept
    ), f"{what} and what lies around it: {counted(len(kept), 'step')} of {len(steps):,}, {left:,} not drawn"


def _layers(parents: Mapping[str, Sequence[tuple[str, str]]], torn: Collection[str]) -> list[list[str]]:
    """Step ids by layer (one below the lowest parent), neighbours near each other; keys come parents first. `torn` are
    steps whose parents are not all drawn: one that has none left comes below all before it."""
    depth: dict[str, int] = {}
    lowest = -1
    for step_id, mine in parents.items():
        above = max((depth.get(parent, -1) for parent, _ in mine), default=lowest if step_id in torn else -1)
        depth[step_id] = above + 1
        lowest = max(lowest, above + 1)
    layers: list[list[str]] = [[] for _ in range(lowest + 1)]
    for step_id, level in depth.items():
        layers[level].append(step_id)
    if all(len(layer) == 1 for layer in layers):
        return layers
    children: dict[str, list[str]] = {step_id: [] for step_id in parents}
    for step_id, mine in parents.items():
        for parent, _ in mine:
            children[parent].append(step_id)
    ups = {step_id: [parent for parent, _ in mine] for step_id, mine in parents.items()}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        _sweep(layers if down else layers[::-1], ups if down else children)
    return layers


def _sweep(layers: Sequence[list[str]], neighbours: Mapping[str, Sequence[str]]) -> None:
    """Order each layer by the mean place of the neighbours in the layers before it (Sugiyama's barycentre)."""
    place: dict[str, float] = {}
    for layer in layers:
        wish = {}
        for now, step_id in enumerate(layer):
            near = [place[n] for n in neighbours[step_id] if n in place]
            wish[step_id] = sum(near) / len(near) if near else now - (len(layer) - 1) / 2
        layer.sort(key=lambda step_id: wish[step_id])
        place.update({step_id: now - (len(layer) - 1) / 2 for now, step_id in enumerate(layer)})


# --- SVG -----------------------------------------------------------------------------------------


def svg(drawing: Drawing, name: str) -> str:
    """The drawing as inline SVG. Everything foreign is escaped; colours come from the page's classes. `name` makes the
    ids of this drawing its own."""
    boxes, across, down = _boxes(drawing.nodes)
    lanes, used = _lanes(drawing)
    wide = across + used * LANE + (10 if used else 0)
    failed = sum(node.verdict == "fail" for node in drawing.nodes)
    said = (
        f"Dependencies between {counted(len(drawing.nodes), 'step')}, {failed} of them failed; each box is listed below"
    )
    out = [
        f'<svg class="dag" role="img" viewBox="0 0 {wide:.0f} {down:.0f}" width="{wide:.0f}" height="{down:.0f}"'
        f' xmlns="http://www.w3.org/2000/svg" aria-label="{escape(said)}"><defs>'
    ]
    out += [
        f'<marker id="{name}-{kind}" class="tip {kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="{size}"'
        f' markerHeight="{size}" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z"/></marker>'
        for kind, size in (("plain", 9), ("hot", 13))
    ]
    out.append("</defs>")
    for number, arrow in sorted(enumerate(drawing.arrows), key=lambda item: item[1].on_path):
        tip = "hot" if arrow.on_path else "plain"
        way = _curve(boxes[arrow.tail], boxes[arrow.head], lanes.get(number), across - MARGIN)
        out.append(
            f'<path class="edge {arrow.via}{" hot" if arrow.on_path else ""}" marker-end="url(#{name}-{tip})"'
            f' d="{way}"><title>{arrow.via}</title></path>'
        )
    out += [_box(node, box) for node, box in zip(drawing.nodes, boxes, strict=True)]
    out.append("</svg>")
    return "".join(out)


Box = tuple[float, float, float]
"""Left, top and height of a node; all are `WIDTH` wide."""


def _boxes(nodes: Sequence[Node]) -> tuple[list[Box], float, float]:
    """The box of each node, each layer in the middle and as high as its highest; the width and height of all."""
    layers: dict[int, list[Node]] = {}
    for node in nodes:
        layers.setdefault(node.layer, []).append(node)
    across = max((len(layer) for layer in layers.values()), default=1) * (WIDTH + GAP_X) - GAP_X
    tops: dict[int, float] = {}
    top: float = MARGIN
    for level in sorted(layers):
        tops[level] = top
        top += max(_height(node) for node in layers[level]) + GAP_Y
    boxes = []
    for node in nodes:
        free = across - (len(layers[node.layer]) * (WIDTH + GAP_X) - GAP_X)
        boxes.append((MARGIN + free / 2 + node.slot * (WIDTH + GAP_X), tops[node.layer], _height(node)))
    return boxes, across + 2 * MARGIN, top - GAP_Y + MARGIN


def _badge(node: Node) -> str:
    return " · ".join(mark.replace("failing", "fail") for mark in node.marks if mark != "on the way")


def _height(node: Node) -> float:
    return HEIGHT + (BADGE if _badge(node) else 0)


def _lanes(drawing: Drawing) -> tuple[dict[int, int], int]:
    """A lane beside the boxes for each arrow over two layers or more: arrow -> lane, and how many lanes there are.

    Shortest first, each in the nearest lane that is free along it; beyond the last lane they share it.
    """
    spans = [(drawing.nodes[arrow.tail].layer, drawing.nodes[arrow.head].layer) for arrow in drawing.arrows]
    taken: list[set[int]] = []
    lanes = {}
    for length, number in sorted((end - start, number) for number, (start, end) in enumerate(spans)):
        if length < 2:
            continue
        rows = range(*spans[number])
        lane = next((place for place, busy in enumerate(taken) if busy.isdisjoint(rows)), len(taken))
        lane = min(lane, _LANES - 1)
        if lane == len(taken):
            taken.append(set())
        taken[lane].update(rows)
        lanes[number] = lane
    return lanes, len(taken)


def _curve(tail: Box, head: Box, lane: int | None, right: float) -> str:
    if lane is None:
        x1, y1, x2, y2 = tail[0] + WIDTH / 2, tail[1] + tail[2], head[0] + WIDTH / 2, head[1] - 1
        bend = max(18.0, (y2 - y1) * 0.6)
        return f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"
    x1, y1 = tail[0] + WIDTH, tail[1] + tail[2] * 0.7
    x2, y2 = head[0] + WIDTH + 1, head[1] + head[2] * 0.35
    side = right + 12 + lane * LANE
    return (
        f"M{x1:.1f} {y1:.1f}C{side:.1f} {y1:.1f} {side:.1f} {y1:.1f} {side:.1f} {y1 + 20:.1f}"
        f"L{side:.1f} {y2 - 20:.1f}C{side:.1f} {y2:.1f} {side:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    )


def _box(node: Node, box: Box) -> str:
    x, y, high = box
    classes = " ".join(["box", node.verdict, *(mark.replace(" ", "-") for mark in node.marks)])
    text = node.label if len(node.label) <= 19 else f"{node.label[:18]}…"
    below = f"{_SIGNS[node.verdict]} {RULINGS[node.verdict]} · {node.kind}"
    marks = f", {', '.join(node.marks)}" if node.marks else ""
    inner = (
        f"<title>step {node.number}: {escape(node.label)} ({escape(node.kind)}), {RULINGS[node.verdict]}{marks}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{WIDTH}" height="{high}" rx="7"/>'
        f'<text class="name" x="{x + 10:.1f}" y="{y + 19:.1f}">{node.number} {escape(text)}</text>'
        f'<text class="sub" x="{x + 10:.1f}" y="{y + 36:.1f}">{escape(below)}</text>'
    )
    if _badge(node):
        inner += f'<text class="badge" x="{x + 10:.1f}" y="{y + 52:.1f}">{escape(_badge(node))}</text>'
    group = f'<g class="{escape(classes)}">{inner}</g>'
    return f'<a href="#{escape(node.anchor)}">{group}</a>' if node.anchor else group
