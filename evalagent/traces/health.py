"""What had to be guessed, cut or done without in a trace: findings, and a quality from 0 to 1.

`quality` = 1 minus what the findings cost (`COSTS`), not below 0; docs/health.md tells each code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalagent.model import Finding, Json, Severity, Span, Step
from evalagent.traces.drafts import ECHO, Drafts
from evalagent.traces.requests import SLACK_NS

_NAMED = 10
_AGENTIC = (
    "llm.", "ai.", "agent.", "genai.", "openinference.", "traceloop.", "langsmith.", "langfuse.", "mlflow.",
    "autogen.", "crewai.", "dspy.", "haystack.", "letta.", "semantic_kernel.",
    "smolagents.", "gen_ai.usage.", "gen_ai.prompt", "gen_ai.completion", "gen_ai.agent.",
)  # fmt: skip
_MEANT = ("llm", "tool", "handoff", "retrieval")

COSTS: Mapping[str, tuple[float, str]] = {
    "orphan_span": (0.1, "spans"),
    "missing_root": (0.05, "trace"),
    "duplicate_span": (0.0, "trace"),
    "span_cycle": (0.2, "trace"),
    "truncated_json": (0.3, "steps"),
    "negative_duration": (0.1, "spans"),
    "clock_skew": (0.1, "trace"),
    "content_not_captured": (0.4, "steps"),
    "tokens_unknown": (0.05, "model calls"),
    "attribute_limit": (0.2, "spans"),
    "unknown_dialect": (0.1, "spans"),
    "no_agent_steps": (1.0, "trace"),
}
"""What a finding takes from the quality: so much if it concerns the whole trace, or all of its spans, steps or model
calls; of fewer, their share of it."""


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

    def warn(code: str, message: str, evidence: Json = None, share: float = 1.0) -> None:
        nonlocal cost
        cost += COSTS[code][0] * share
        found.append(Finding(trace_id, None, code, "warning", message, evidence))

    total = max(len(spans), 1)
    orphans = set(forest.orphans)
    if orphans:
        message = f"{len(orphans)} of {total} spans name a parent that is not in the input"
        warn("orphan_span", message, _ids(spans, forest.orphans), len(orphans) / total)
    if spans and all(at in orphans for at in forest.roots):
        warn("missing_root", "the root span of this trace is not in the input")
    if duplicates:
        message = f"{duplicates} spans came more than once; the fuller one was kept"
        warn("duplicate_span", message, {"spans": duplicates})
    if forest.cycles or cut:
        parts = [f"{len(forest.cycles)} spans were inside themselves"] if forest.cycles else []
        parts += [f"{len(cut)} edges closed a ring and were cut"] if cut else []
        evidence = {"spans": _ids(spans, forest.cycles)["spans"], "edges": [list(e) for e in cut[:_NAMED]]}
        warn("span_cycle", "; ".join(parts), evidence)
    backwards = [at for at, span in enumerate(spans) if span.end_ns is not None and span.end_ns < span.start_ns]
    if backwards:
        message = f"{len(backwards)} spans end before they start"
        warn("negative_duration", message, _ids(spans, backwards), len(backwards) / total)
    skewed = list(dict.fromkeys([*_skewed(drafts), *drafts.askew]))
    if skewed or drafts.contradicted:
        said = [f"{len(skewed)} steps start before what they depend on"] if skewed else []
        if drafts.contradicted:
            said.append(
                f"{len(drafts.contradicted)} model calls were given another result than the tool in another trace "
                "returned that has the call's id"
            )
        warn("clock_skew", "; ".join(said), {"steps": list(dict.fromkeys([*skewed, *drafts.contradicted]))[:_NAMED]})
    dropped = [at for at, span in enumerate(spans) if span.dropped_attributes]
    if dropped:
        lost = sum(spans[at].dropped_attributes for at in dropped)
        message = f"a limit of whoever made the trace dropped {lost} attributes or events of {len(dropped)} spans"
        warn("attribute_limit", message, _ids(spans, dropped), len(dropped) / total)
    strange = [
        at
        for at, one in enumerate(drafts.observations)
        if one.dialect == "plain" and one.kind == "plumbing" and _agentic(spans[at])
    ]
    if strange:
        message = f"{len(strange)} spans carry attributes of an agent in a dialect that is not known"
        warn("unknown_dialect", message, _ids(spans, strange), len(strange) / total)
    if drafts.summed:
        message = "tokens are known for a whole group of steps only; they stand at its last step"
        warn("tokens_unknown", message, {"steps": drafts.summed[:_NAMED]})
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
            cost += COSTS["truncated_json"][0] / count
            message = f"JSON of {step.kind} {step.name} was cut; what is missing is no fault of the agent's"
            found.append(Finding(trace_id, step.step_id, "truncated_json", "warning", message))
    silent = [s.step_id for s in steps if s.kind in _MEANT and not s.content and not s.error]
    if silent:
        cost += COSTS["content_not_captured"][0] * len(silent) / count
        message = f"{len(silent)} of {count} steps hold no messages, arguments or results"
        found.append(Finding(trace_id, None, "content_not_captured", "warning", message, _first(silent)))
    calls = [s for s in steps if s.kind == "llm"]
    unpriced = [
        s.step_id
        for s in calls
        if (s.tokens is None or s.tokens.input is None or s.tokens.output is None)
        and not (s.error and s.reply is None)  # a call that failed was told no usage
    ]
    if unpriced:
        cost += COSTS["tokens_unknown"][0] * len(unpriced) / len(calls)
        message = f"{len(unpriced)} of {len(calls)} model calls do not say their tokens"
        found.append(Finding(trace_id, None, "tokens_unknown", "warning", message, _first(unpriced)))
    return cost


def _first(steps: Sequence[str]) -> dict[str, Json]:
    return {"steps": list(steps[:_NAMED]), "count": len(steps)}


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
