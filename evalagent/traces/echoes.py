"""Model calls that a second instrumentation told in a trace of its own, because the first one hands its span on to
nobody (LangChain under OpenInference or LangSmith, with the client's own spans below it).

Such an echo is no second call: its spans are left out with a reason, and what only they say goes to the call's step.
"""

from bisect import bisect_right
from collections.abc import Sequence

from evalagent.traces.drafts import ECHO, Draft, core_of
from evalagent.traces.merging import fill, one_call
from evalagent.traces.strands import Strand

_CALLS = frozenset({"llm", "embedding"})
_LOOKED_AT = 64


def silence_echoes(strands: Sequence[Strand]) -> None:
    """Empty every trace of model calls alone that are all told by another scope in another trace too: by the reply's
    own id, or by the only call of the same service around it in time that can be the same."""
    lone = [s for s in strands if is_lone(s)]
    if not lone:
        return
    places = _Calls(strands)
    silenced: set[str] = set()
    for strand in sorted(lone, key=lambda s: (-min(d.start for d in s.drafts.steps), s.trace_id)):
        found = [places.around(strand, step, silenced) for step in strand.drafts.steps]
        originals = [original for original in found if original is not None]
        if len(originals) != len(found) or len({id(original) for original in originals}) != len(originals):
            continue
        for step, original in zip(strand.drafts.steps, originals, strict=True):
            fill(original.observation, step.observation)
            original.core = core_of(original.observation)
        silenced.add(strand.trace_id)
        _empty(strand)


def is_lone(strand: Strand) -> bool:
    """Whether a trace is of model calls alone."""
    drafts = strand.drafts
    return bool(drafts.steps) and not drafts.containers and all(step.kind in _CALLS for step in drafts.steps)


def _empty(strand: Strand) -> None:
    drafts = strand.drafts
    for step in drafts.steps:
        for span_id in step.span_ids:
            drafts.ignored[span_id] = ECHO
    drafts.steps.clear()
    drafts.by_span.clear()
    drafts.summed.clear()


class _Calls:
    """The model calls of all traces, by their replies' ids, and by service and start."""

    def __init__(self, strands: Sequence[Strand]) -> None:
        self._by_id: dict[str, list[tuple[str, Draft]]] = {}
        told: dict[str, list[tuple[int, str, Draft]]] = {}
        for strand in strands:
            for step in strand.drafts.steps:
                if step.kind in _CALLS:
                    told.setdefault(strand.service, []).append((step.start, strand.trace_id, step))
                    if step.observation.response_id:
                        known = self._by_id.setdefault(step.observation.response_id, [])
                        known.append((strand.trace_id, step))
        self._told = {
            service: sorted(calls, key=lambda c: (c[0], c[1], c[2].step_id)) for service, calls in told.items()
        }
        self._starts = {service: [call[0] for call in calls] for service, calls in self._told.items()}

    def around(self, strand: Strand, step: Draft, silenced: set[str]) -> Draft | None:
        """The one call of another trace that this one is the echo of."""
        identity = step.observation.response_id
        if identity is not None:
            same = [
                call
                for trace_id, call in self._by_id[identity]
                if trace_id != strand.trace_id and trace_id not in silenced and _holds(call, step)
            ]
            if same:
                return same[0] if len(same) == 1 else None
        starts = self._starts[strand.service]
        last = bisect_right(starts, step.start)
        near = [
            call
            for _, trace_id, call in self._told[strand.service][max(0, last - _LOOKED_AT) : last]
            if trace_id != strand.trace_id
            and trace_id not in silenced
            and _holds(call, step)
            and one_call(call.observation, step.observation)
        ]
        return near[0] if len(near) == 1 else None


def _holds(outer: Draft, inner: Draft) -> bool:
    return (
        outer.kind == inner.kind
        and outer.start <= inner.start
        and inner.end <= outer.end
        and outer.observation.span.scope != inner.observation.span.scope
    )
