"""From a step to the question about it: what a judge is shown, and what is declared missing."""

from collections.abc import Iterable, Iterator

from evalagent.judging.neighbours import Neighbourhood
from evalagent.judging.questions import Piece, Question
from evalagent.judging.showing import header, message_text, output_text, piece, terms_of, text_of, visible
from evalagent.model import Message, Step, ToolSchema, Trace

TASK, INSTRUCTIONS, GIVEN, ONE_MESSAGE, TOOLS, OUTPUT, NEIGHBOUR = 4_000, 3_500, 10_000, 3_000, 4_000, 8_000, 1_200
"""Characters at most: task and expectation, system prompt, all messages together, one message, all tools together,
the step's own output or arguments, a neighbour's output."""

RECENT, LOOKED_BACK, RECALLED = 12, 200, 4
"""Messages: how many of the latest are shown, how many older ones are searched, how many of those are shown."""

_UNREADABLE = {
    "human": "what a person says is not the agent's work",
    "embedding": "an embedding is a list of numbers, which no judge can read",
}
_RUBRICS = {"reranker": "retrieval", "memory": "other"}
_ROLES = {
    "user": "a message of the user, given to the model",
    "assistant": "an earlier message of the model itself",
    "tool": "a result of a tool, given to the model",
}


def unshowable(step: Step) -> str | None:
    """Why nobody could judge this step by reading; None if somebody could."""
    if step.kind in _UNREADABLE:
        return _UNREADABLE[step.kind]
    if not step.content:
        return "its messages, arguments and results were not captured"
    if not step.executed:
        return "it was asked for and never ran"
    if step.kind == "llm":
        if step.reply is None:
            return "what the model answered was not captured"
        if any(request.truncated for request in step.reply.requests):
            return "the arguments that the model asked for were cut by a limit of the trace"
        return None
    if step.result is None and step.output is None and not step.error:
        return "its result was not captured"
    return None


class Composer:
    """Makes the questions about one trace; what steps share is worked out once."""

    def __init__(self, trace: Trace, behaviour: str | None) -> None:
        self._trace = trace
        self._behaviour = behaviour
        self._around = Neighbourhood(trace)
        self._steps = {step.step_id: step for step in trace.steps}
        self._texts: dict[int, str] = {}

    def question(self, step: Step, warnings: tuple[str, ...], show: bool) -> Question:
        rubric = (step.aspect or "answer") if step.kind == "llm" else _RUBRICS.get(step.kind, step.kind)
        if not show:
            return Question(step.trace_id, step.step_id, step.kind, step.aspect, step.node, rubric, warnings=warnings)
        pieces, omitted = self._pieces(step)
        return Question(
            step.trace_id, step.step_id, step.kind, step.aspect, step.node, rubric, pieces, omitted, warnings
        )

    def _pieces(self, step: Step) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
        own = output_text(step)
        terms = terms_of((own, text_of(step.arguments)))
        pieces: list[Piece] = []
        omitted: list[str] = []
        if self._trace.task:
            pieces.append(piece("task", "what the user asked of the agent", text_of(self._trace.task), TASK, terms))
        else:
            omitted.append("The user's task was not captured.")
        if self._behaviour:
            title = "what the author of this test case expects"
            pieces.append(piece("expected", title, text_of(self._behaviour), TASK, terms))
        if step.kind == "llm":
            pieces += self._of_model(step, terms, omitted)
        else:
            pieces += self._of_other(step, own, terms)
        pieces += self._neighbours(step, pieces, terms, omitted)
        if step.truncated:
            omitted.append(
                "A limit of the recording cut something of this step before it came to us; what is missing is no fault"
                " of the agent."
            )
        return tuple(pieces), tuple(omitted)

    # --- a step of a model ---------------------------------------------------------------------------

    def _of_model(self, step: Step, terms: tuple[str, ...], omitted: list[str]) -> Iterator[Piece]:
        who = text_of({k: v for k, v in (("agent", step.agent), ("node", step.node)) if v is not None})
        if who != "{}":
            yield piece("step", "which agent and which part of it made this step", who, NEIGHBOUR)
        system = "\n\n".join(text_of(m.text) for m in step.messages if m.role == "system")
        if system:
            yield piece("instructions", "the instructions the model was given", system, INSTRUCTIONS, terms)
        yield from self._given([m for m in step.messages if m.role != "system"], terms, omitted)
        used = [request.name for request in step.reply.requests] if step.reply else []
        if step.tools:
            yield piece("tools", "the tools the model could call", _tools(step.tools, used), TOOLS, (*used, *terms))
        else:
            omitted.append("Which tools the model could call is not recorded.")
        if step.reply is not None:
            yield piece("output", "THE STEP TO JUDGE: what the model answered", text_of(step.reply.text), OUTPUT)
            for number, request in enumerate(step.reply.requests[:20], 1):
                call = text_of({"call": request.name, "arguments": request.arguments})
                yield piece(f"output-call-{number}", "THE STEP TO JUDGE: a tool call the model asked for", call, OUTPUT)
            if len(step.reply.requests) > 20:
                omitted.append(f"{len(step.reply.requests) - 20} further tool calls of this step are not shown.")

    def _given(self, messages: list[Message], terms: tuple[str, ...], omitted: list[str]) -> Iterator[Piece]:
        """The latest messages, and of the older ones those that speak of what the step uses."""
        chosen: set[int] = set()
        left = GIVEN
        for at in range(len(messages) - 1, max(-1, len(messages) - 1 - RECENT), -1):
            cost = min(len(self._text(messages[at])), ONE_MESSAGE)
            if cost > left:
                break
            left -= cost
            chosen.add(at)
        recent = min(chosen, default=len(messages))
        telling = [term for term in terms if any(char.isdigit() for char in term)]
        recalled = 0
        for at in range(recent - 1, max(-1, recent - 1 - LOOKED_BACK), -1):
            if recalled == RECALLED or left < 200 or not telling:
                break
            text = self._text(messages[at])
            if any(term in text for term in telling):
                chosen.add(at)
                recalled += 1
                left -= min(len(text), ONE_MESSAGE)
        task = text_of(self._trace.task)
        number = 0
        for at in sorted(chosen):
            message = messages[at]
            if message.role == "user" and not message.answers and text_of(message.text) == task:
                continue
            for title, text in self._said(message):
                number += 1
                yield piece(f"given-{number}", title, text, ONE_MESSAGE, terms)
        hidden = len(messages) - len(chosen)
        if hidden:
            omitted.append(f"{hidden} earlier messages that the model was given are not shown.")

    def _said(self, message: Message) -> Iterator[tuple[str, str]]:
        said = message_text(message)
        if said or not message.answers:
            yield _ROLES.get(message.role, "a message given to the model"), said
        for answer in message.answers:
            name = text_of({"tool": answer.name}) if answer.name else "{}"
            yield f"{_ROLES['tool']} (first line: which)", f"{name}\n{text_of(answer.content)}"

    def _text(self, message: Message) -> str:
        """Equal messages are one object within a trace, so each is rendered once."""
        text = self._texts.get(id(message))
        if text is None:
            answers = (text_of(answer.content) for answer in message.answers)
            text = self._texts[id(message)] = "\n".join((message_text(message), *answers))
        return text

    # --- any other step ------------------------------------------------------------------------------

    def _of_other(self, step: Step, own: str, terms: tuple[str, ...]) -> Iterator[Piece]:
        named = (("kind", step.kind), ("name", step.name), ("agent", step.agent), ("node", step.node))
        who = text_of({key: value for key, value in named if value is not None})
        yield piece("step", "what kind of step this is and what it is called", who, NEIGHBOUR)
        asker = self._steps.get(step.request_step or "")
        schema = next((tool for tool in asker.tools if tool.name == step.name), None) if asker else None
        if schema is not None:
            yield piece("declared", "how the tool was declared to the model", _tools((schema,), ()), NEIGHBOUR * 2)
        given = step.arguments if step.arguments is not None else step.input
        if given is not None:
            yield piece("input", "what the step was given", text_of(given), OUTPUT, terms)
        asked = text_of(given)
        yield piece("output", "THE STEP TO JUDGE: what it gave back", own, OUTPUT, terms_of((asked,)))

    # --- around it -----------------------------------------------------------------------------------

    def _neighbours(
        self, step: Step, shown: Iterable[Piece], terms: tuple[str, ...], omitted: list[str]
    ) -> list[Piece]:
        known = {"".join(p.parts) for p in shown}
        known |= {text.split("\n", 1)[-1] for text in known}
        pieces: list[Piece] = []
        before = (("before", "that this step builds on", self._around.before(step)),)
        after = (("after", "that came of this step", self._around.after(step)),)
        for side, tie, steps in before + after:
            number = 0
            for hops, other in steps:
                text = output_text(other) if other.content else ""
                if not text or text in known:
                    continue
                known.add(text)
                number += 1
                away = "directly" if hops == 1 else "two steps away"
                title = f"a step of kind {other.kind} {tie}, {away} (first line: its name and what it was given)"
                pieces.append(piece(f"{side}-{number}", title, f"{header(other)}\n{text}", NEIGHBOUR, terms))
        for count, words in zip(self._around.unseen(step), ("that this step builds on", "after it"), strict=True):
            if count:
                omitted.append(f"{count} further steps {words} are not shown.")
        return pieces


def _tools(tools: Iterable[ToolSchema], used: Iterable[str]) -> str:
    """A line of JSON for each tool; those that the step uses first."""
    wanted = set(used)
    ordered = sorted(tools, key=lambda tool: tool.name not in wanted)
    return "\n".join(
        text_of({"name": tool.name, "description": visible(tool.description)[:600], "parameters": tool.parameters})
        for tool in ordered
    )
