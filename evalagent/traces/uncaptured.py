"""Who called whom where contents were not captured: by order of start in one container.

Rules (confidence): nearest_llm (0.6), turn (0.6), retry (0.6).
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise

from evalagent.traces.drafts import Drafts
from evalagent.traces.groups import TOOLS


def join_uncaptured(drafts: Drafts, waiting: dict[int, list[tuple[int, str, float]]], slack: int) -> None:
    """A tool without a caller was called by the model call that had started last before it, if no reply is known; a
    model call without messages goes on from the tools of the one before it, else from that one.

    `waiting` (span place -> readers) is told of tools that hold steps; `slack` in ns is what clocks may be off.
    """
    steps, forest = drafts.steps, drafts.forest
    holders = _holders(drafts)
    held: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        if not step.virtual:
            held.setdefault(holders[step.at], []).append(number)
    for holder, numbers in held.items():
        calls = [n for n in numbers if steps[n].kind == "llm"]
        owner = drafts.by_span.get(holder)
        owned = owner is not None and steps[owner].kind == "llm"
        starts = [steps[n].start for n in calls]
        for number in numbers:
            step = steps[number]
            if step.kind not in TOOLS or step.parents:
                continue
            # Where clocks count milliseconds, a call that starts with the tool is the one that reads it.
            at = (bisect_left(starts, step.start) or bisect_right(starts, step.start)) - 1
            caller = calls[at] if at >= 0 else owner if owned else None
            if caller is not None and steps[caller].observation.reply is None:
                drafts.add(number, caller, "nearest_llm", 0.6)
    for numbers in held.values():
        running = 0
        for earlier, number in pairwise(n for n in numbers if steps[n].kind == "llm"):
            step, before = steps[number], steps[earlier]
            at_once = before.start + slack < running
            running = max(running, before.end)
            if step.parents or step.observation.messages:
                continue
            ran = [c for c in before.children if steps[c].kind in TOOLS and steps[c].end <= step.start + slack]
            for tool in ran:
                drafts.add(number, tool, "turn", 0.6)
                if steps[tool].reader is None:
                    steps[tool].reader = number
                if forest.leave[steps[tool].at] > forest.enter[steps[tool].at]:
                    waiting.setdefault(steps[tool].at, []).append((number, "agent_result", 0.6))
            if not ran and not at_once and before.end <= step.start + slack:  # after calls at once: order in time
                drafts.add(number, earlier, "retry" if before.observation.error else "turn", 0.6)


def _holders(drafts: Drafts) -> list[int]:
    """For each span the nearest one around it that is no plumbing; the outermost where all are."""
    forest = drafts.forest
    holders = [-1] * len(forest.spans)
    for at in forest.preorder:
        above = forest.parents[at]
        if above >= 0:
            through = drafts.observations[above].kind in ("plumbing", "ignored")
            holders[at] = holders[above] if through and holders[above] >= 0 else above
    return holders
