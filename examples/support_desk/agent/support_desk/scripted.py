"""A stand-in for the model that needs no key: it reads the conversation, tool results too, and makes the next move.

What it gets wrong is drawn from (seed, case, trial), so a run can be repeated and its true faults are known.
"""

import json
import random
import sqlite3
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from support_desk import tools
from support_desk.faults import Fault, draw, spoil
from support_desk.policy import Done, Move, next_move, read


class ScriptedDesk(BaseChatModel):
    """A chat model without a network; `fault` is what this trial will do wrong, if the case gives it the occasion."""

    seed: int = 7
    case_id: str = ""
    trial: int = 0
    planted_at: int | None = None
    """The message index of the reply in which the fault took effect; None until it did."""
    _lock: sqlite3.Connection | None = PrivateAttr(default=None)

    @property
    def fault(self) -> Fault | None:
        return draw(self.seed, self.case_id, self.trial)

    @property
    def _llm_type(self) -> str:
        return "scripted-desk"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return LangSmithParams(ls_provider="scripted", ls_model_name="scripted-desk-1", ls_model_type="chat")

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._release()
        last = max(index for index, message in enumerate(messages) if isinstance(message, HumanMessage))
        request, done = read(messages[last].text), calls_done(messages[last:])
        move, planted, locks = spoil(self.fault, request, done, next_move)
        if planted and self.planted_at is None:
            self.planted_at = len(messages)
        if locks:
            self._hold()
        reply = _message(move, len(messages))
        declared = json.dumps(kwargs.get("tools", []))
        spent = sum(_tokens(message) for message in messages) + len(declared) // 4
        reply.usage_metadata = {
            "input_tokens": spent,
            "output_tokens": _tokens(reply),
            "total_tokens": spent + _tokens(reply),
        }
        return ChatResult(generations=[ChatGeneration(message=reply)], llm_output={"model_name": "scripted-desk-1"})

    def _hold(self) -> None:
        """Another till is writing: the next tool call meets a database that is really locked."""
        self._lock = sqlite3.connect(tools.DATABASE, isolation_level=None, check_same_thread=False)
        self._lock.execute("BEGIN EXCLUSIVE")

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.execute("ROLLBACK")
            self._lock.close()
            self._lock = None


def calls_done(messages: Sequence[AnyMessage | BaseMessage]) -> tuple[Done, ...]:
    """The calls that the model asked for so far, each with what came back."""
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    return tuple(_done(call["name"], call["args"], answers[call["id"]]) for call in calls if call["id"] in answers)


def _done(name: str, arguments: dict[str, Any], answer: ToolMessage) -> Done:
    try:
        result = json.loads(answer.text)
    except json.JSONDecodeError:
        result = {"error": answer.text}
    return Done(name, arguments, result)


def _message(move: Move, position: int) -> AIMessage:
    if move.tool is None:
        return AIMessage(move.text)
    digits = random.Random(f"{position}/{move.tool}").getrandbits(40)
    call = {
        "id": f"call_{position}_{digits:010x}",
        "name": move.tool,
        "args": dict(move.arguments),
        "type": "tool_call",
    }
    return AIMessage(move.text, tool_calls=[call])


def _tokens(message: BaseMessage) -> int:
    calls = json.dumps([call["args"] for call in message.tool_calls]) if isinstance(message, AIMessage) else ""
    return 4 + (len(message.text) + len(calls)) // 4
