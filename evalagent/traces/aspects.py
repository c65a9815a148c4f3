"""What a model call was doing, by what it answered and what it had been given; None where that says nothing."""

from collections.abc import Sequence

from evalagent.model import Aspect, Message
from evalagent.traces.drafts import Draft, Drafts


def aspect_of(step: Draft, drafts: Drafts) -> Aspect | None:
    """The aspect of an llm step:

    * a call to a hand-off, or to a tool that an agent ran: `delegate`;
    * any other call: `choose_tool`;
    * text only, after tool results that are new to it: `read_result` where the same agent goes on, else `answer`;
    * text only, with no tool result new to it: `plan` where the same agent goes on to call tools, `understand` where it
      goes on without, else `answer`;
    * nothing captured: None.
    """
    reply = step.observation.reply
    if step.kind != "llm" or reply is None:
        return None
    if reply.requests:
        return "delegate" if any(_delegates(r.step, r.container, drafts) for r in step.requests) else "choose_tool"
    if not reply.text:
        return None
    children = (drafts.steps[c] for c in step.children)
    following = [child for child in children if child.agent == step.agent and child.kind != "guardrail"]
    if not following:
        return "answer"
    if _reads(step.fresh):
        return "read_result"
    if any(_calls(after) for after in following):
        return "plan"
    return "understand"


def _delegates(number: int | None, container: int | None, drafts: Drafts) -> bool:
    if container is not None:
        return True
    if number is None:
        return False
    ran = drafts.steps[number]
    if ran.kind == "handoff":
        return True
    if ran.virtual:
        return False
    inside = list(drafts.forest.children[ran.at])
    while inside:
        at = inside.pop()
        if drafts.observations[at].kind == "agent":
            return True
        if drafts.observations[at].kind in ("workflow", "node", "turn", "plumbing"):
            inside += drafts.forest.children[at]
    return False


def _reads(messages: Sequence[Message]) -> bool:
    return any(message.answers for message in messages)


def _calls(step: Draft) -> bool:
    reply = step.observation.reply
    return step.kind == "tool" or (reply is not None and bool(reply.requests))
