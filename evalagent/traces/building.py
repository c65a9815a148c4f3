"""Spans and log records into traces: steps, edges, containers, health.

Every span ends in exactly one place: a step's `span_ids`, a container, `Trace.ignored`, or the count of duplicates.
The same spans in any order give the same traces, byte for byte.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalagent.model import Event, Json, LogRecord, Span, Trace
from evalagent.traces.agentcore import restored
from evalagent.traces.dialects import addressed, observe
from evalagent.traces.drafting import draft
from evalagent.traces.echoes import silence_echoes
from evalagent.traces.finishing import finish
from evalagent.traces.forest import forest
from evalagent.traces.grouping import Grouping
from evalagent.traces.histories import Histories
from evalagent.traces.lost_tools import orphan_tools
from evalagent.traces.messages import Reader
from evalagent.traces.observing import Source
from evalagent.traces.requests import add_virtual_steps, match_requests
from evalagent.traces.sessions import between
from evalagent.traces.strands import Strand
from evalagent.traces.ties import Tie, call_ties, request_ties
from evalagent.traces.unwrapping import canonical


@dataclass(frozen=True, slots=True)
class Built:
    """All traces of an input, by start, then id.

    `duplicates`: spans dropped because their trace and span id came again; `log_attached` and `log_ignored`: log
    records whose span is here, and those whose span is not or that came again.
    """

    traces: tuple[Trace, ...]
    duplicates: int = 0
    log_attached: int = 0
    log_ignored: int = 0


@dataclass(slots=True)
class _Heap:
    spans: dict[str, Span] = field(default_factory=dict)
    duplicates: int = 0
    events: dict[str, list[Event]] = field(default_factory=dict)
    logged: set[tuple[str, int, str, str]] = field(default_factory=set)
    """The log records that came: span, time, name, content."""


def build(
    spans: Sequence[Span],
    logs: Sequence[LogRecord] = (),
    prices: Mapping[str, Json] | None = None,
    *,
    repeated: Mapping[str, int] | None = None,
    among_others: bool = False,
    ties: list[Tie] | None = None,
) -> Built:
    """Steps and edges of every trace. `prices`: model -> {input, output, ...} in US dollars per million tokens, before
    the public list prices.

    Where the spans are some of many: `repeated` says of traces how many of their spans were dropped before because
    they came again, `among_others` that another trace has steps; `ties` gets the
    ends by which these traces may belong with others.
    """
    repeated = repeated or {}
    heaps: dict[str, _Heap] = {}
    for span in spans:
        heap = heaps.get(span.trace_id)
        if heap is None:
            heap = heaps[span.trace_id] = _Heap(duplicates=repeated.get(span.trace_id, 0))
        known = heap.spans.get(span.span_id)
        if known is not None:
            heap.duplicates += 1
            if fullness(span) <= fullness(known):
                continue
        heap.spans[span.span_id] = span
    attached = 0
    for log in logs:
        found = heaps.get(log.trace_id)
        if found is not None:
            event = event_of(log)
            record = (log.span_id, log.time_ns, log.event_name, canonical(dict(event.attributes)))
            if record in found.logged:
                continue  # it came again, as from a retried export
            found.logged.add(record)
            found.events.setdefault(log.span_id, []).append(event)
    for heap in heaps.values():
        heap.events = dict(addressed(tuple(heap.spans.values()), heap.events)) if heap.events else {}
        attached += sum(len(told) for span_id, told in heap.events.items() if span_id in heap.spans)
    strands = [_strand(trace_id, heaps[trace_id]) for trace_id in sorted(heaps)]
    if ties is not None:
        ties += call_ties(strands)
    silence_echoes(strands)
    for strand in strands:
        match_requests(strand.drafts)
    if ties is not None:
        ties += request_ties(strands)
    orphan_tools(strands)
    for strand in strands:
        add_virtual_steps(strand.drafts)
        strand.histories = Histories(strand.drafts)
        strand.histories.read()
        strand.grouping = Grouping(strand.drafts, strand.histories.waiting)
        strand.grouping.work()
    between(strands)
    alone = not among_others and not any(strand.drafts.steps for strand in strands)
    for strand in strands:
        strand.histories = strand.grouping = None
    traces = [finish(strand, heaps[strand.trace_id].duplicates, prices, alone) for strand in strands]
    return Built(
        tuple(sorted(traces, key=lambda t: (t.start_ns, t.trace_id))),
        sum(heap.duplicates for heap in heaps.values()),
        attached,
        len(logs) - attached,
    )


def fullness(span: Span) -> tuple[int, int, str]:
    """How much a span says. Of two spans with one id the greater is kept: more said, later end, greater text."""
    said = len(span.attributes) + len(span.events) + len(span.links)
    text = canonical(
        [
            span.name, span.start_ns, span.parent_id, span.status, span.status_message, dict(span.attributes),
            span.scope, span.scope_version, dict(span.resource), span.dropped_attributes,
            [[e.name, e.time_ns, dict(e.attributes)] for e in span.events],
            [[link.trace_id, link.span_id, dict(link.attributes)] for link in span.links],
        ]
    )  # fmt: skip
    return said, span.end_ns or 0, text


def event_of(log: LogRecord) -> Event:
    """The span event that a log record is another form of; records that give equal events are one that came again."""
    body = log.body if isinstance(log.body, dict) else {} if log.body is None else {"content": log.body}
    return Event(log.event_name, log.time_ns, {**log.attributes, **body})


def _strand(trace_id: str, heap: _Heap) -> Strand:
    reader = Reader()
    woods = forest(list(heap.spans.values()))
    observations = []
    for span in woods.spans:
        events = span.events
        if told := heap.events.get(span.span_id):
            extra = {(e.time_ns, e.name, canonical(dict(e.attributes))): e for e in told}
            events += tuple(extra[said] for said in sorted(extra))  # a record that came again is the same event
        observations.append(observe(Source(*restored(span, events), reader)))
    return Strand(trace_id, draft(woods, observations))
