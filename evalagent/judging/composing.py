"""From a step to the question about it: what a judge is shown, and what is declared missing."""

from collections.abc import Iterable, Iterator, Mapping

from evalagent.judging.neighbours import Neighbourhood
from evalagent.judging.questions import Piece, Question
from evalagent.judging.recalling import Recall
from evalagent.judging.showing import (
    header,
    message_text,
    output_text,
    piece,
    telling_terms,
    terms_of,
    text_of,
    visible,
)
from evalagent.model import Message, Step, ToolSchema, Trace

TASK, INSTRUCTIONS, GIVEN, ONE_MESSAGE, TOOLS, OUTPUT, NEIGHBOUR = 4_000, 12_000, 20_000, 4_000, 6_000, 8_000, 1_500
EARLIER = 2_500
"""Characters at most: task and expectation, system prompt, all messages together, one message, all tools together,
the step's own output or arguments, a neighbour's output, an earlier result."""

PREAMBLE, RECENT, LOOKED_BACK, RECALLED = 8, 24, 200, 4
"""Messages: among how many of the first the instructions stand, how many of the latest are shown, how many older ones
are searched, how many of those are shown."""

RECALLED_STEPS = 5
"""Earlier steps that are shown because they speak of a value that the step uses."""

_UNREADABLE = {
    "human": "what a person says is not the agent's work",
    "embedding": "an embedding is a list of numbers, which no judge can read",
}
_RUBRICS = {"reranker": "retrieval", "memory": "other"}
_ROLES = {
    "user": "a message of the user, given to the model",
    "assistant": "an earlier message of the model itself",
    "tool": "a result of a tool, given to the model",
    "system": "a later message of the system, given to the model",
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
        self._around: Neighbourhood | None = None
        self._steps = {step.step_id: step for step in trace.steps}
        self._recall: Recall | None = None
        self._texts: dict[int, str] = {}
        self._declared: dict[tuple[object, ...], str] = {}
        self._task = text_of(trace.task)

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
        if self._task:
            pieces.append(piece("task", "what the user asked of the agent at first", self._task, TASK, terms))
        else:
            omitted.append("The user's task was not captured.")
        if self._behaviour:
            title = "what the author of this test case expects"
            pieces.append(piece("expected", title, text_of(self._behaviour), TASK, terms))
        if step.kind == "llm":
            pieces += self._of_model(step, terms, omitted)
        else:
            pieces += self._of_other(step, own, terms)
        known = {text for shown in pieces for text in _bodies("".join(shown.parts))}
        for message in step.messages[-RECENT:]:
            known |= {text_of(answer.content) for answer in message.answers}
        pieces += self._neighbours(step, known, terms, omitted)
        pieces += self._recalled(step, known, pieces, terms)
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
        first = [m for m in step.messages[:PREAMBLE] if m.role == "system"]
        if system := "\n\n".join(text_of(message.text) for message in first):
            yield piece("instructions", "the instructions the model was given", system, INSTRUCTIONS, terms)
        else:
            omitted.append("The instructions the model was given are not recorded.")
        yield from self._given(step.messages, terms, omitted)
        used = [request.name for request in step.reply.requests] if step.reply else []
        if step.tools:
            yield piece("tools", "the tools the model could call", self._tools(step, used), TOOLS, (*used, *terms))
        else:
            omitted.append("Which tools the model could call is not recorded.")
        if step.reply is not None:
            if step.reply.text or not step.reply.requests:
                yield piece("output", "THE STEP TO JUDGE: what the model answered", text_of(step.reply.text), OUTPUT)
            for number, request in enumerate(step.reply.requests[:20], 1):
                call = text_of({"call": request.name, "arguments": request.arguments})
                yield piece(f"output-call-{number}", "THE STEP TO JUDGE: a tool call the model asked for", call, OUTPUT)
            if len(step.reply.requests) > 20:
                omitted.append(f"{len(step.reply.requests) - 20} further tool calls of this step are not shown.")

    def _given(self, messages: tuple[Message, ...], terms: tuple[str, ...], omitted: list[str]) -> Iterator[Piece]:
        """The latest messages, and of the older ones those that speak of what the step uses. Never looks at more than
        a bounded number of them: all steps of a long conversation together would be quadratic."""

        def elsewhere(at: int) -> bool:
            """Shown as instructions or as the task."""
            message = messages[at]
            if message.role == "system":
                return at < PREAMBLE
            return message.role == "user" and not message.answers and message.text == self._trace.task

        chosen: list[int] = []
        left = GIVEN
        at = len(messages) - 1
        while at >= 0 and len(messages) - at <= RECENT:
            cost = min(len(self._text(messages[at])), ONE_MESSAGE)
            if cost > left:
                break
            left -= cost
            chosen.append(at)
            at -= 1
        telling = [term for term in terms if any(char.isdigit() for char in term)]
        oldest = max(-1, at - LOOKED_BACK)
        recalled = 0
        hidden = at + 1
        while at > oldest and telling and recalled < RECALLED and left > 200:
            text = self._text(messages[at])
            if any(term in text for term in telling):
                chosen.append(at)
                recalled += 1
                left -= min(len(text), ONE_MESSAGE)
            at -= 1
        hidden -= recalled + sum(elsewhere(early) for early in range(min(hidden, PREAMBLE)) if early not in chosen)
        number = 0
        names = {request.id: request.name for at in chosen for request in messages[at].requests if request.id}
        for at in reversed(chosen):
            if elsewhere(at):
                continue
            for title, text in self._said(messages[at], names):
                number += 1
                yield piece(f"given-{number}", title, text, ONE_MESSAGE, terms)
        if hidden > 0:
            omitted.append(f"{hidden} earlier messages that the model was given are not shown.")

    def _said(self, message: Message, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        said = message_text(message)
        if said or not message.answers:
            yield _ROLES.get(message.role, "a message given to the model"), said
        for answer in message.answers:
            name = answer.name or names.get(answer.id or "")
            if name:
                title, head = f"{_ROLES['tool']} (first line: which)", text_of({"tool": name}) + "\n"
            else:
                title, head = _ROLES["tool"], ""
            yield title, head + text_of(answer.content)

    def _text(self, message: Message) -> str:
        """Equal messages are one object within a trace, so each is rendered once."""
        text = self._texts.get(id(message))
        if text is None:
            answers = (text_of(answer.content) for answer in message.answers)
            text = self._texts[id(message)] = "\n".join((message_text(message), *answers))
        return text

    def _tools(self, step: Step, used: Iterable[str]) -> str:
        """A line of JSON for each tool; those that the step uses first."""
        key = (id(step.tools), *used)
        text = self._declared.get(key)
        if text is None:
            text = self._declared[key] = _declarations(step.tools, used)
        return text

    # --- any other step ------------------------------------------------------------------------------

    def _of_other(self, step: Step, own: str, terms: tuple[str, ...]) -> Iterator[Piece]:
        named = (("kind", step.kind), ("name", step.name), ("agent", step.agent), ("node", step.node))
        who = text_of({key: value for key, value in named if value is not None})
        yield piece("step", "what kind of step this is and what it is called", who, NEIGHBOUR)
        asker = self._steps.get(step.request_step or "")
        schema = next((tool for tool in asker.tools if tool.name == step.name), None) if asker else None
        if schema is not None:
            yield piece(
                "declared", "how the tool was declared to the model", _declarations((schema,), ()), NEIGHBOUR * 2
            )
        given = step.arguments if step.arguments is not None else step.input
        if given is not None:
            yield piece("input", "what the step was given", text_of(given), OUTPUT, terms)
        asked = text_of(given)
        yield piece("output", "THE STEP TO JUDGE: what it gave back", own, OUTPUT, terms_of((asked,)))

    # --- around it -----------------------------------------------------------------------------------

    def _neighbours(self, step: Step, known: set[str], terms: tuple[str, ...], omitted: list[str]) -> list[Piece]:
        around = self._around = self._around or Neighbourhood(self._trace)
        pieces: list[Piece] = []
        before = ("before", "that this step builds on", around.before(step))
        after = ("after", "that came of this step", around.after(step))
        for side, tie, steps in (before, after):
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
        for count, words in zip(around.unseen(step), ("that this step builds on", "after it"), strict=True):
            if count:
                omitted.append(f"{count} further steps {words} are not shown.")
        return pieces

    def _recalled(self, step: Step, known: set[str], shown: list[Piece], terms: tuple[str, ...]) -> Iterator[Piece]:
        """Earlier steps that speak of what this step uses, then of what it was last given."""
        if self._recall is None:
            self._recall = Recall(self._trace)
        last = max((p for p in shown if p.place.startswith("given-")), key=_number, default=None)
        wanted = dict.fromkeys(terms) | (telling_terms("".join(last.parts)) if last else {})
        number = 0
        for other in self._recall.earlier(step, wanted):
            text = output_text(other)
            if number == RECALLED_STEPS:
                break
            if text in known:
                continue
            known.add(text)
            number += 1
            title = (
                f"an earlier step of kind {other.kind} that speaks of a value used here (first line: name and input)"
            )
            yield piece(f"earlier-{number}", title, f"{header(other)}\n{text}", EARLIER, (*terms, *wanted))


def _number(shown: Piece) -> int:
    return int(shown.place.rpartition("-")[2])


def _bodies(text: str) -> tuple[str, str]:
    """A text whole, and without the line of JSON that may head it."""
    return text, text.partition("\n")[2] or text


def _declarations(tools: Iterable[ToolSchema], used: Iterable[str]) -> str:
    wanted = set(used)
    ordered = sorted(tools, key=lambda tool: tool.name not in wanted)
    return "\n".join(
        text_of({"name": tool.name, "description": visible(tool.description)[:600], "parameters": tool.parameters})
        for tool in ordered
    )
