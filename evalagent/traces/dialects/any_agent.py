"""any-agent (Mozilla): GenAI operations with output and arguments under keys of its own."""

from evalagent.model import Span
from evalagent.traces import attributes as names
from evalagent.traces.dialects import fields, genai
from evalagent.traces.observing import Observation, Source
from evalagent.traces.unwrapping import parse


def speaks(span: Span) -> bool:
    """The keys that only it has."""
    return any(key in span.attributes for key in (*names.ANY_OUTPUT, names.ANY_ARGUMENTS))


def observe(source: Source) -> Observation:
    """An any-agent span."""
    attributes = source.attributes
    observation = genai.observe(source)
    output = fields.first(attributes, names.ANY_OUTPUT)
    if observation.kind == "llm" and observation.reply is None and output is not None:
        calls = parse(output)
        is_calls = isinstance(calls.value, list) and all(isinstance(c, dict) and "tool.name" in c for c in calls.value)
        if is_calls and calls.value:
            observation.reply = source.reader.joined(source.reader.many(calls.value, "assistant")[0])
        else:
            said = output if isinstance(output, str) else None
            observation.reply = source.reader.one({"role": "assistant", "content": said}) if said else None
        observation.truncated = observation.truncated or (is_calls and calls.truncated)
    elif observation.kind in ("tool", "handoff"):
        if observation.arguments is None:
            fields.take_arguments(observation, attributes.get(names.ANY_ARGUMENTS))
        if observation.result is None:
            fields.take_result(observation, output)
        genai.as_handoff(observation)
    elif observation.kind == "agent":
        observation.answer = observation.answer or fields.text(output)
    cost = [fields.number(attributes.get(f"gen_ai.usage.{side}_cost")) for side in ("input", "output")]
    if observation.kind == "llm" and None not in cost:
        observation.cost_usd = sum(c for c in cost if c is not None)
    return observation
