"""planner → two researchers in threads → writer."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from opentelemetry.trace import SpanKind

from research_flow.model import Message, ScriptedModel
from research_flow.notes import TOOLS
from research_flow.telemetry import record_chat, record_tool, span

ROLES = {
    "planner": 'Split the comparison into one question for each thing. Answer as {"questions": […]}.',
    "researcher": "Answer the question from the notes alone, and name the note.",
    "writer": "Join the findings, save one report, then state the conclusion in one sentence.",
}


def research(question: str, model: ScriptedModel) -> str:
    """The writer's conclusion; the report is saved by then."""
    with span("invoke_workflow", "research_flow", workflow_name="research_flow"):
        questions = json.loads(run_agent("planner", question, model))["questions"]
        with ThreadPoolExecutor(max_workers=2) as pool:
            running = [
                pool.submit(copy_context().run, run_agent, f"researcher_{number}", each, model)
                for number, each in enumerate(questions, 1)
            ]
            findings = [each.result() for each in running]
        return run_agent("writer", "\n".join(findings), model)


def run_agent(name: str, task: str, model: ScriptedModel) -> str:
    """Let an agent talk and use tools until it answers."""
    messages: list[Message] = [{"role": "user", "parts": [{"type": "text", "content": task}]}]
    with span("invoke_agent", name, agent_name=name):
        while True:
            with span(
                "chat", model.name, SpanKind.CLIENT, provider_name="scripted", request_model=model.name, agent_name=name
            ) as chat:
                reply = model.chat(name, messages)
                record_chat(chat, ROLES[name.partition("_")[0]], messages, reply)
            if not reply.calls:
                return reply.text
            messages = [*messages, reply.message]
            for call in reply.calls:
                with span(
                    "execute_tool", call["name"], tool_name=call["name"], tool_call_id=call["id"], tool_type="function"
                ) as tool:
                    result = TOOLS[call["name"]](**call["arguments"])
                    record_tool(tool, call["arguments"], result)
                answer = {"type": "tool_call_response", "id": call["id"], "response": result}
                messages = [*messages, {"role": "tool", "parts": [answer]}]
