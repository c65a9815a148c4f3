"""Runs of a made-up parcel desk, written as a few lines of what happened."""

from dataclasses import replace
from typing import Any

from evalagent.model import Edge, Json, Message, Step, ToolAnswer, ToolRequest, ToolSchema, Trace

TRACE = "f" * 32


class Run:
    """Builds a trace turn by turn; every model step sees all that was said and returned before it."""

    def __init__(self, user: str, tools: tuple[ToolSchema, ...] = (), system: str = "") -> None:
        self.steps: list[Step] = []
        self.history: list[Message] = [Message("system", system)] if system else []
        self.tools = tools
        self.task = user
        self.pending: list[tuple[str, ToolRequest]] = []
        self.results: list[str] = []
        self.last_model: str | None = None
        self.says(user)

    def says(self, text: str) -> "Run":
        self.history.append(Message("user", text))
        return self

    def asks(self, *calls: tuple[str, Json], text: str = "", **more: Any) -> "Run":
        """The model asks for calls."""
        at = len(self.steps)
        requests = tuple(ToolRequest(f"c{at}.{n}", name, args) for n, (name, args) in enumerate(calls))
        self._model(Message("assistant", text, requests), **more)
        self.pending = [(self.steps[-1].step_id, request) for request in requests]
        return self

    def answers(self, text: str, **more: Any) -> "Run":
        self._model(Message("assistant", text), **more)
        return self

    def _model(self, reply: Message, **more: Any) -> None:
        at = len(self.steps)
        parents = tuple(Edge(i, "data", 1.0) for i in self.results)
        if not parents and self.last_model:
            parents = (Edge(self.last_model, "data", 1.0),)
        step = Step(
            TRACE, f"m{at}", (f"m{at}",), "llm", "some-model", at * 10, at * 10 + 5, parents=parents,
            messages=tuple(self.history), reply=reply, tools=self.tools, agent="desk",
        )  # fmt: skip
        step = replace(step, **more)
        self.steps.append(step)
        if step.reply is not None:
            self.history.append(reply)
        self.results, self.last_model = [], step.step_id

    def returns(self, result: Json = None, error: str | None = None, **more: Any) -> "Run":
        """The next pending call runs."""
        asker, request = self.pending.pop(0)
        at = len(self.steps)
        step = Step(
            TRACE, f"t{at}", (f"t{at}",), "tool", request.name, at * 10, at * 10 + 5, error=error,
            parents=(Edge(asker, "call", 1.0),), arguments=request.arguments, result=result,
            call_id=request.id, request_step=asker, agent="desk",
        )  # fmt: skip
        self.steps.append(replace(step, **more))
        content = result if result is not None else error
        self.history.append(Message("tool", "", (), (ToolAnswer(request.id, request.name, content),)))
        self.results.append(step.step_id)
        return self

    def loses(self) -> "Run":
        """The next pending call is never run."""
        asker, request = self.pending.pop(0)
        self.steps.append(
            Step(
                TRACE, f"{asker}#{request.id}", (), "tool", request.name, len(self.steps) * 10, None, virtual=True,
                executed=False, parents=(Edge(asker, "call", 1.0),), arguments=request.arguments,
                call_id=request.id, request_step=asker, agent="desk",
            )
        )  # fmt: skip
        return self

    def trace(self, **more: Any) -> Trace:
        spoke = [s.reply.text for s in self.steps if s.reply is not None and not s.reply.requests]
        return replace(Trace(TRACE, tuple(self.steps), task=self.task, answer=spoke[-1] if spoke else None), **more)


def parcel(**fields: Json) -> dict[str, Json]:
    return {"parcel_id": "PX-4711", "state": "in transit", "weight_g": 1250, **fields}


def good_run() -> Run:
    """Look up, redirect, tell: nothing to complain of."""
    return (
        Run("Please send parcel px 4711 to locker 88 instead.")
        .asks(("find_parcel", {"parcel_id": "PX-4711"}))
        .returns(parcel(depot={"code": "D-0917", "slots": [{"slot_ref": "SL-5521", "fee_cents": 350}]}))
        .asks(("redirect", {"parcel_id": "PX-4711", "slot_ref": "SL-5521", "fee": 3.5}))
        .returns({"status": "ok", "receipt": "RC-90210"})
        .answers("Parcel PX-4711 is redirected to locker 88 for $3.50 (receipt RC-90210).")
    )
