"""Microsoft Agent Framework 1.x: GenAI spans inside workflow spans that are joined by links.

Seen: agent-framework-core 1.23.0 with orchestrations 1.4.0 (workflows, fan-out and fan-in, sequential, concurrent,
group chat, hand-off), Chat Completions and Responses, streams, approvals, sensitive data on and off.
"""

from evalagent.model import Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source

_SCOPE = "agent_framework"
_IGNORED = {"workflow.build": "workflow_build", "message.send": "message_send"}
_WORKFLOW = ("executor.process", "edge_group.process", "workflow.run", "workflow.build", "message.send")


def speaks(span: Span) -> bool:
    """Its scope, or the names of its workflow spans."""
    return span.scope == _SCOPE or (span.name.startswith(_WORKFLOW) and names.OPERATION not in span.attributes)


def observe(source: Source) -> Observation:
    """An Agent Framework span."""
    span, attributes = source.span, source.attributes
    if names.OPERATION in attributes:
        observation = genai.observe(source)
        if (observation.session or "").startswith("resp_"):
            observation.session = None  # the response that the next call goes on from: another one each call
        return observation
    observation = fields.begin(source, "plumbing", span.name)
    if span.name.startswith("executor.process"):
        observation.kind = "node"
        observation.name = fields.text(attributes.get(names.MAF_EXECUTOR)) or span.name.removeprefix(
            "executor.process "
        )
        observation.node_id = observation.name
    elif span.name.startswith("workflow.run"):
        observation.kind = "workflow"
        observation.name = fields.text(attributes.get("workflow.name")) or "workflow"
    elif span.name.startswith("edge_group"):
        observation.kind, observation.reason = "ignored", "edge_group"
    elif span.name in _IGNORED:
        observation.kind, observation.reason = "ignored", _IGNORED[span.name]
    return observation
