"""Earlier steps that speak of a value which a step uses, however long ago they ran.

Where a trace records with each model call only what was new, the result that an answer rests on may stand many steps
away from it; an index of the ids, amounts and addresses in all results finds it again without a walk over the run.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from evalagent.judging.showing import output_text, telling_terms
from evalagent.model import Step, Trace

COMMON = 40
"""A value in more results than this tells nothing."""


class Recall:
    """What was found, said or returned in a trace, by the values in it. Linear in the texts."""

    def __init__(self, trace: Trace) -> None:
        self._steps = trace.steps
        self._place = {step.step_id: place for place, step in enumerate(trace.steps)}
        self._holding: dict[str, list[int]] = {}
        for place, step in enumerate(trace.steps):
            if step.kind == "llm" or not step.content:
                continue
            for term in telling_terms(output_text(step)):
                self._holding.setdefault(term, []).append(place)

    def earlier(self, step: Step, terms: Iterable[str]) -> Iterator[Step]:
        """For each of the terms, in their order, the last earlier step whose output holds it; then the ones before."""
        own = self._place[step.step_id]
        holding = [places for term in terms if 0 < len(places := self._holding.get(term, ())) <= COMMON]
        given: set[int] = set()
        for back in (1, 2):
            for places in holding:
                at = bisect_left(places, own) - back
                if at >= 0 and places[at] not in given:
                    given.add(places[at])
                    yield self._steps[places[at]]
