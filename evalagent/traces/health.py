"""What had to be guessed, cut or done without in a trace: warnings, and a quality from 0 to 1.

`quality` = 1 minus the costs of the findings, not below 0. A share is how many of the steps (or spans) it concerns:
missing_root 0.05, orphan_span 0.1 x share of spans, span_cycle 0.2, truncated_json 0.3 x share of steps,
negative_duration 0.1 x share of spans, clock_skew 0.1, content_not_captured 0.4 x share of steps, tokens_unknown
0.05 x share of llm steps, attribute_limit 0.2 x share of spans, unknown_dialect 0.1 x share of spans, duplicate_span 0;
no_agent_steps makes it 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evalagent.model import Finding, Json, Severity, Span, Step
from evalagent.traces.drafts import ECHO, Drafts
from evalagent.traces.requests import SLACK_NS

_NAMED = 10
_AGENTIC = (
    "llm.", "ai.", "agent.", "genai.", "openinference.", "traceloop.", "langsmith.", "langfuse.", "mlflow.",
    "smolagents.", "gen_ai.usage.", "gen_ai.prompt", "gen_ai.completion", "gen_ai.agent.",
)  # fmt: skip
_MEANT = ("llm", "tool", "handoff", "retrieval")


@dataclass(frozen=True, slots=True)
class Health:
    """A trace's findings and its quality."""

    findings: tuple[Finding, ...]
    quality: float


def health(
    trace_id: str,
    drafts: Drafts,
    steps: Sequence[Step],
    duplicates: int,
    cut: Sequence[tuple[str, str]],
    alone: bool,
) -> Health:
    """Findings of one trace. `duplicates`: spans dropped because their id came again; `cut`: edges (parent, child)
    cut to break a cycle; `alone`: no other trace of the input has steps either."""
    forest = drafts.forest
    spans, found = forest.spans, []
    cost = 0.0

    def warn(code: str, message: str, price: float, evidence: Json = None, step: str | None = None) -> None:
        nonlocal cost
        cost += price
        found.append(Finding(trace_id, step, code, "warning", message, evidence))

    total = max(len(spans), 1)
    if forest.orphans:
        warn(
            "orphan_span",
            f"{len(forest.orphans)} of {total} spans name a parent that is not in the input",
            0.1 * len(forest.orphans) / total,
            _ids(spans, forest.orphans),
        )
    if spans and all(at in set(forest.orphans) for at in forest.roots):
        warn("missing_root", "the root span of this trace is not in the input", 0.05)
    if duplicates:
        warn(
            "duplicate_span",
            f"{duplicates} spans came more than once; the fuller one was kept",
            0.0,
            {"spans": duplicates},
        )
    if forest.cycles or cut:
        parts = [f"{len(forest.cycles)} spans were inside themselves"] if forest.cycles else []
        parts += [f"{len(cut)} edges closed a ring and were cut"] if cut else []
        evidence = {"spans": _ids(spans, forest.cycles)["spans"], "edges": [list(e) for e in cut[:_NAMED]]}
        warn("span_cycle", "; ".join(parts), 0.2, evidence)
    backwards = [at for at, span in enumerate(spans) if span.end_ns is not None and span.end_ns < span.start_ns]
    if backwards:
        warn(
            "negative_duration",
            f"{len(backwards)} spans end before they start",
            0.1 * len(backwards) / total,
            _ids(spans, backwards),
        )
    skewed = _skewed(drafts)
    if skewed:
        warn("clock_skew", f"{len(skewed)} steps start before what they depend on", 0.1, {"steps": skewed[:_NAMED]})
    dropped = [at for at, span in enumerate(spans) if span.dropped_attributes]
    if dropped:
        lost = sum(spans[at].dropped_attributes for at in dropped)
        warn(
            "attribute_limit",
            f"an attribute limit dropped {lost} attributes of {len(dropped)} spans",
            0.2 * len(dropped) / total,
            _ids(spans, dropped),
        )
    strange = [
        at
        for at, one in enumerate(drafts.observations)
        if one.dialect == "plain" and one.kind == "plumbing" and _agentic(spans[at])
    ]
    if strange:
        warn(
            "unknown_dialect",
            f"{len(strange)} spans carry attributes of an agent in a dialect that is not known",
            0.1 * len(strange) / total,
            _ids(spans, strange),
        )
    if drafts.summed:
        warn(
            "tokens_unknown",
            "tokens are known for a whole group of steps only; they stand at its last step",
            0.05,
            {"steps": drafts.summed[:_NAMED]},
        )
    cost += _of_steps(trace_id, steps, found)
    if not steps and not (drafts.ignored and all(reason == ECHO for reason in drafts.ignored.values())):
        severity: Severity = "error" if alone else "info"
        found.append(Finding(trace_id, None, "no_agent_steps", severity, "no span of this trace is a step of an agent"))
        cost = 1.0
    return Health(tuple(found), round(max(0.0, 1.0 - cost), 4))


def _of_steps(trace_id: str, steps: Sequence[Step], found: list[Finding]) -> float:
    cost = 0.0
    count = max(len(steps), 1)
    for step in steps:
        if step.truncated:
            cost += 0.3 / count
            message = f"JSON of {step.kind} {step.name} was cut; what is missing is no fault of the agent's"
            found.append(Finding(trace_id, step.step_id, "truncated_json", "warning", message))
    silent = [s.step_id for s in steps if s.kind in _MEANT and not s.content and not s.error]
    if silent:
        cost += 0.4 * len(silent) / count
        found.append(
            Finding(
                trace_id, None, "content_not_captured", "warning",
                f"{len(silent)} of {count} steps hold no messages, arguments or results",
                {"steps": silent[:_NAMED], "count": len(silent)},
            )
        )  # fmt: skip
    calls = [s for s in steps if s.kind == "llm"]
    unpriced = [
        s.step_id
        for s in calls
        if (s.tokens is None or s.tokens.input is None or s.tokens.output is None)
        and not (s.error and s.reply is None)  # a call that failed was told no usage
    ]
    if unpriced:
        cost += 0.05 * len(unpriced) / len(calls)
        found.append(
            Finding(
                trace_id, None, "tokens_unknown", "warning",
                f"{len(unpriced)} of {len(calls)} model calls do not say their tokens",
                {"steps": unpriced[:_NAMED], "count": len(unpriced)},
            )
        )  # fmt: skip
    return cost


def _ids(spans: Sequence[Span], places: Sequence[int]) -> dict[str, Json]:
    return {"spans": [spans[at].span_id for at in places[:_NAMED]], "count": len(places)}


def _skewed(drafts: Drafts) -> list[str]:
    return [
        step.step_id
        for step in drafts.steps
        if any(
            rule != "child_embedding" and drafts.steps[parent].start > step.start + SLACK_NS
            for parent, (rule, _) in step.parents.items()
        )
    ]


def _agentic(span: Span) -> bool:
    return any(key.startswith(_AGENTIC) for key in span.attributes)
