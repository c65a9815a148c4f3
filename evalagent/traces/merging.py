"""One call that two layers of instrumentation reported becomes one step.

The outermost is kept (it has the framework's agent and messages) and what it lacks is filled from the inner one; but
any instrumentor's span is preferred to an SDK's own.
"""

from collections.abc import Sequence

from evalagent.model import Tokens
from evalagent.traces.forest import Forest
from evalagent.traces.observing import Observation
from evalagent.traces.unwrapping import canonical, collapsed

_SAME = frozenset({"llm", "embedding", "retrieval", "reranker"})
_TOOLS = frozenset({"tool", "handoff"})
_THROUGH = frozenset({"plumbing", "ignored"})
_LOOKED_AT = 64


def twins(forest: Forest, observations: Sequence[Observation]) -> dict[int, int]:
    """Span position -> position of the span that is kept for it. Fills the kept observations in."""
    kept: dict[int, int] = {}
    outer = _outer_steps(forest, observations)
    by_response: dict[str, list[int]] = {}
    for at in forest.preorder:
        one = observations[at]
        if not one.is_step:
            continue
        above = outer[at]
        above = kept.get(above, above)
        if above >= 0 and _nested_twin(observations[above], one):
            _keep(kept, observations, above, at)
            continue
        if one.kind in ("llm", "embedding") and one.response_id:
            known = by_response.setdefault(one.response_id, [])
            same = next((k for k in known if _overlap(forest, k, at)), None)
            if same is None:
                known.append(at)
                del known[:-8]
            else:
                _keep(kept, observations, same, at)
                if same in kept:
                    known[known.index(same)] = at
    _side_by_side(forest, observations, kept)
    return {at: _final(kept, at) for at in kept}


def _final(kept: dict[int, int], at: int) -> int:
    for _ in range(len(kept) + 1):
        if at not in kept:
            break
        at = kept[at]
    return at


def _outer_steps(forest: Forest, observations: Sequence[Observation]) -> list[int]:
    """For each span the nearest step around it with nothing but plumbing between; -1 for none."""
    outer = [-1] * len(observations)
    for at in forest.preorder:
        above = forest.parents[at]
        if above >= 0:
            if observations[above].is_step:
                outer[at] = above
            elif observations[above].kind in _THROUGH:
                outer[at] = outer[above]
    return outer


def _nested_twin(outer: Observation, inner: Observation) -> bool:
    if outer.kind == inner.kind and outer.kind in _SAME:
        return not (inner.error and _succeeded(outer) and outer.span.scope == inner.span.scope)
    if outer.kind in _TOOLS and inner.kind in _TOOLS:
        return inner.name == outer.name or outer.name.endswith(f".{inner.name}") or inner.name == "tool.execution"
    return False


def _succeeded(one: Observation) -> bool:
    """Whether a call came to something: what failed inside it was an attempt, made again by whoever reports both."""
    return one.error is None and (one.reply is not None or one.tokens is not None or one.result is not None)


def _overlap(forest: Forest, a: int, b: int) -> bool:
    first, second = forest.spans[a], forest.spans[b]
    return first.start_ns <= forest.ends[b] and second.start_ns <= forest.ends[a]


def _side_by_side(forest: Forest, observations: Sequence[Observation], kept: dict[int, int]) -> None:
    """One model call told by two instrumentations that do not nest: one inside the time of the other, and nothing that
    tells them apart (an SDK's own stream, LangChain beside the client's own instrumentor). Of several that it may be,
    the last to begin under the same parent; elsewhere it must be the only one."""
    calls = [at for at, one in enumerate(observations) if one.kind == "llm" and at not in kept]
    if len({forest.spans[at].scope for at in calls}) < 2:
        return
    calls.sort(key=lambda at: (forest.spans[at].start_ns, -forest.ends[at], observations[at].native, at))
    open_: list[int] = []
    for at in calls:
        open_ = [o for o in open_ if forest.ends[o] >= forest.spans[at].start_ns][-_LOOKED_AT:]
        near = [
            o
            for o in open_
            if forest.ends[o] >= forest.ends[at]
            and o not in kept
            and not forest.inside(at, o)
            and one_call(observations[o], observations[at])
        ]
        beside = [o for o in near if forest.parents[o] == forest.parents[at]]
        if beside or len(near) == 1:
            _keep(kept, observations, (beside or near)[-1], at)
        open_.append(at)


def one_call(outer: Observation, inner: Observation) -> bool:
    """Whether two model calls of which one ran inside the time of the other can be one call that two instrumentations
    report: not by one scope, one model, and the same reply, else the same tokens. Of an SDK's own span nothing more is
    asked, since it tells no contents."""
    if outer.span.scope == inner.span.scope or not _same_model(outer, inner):
        return False
    if outer.response_id and inner.response_id:
        return outer.response_id == inner.response_id
    if outer.native != inner.native:
        return True
    if outer.reply is not None and inner.reply is not None:
        ours, theirs = outer.reply.requests, inner.reply.requests
        if ours or theirs:
            return [(r.name, canonical(r.arguments)) for r in ours] == [
                (r.name, canonical(r.arguments)) for r in theirs
            ]
        return collapsed(outer.reply.text) == collapsed(inner.reply.text)
    if outer.reply is None and inner.reply is None and outer.error and inner.error:
        return True
    return outer.tokens is not None and inner.tokens is not None and outer.tokens == inner.tokens


def _same_model(a: Observation, b: Observation) -> bool:
    first, second = {a.model, a.name} - {None}, {b.model, b.name} - {None}
    return bool(first & second)


def _keep(kept: dict[int, int], observations: Sequence[Observation], outer: int, inner: int) -> None:
    if observations[outer].native and not observations[inner].native:
        outer, inner = inner, outer
    kept[inner] = outer
    fill(observations[outer], observations[inner])


def fill(to: Observation, source: Observation) -> None:
    """What the kept span lacks, from its twin; an inner error is the call's error."""
    to.error = to.error or (None if to.kind in _SAME and _succeeded(to) else source.error)
    to.agent = to.agent or source.agent
    if to.kind == "llm" and to.model is None and source.model is not None:
        to.name = source.name
    to.model = to.model or source.model
    to.messages = to.messages or source.messages
    to.reply = to.reply if to.reply is not None else source.reply
    to.tools = to.tools or source.tools
    # OpenInference tells a single argument bare; a twin that tells it with its name says more.
    told_bare = to.arguments is not None and not isinstance(to.arguments, dict)
    if to.arguments is None or (told_bare and isinstance(source.arguments, dict)):
        to.arguments = source.arguments
    to.result = to.result if to.result is not None else source.result
    to.call_id = to.call_id or source.call_id
    to.response_id = to.response_id or source.response_id
    to.session = to.session or source.session
    to.texts = to.texts or source.texts
    to.cost_usd = to.cost_usd if to.cost_usd is not None else source.cost_usd
    if to.tokens is None:
        to.tokens = source.tokens
    elif source.tokens is not None:
        ours, theirs = to.tokens, source.tokens
        if source.native and theirs.output is not None:
            # The SDK reads the usage that the model sent; OpenLLMetry adds the parts of a stream's up, one too many.
            ours = Tokens(ours.input, theirs.output, ours.cache_read, ours.cache_write)
        to.tokens = Tokens(
            *(
                a if a is not None else b
                for a, b in (
                    (ours.input, theirs.input),
                    (ours.output, theirs.output),
                    (ours.cache_read, theirs.cache_read),
                    (ours.cache_write, theirs.cache_write),
                )
            )
        )
