"""Edges that the messages show: who made what a model call was given.

Only what is new since the history that a call continues is looked at, so a run of n turns costs n and not n squared.
Rules (confidence): result_id (1.0), result_position (0.95), history (0.9), result_text (0.8), text (0.7), retry (0.6).
"""

from bisect import bisect_right
from collections import deque

from evalagent.model import Message, ToolAnswer
from evalagent.traces.drafts import Draft, Drafts, Request
from evalagent.traces.producers import CANDIDATES, Producers, Sighting
from evalagent.traces.unwrapping import canonical, collapsed, plain, result

_SHORT = 4
"""So few messages without the reply to them may come again by chance (`yes`): they are read anew."""
_CARRIED = 256
"""At most so many calls that nobody answered are carried on to the next turn."""


class Histories:
    """Reads the model calls of one trace in order of start."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts
        self._heads: dict[tuple[int, int], list[int]] = {}
        self._by_id: dict[str, list[Request]] = {}
        self._by_call: dict[tuple[str, str], list[Request]] = {}
        self._by_text: dict[str, list[tuple[int, int]]] = {}
        self._results: dict[str, list[tuple[int, int]]] = {}
        self._producers = Producers()
        self._tools_by_id = {
            step.observation.call_id: number
            for number, step in enumerate(drafts.steps)
            if step.kind in ("tool", "handoff") and not step.virtual and step.observation.call_id
        }
        self._first_seen: dict[int, int] = {}
        self._sightings: dict[int, Sighting] = {}
        self._open: dict[int, tuple[Request | None, ...]] = {}
        self.unknown: list[tuple[int, Message]] = []
        """Model calls and replies in their history that no step of this trace made."""
        self.unmatched: list[tuple[int, ToolAnswer]] = []
        """Model calls and results in their input whose tool is not in this trace."""
        self.far_answers: list[tuple[int, Request]] = []
        """Model calls that read the result of a tool in another trace."""
        self.waiting: dict[int, list[tuple[int, str, float]]] = {}
        """Span place -> calls that read what the steps inside it come to."""
        self._index()

    def _index(self) -> None:
        for number, step in enumerate(self._drafts.steps):
            one = step.observation
            if step.virtual:
                continue
            if step.kind == "llm":
                for request in step.requests:
                    if request.id:
                        self._by_id.setdefault(request.id, []).append(request)
                    self._by_call.setdefault((request.name, request.text), []).append(request)
                if one.reply is not None and one.reply.text:
                    text = collapsed(one.reply.text)
                    self._by_text.setdefault(text, []).append((step.start, number))
                    self._producers.put(text, step.start, step.end, number)
            elif one.result is not None or one.texts or one.answer:
                result = plain(one.result) if one.result is not None else None
                outputs = one.texts or ((one.answer or "") if result is None else result,)
                for output in outputs:
                    if output:
                        self._producers.put(output, step.start, step.end, number)
                if result is not None:
                    self._results.setdefault(result, []).append((step.end, number))
            elif one.error and step.kind in ("tool", "handoff"):
                for said in dict.fromkeys((one.error, one.error.partition("Error: ")[2])):
                    if said:
                        self._producers.put(collapsed(said), step.start, step.end, number)

    def read(self) -> None:
        """Add every edge that messages show."""
        for number, step in enumerate(self._drafts.steps):
            if step.kind == "llm" and not step.virtual:
                self._one(number, step)
        self._forget()

    def _forget(self) -> None:
        """What was only needed to read by."""
        self._heads, self._by_id, self._by_call, self._by_text, self._results = {}, {}, {}, {}, {}
        self._tools_by_id, self._first_seen, self._sightings, self._open = {}, {}, {}, {}
        self._producers = Producers()

    def _one(self, number: int, step: Draft) -> None:
        lead = step.observation.messages[: len(step.observation.messages) - len(step.core)]
        earlier, size = self._continued(number, step)
        fresh = step.core[size:]
        opened: deque[Request | None] = deque()
        if earlier is not None:
            before = self._drafts.steps[earlier]
            opened.extend(self._open.get(earlier, ()))
            if fresh and self._is_reply(before, fresh[0]):
                self._edge(number, earlier, "history", 0.9)
                opened += before.requests
                fresh = fresh[1:]
            else:
                if not fresh and before.observation.error and before.end <= step.start:
                    self._edge(number, earlier, "retry", 0.6)
                if size <= _SHORT:
                    fresh, opened, size = step.core, deque(), 0
                else:
                    for parent, (rule, confidence) in before.parents.items():
                        self._edge(number, parent, rule, confidence)
        step.fresh = (*(m for m in lead if id(m) not in self._first_seen), *step.core[size:])
        for message in lead:
            self._text(number, step, message)
        for message in fresh:
            opened = self._message(number, step, message, opened)
        if opened:
            self._open[number] = tuple(opened)[-_CARRIED:]
        if step.core:
            self._heads.setdefault((len(step.core), id(step.core[-1])), []).append(number)

    def _continued(self, number: int, step: Draft) -> tuple[int | None, int]:
        core = step.core
        for size in range(len(core), 0, -1):
            known = self._heads.get((size, id(core[size - 1])))
            if not known:
                continue
            prefix = core[:size]
            matching = [k for k in known[-CANDIDATES:] if self._drafts.steps[k].core == prefix]
            if matching:
                following = core[size] if size < len(core) else None
                replied = [
                    k for k in matching if following is not None and self._is_reply(self._drafts.steps[k], following)
                ]
                return (replied or matching)[-1], size
        return None, 0

    @staticmethod
    def _is_reply(step: Draft, message: Message) -> bool:
        reply = step.observation.reply
        if reply is None or message.role != "assistant":
            return False
        if reply is message:
            return True
        if len(reply.requests) != len(message.requests):
            return False
        if reply.requests:
            return all(
                (a.id is not None and a.id == b.id)
                or (a.name == b.name and canonical(a.arguments) == canonical(b.arguments))
                for a, b in zip(reply.requests, message.requests, strict=True)
            )
        return bool(reply.text) and collapsed(reply.text) == collapsed(message.text)

    def _edge(self, number: int, parent: int, rule: str, confidence: float) -> None:
        self._drafts.add(number, parent, rule, confidence)

    def _message(
        self, number: int, step: Draft, message: Message, opened: deque[Request | None]
    ) -> deque[Request | None]:
        if message.role == "assistant":
            return opened + self._assistant(number, step, message)
        for answer in message.answers:
            opened = self._answer(number, step, answer, opened)
        self._text(number, step, message)
        return opened

    def _assistant(self, number: int, step: Draft, message: Message) -> deque[Request | None]:
        found: deque[Request | None] = deque()
        for asked in message.requests:
            known = self._latest(self._by_id.get(asked.id or ""), step, number, asked.name)
            if known is None:
                known = self._latest(
                    self._by_call.get((asked.name, canonical(asked.arguments))), step, number, asked.name
                )
            found.append(known)
            if known is not None:
                self._edge(number, known.llm, "history", 0.9)
        if not message.requests and message.text:
            makers = self._by_text.get(collapsed(message.text), ())
            at = bisect_right(makers, (step.start, -1)) - 1 if makers else -1
            while at >= 0 and (makers[at][1] == number or self._drafts.steps[makers[at][1]].end > step.start):
                at -= 1
            if at >= 0:
                self._edge(number, makers[at][1], "history", 0.9)
            else:
                self.unknown.append((number, message))
        elif found and all(request is None for request in found):
            self.unknown.append((number, message))
        return found

    def _latest(self, known: list[Request] | None, step: Draft, number: int, name: str) -> Request | None:
        if not known:
            return None
        best: Request | None = None
        for request in reversed(known[-CANDIDATES * 4 :]):
            if request.llm == number or request.name != name:
                continue
            if self._drafts.steps[request.llm].start <= step.start:
                return request
            best = best or request
        return best

    def _answer(
        self, number: int, step: Draft, answer: ToolAnswer, opened: deque[Request | None]
    ) -> deque[Request | None]:
        at = self._open_at(answer, opened) if answer.id else None
        request = opened[at] if at is not None else None
        rule, confidence = "result_id", 1.0
        if request is None and answer.id:
            known = self._by_id.get(answer.id)
            request = self._known(known, step, number)
        if request is None and answer.id:
            tool = self._tool_by_id(answer.id)
            if tool is not None:
                self._read(number, tool, answer, "result_id", 1.0)
                return opened
        told = self._told(number, step, answer) if answer.id is None else False
        if request is None and opened:
            rule, confidence = "result_position", 0.95
            at = next(
                (i for i, r in enumerate(opened) if r is None or answer.name is None or r.name == answer.name), None
            )
            request = opened[at] if at is not None else None
        if at is not None:
            del opened[at]
        if request is not None:
            self._answered(number, request, answer, rule, confidence)
            if opened and answer.id:
                self._told_together(number, request, answer, opened)
        elif not told:
            self._by_result(number, step, answer)
        return opened

    def _told_together(self, number: int, request: Request, answer: ToolAnswer, opened: deque[Request | None]) -> None:
        """One answer may tell what several calls came to, under the id of one (Strands' results as OpenInference's
        processor writes them)."""
        if not isinstance(answer.content, str):
            return
        steps = self._drafts.steps
        own = plain(steps[request.step].observation.result) if request.step is not None else ""
        whole = collapsed(answer.content)
        if not own or own == whole or own not in whole:
            return
        for other in list(opened)[:CANDIDATES]:
            if other is not None and other.step is not None and not steps[other.step].virtual:
                text = plain(steps[other.step].observation.result)
                if text and text in whole:
                    opened.remove(other)
                    self._answered(number, other, answer, "result_text", 0.8)

    def _told(self, number: int, step: Draft, answer: ToolAnswer) -> bool:
        """One answer without an id may tell the results of several calls."""
        if not isinstance(answer.content, str):
            return False
        found = False
        for text in self._producers.inside(answer.content):
            for maker in self._producers.makers(text, step.start):
                tool = self._drafts.steps[maker]
                if maker != number and tool.kind in ("tool", "handoff"):
                    self._edge(number, maker, "result_text", 0.8)
                    tool.read_by(number)
                    if tool.reader is None:
                        tool.reader = number
                    found = True
        return found

    @staticmethod
    def _open_at(answer: ToolAnswer, opened: deque[Request | None]) -> int | None:
        """Answers mostly come in the order of their calls, so the search is short."""
        return next((i for i, r in enumerate(opened) if r is not None and r.id == answer.id), None)

    def _known(self, known: list[Request] | None, step: Draft, number: int) -> Request | None:
        for request in reversed((known or [])[-CANDIDATES * 4 :]):
            if request.llm != number and self._drafts.steps[request.llm].start <= step.start:
                return request
        return known[-1] if known and known[-1].llm != number else None

    def _tool_by_id(self, identity: str) -> int | None:
        return self._tools_by_id.get(identity)

    def _answered(self, number: int, request: Request, answer: ToolAnswer, rule: str, confidence: float) -> None:
        if request.answered is None:
            request.answered = number
            request.answer = answer.content
        if request.step is not None:
            self._read(number, request.step, answer, rule, confidence)
        elif request.container is not None:
            self.waiting.setdefault(request.container, []).append((number, "agent_result", 0.9))
        elif request.foreign is not None:
            self.far_answers.append((number, request))

    def _read(self, number: int, tool: int, answer: ToolAnswer, rule: str, confidence: float) -> None:
        """A model call goes on from a tool's result, and from what the steps inside the tool came to."""
        step = self._drafts.steps[tool]
        self._edge(number, tool, rule, confidence)
        step.read_by(number)
        if step.reader is None:
            step.reader = number
        self._returned(tool, answer)
        if not step.virtual and self._drafts.forest.leave[step.at] > self._drafts.forest.enter[step.at]:
            self.waiting.setdefault(step.at, []).append((number, "agent_result", 0.9))

    def _returned(self, number: int, answer: ToolAnswer) -> None:
        """What a tool gave back, where only the history tells."""
        step = self._drafts.steps[number]
        if step.virtual and step.answer is None:
            step.answer = answer.content
        elif not step.virtual and step.observation.result is None:
            step.observation.result = answer.content
        else:
            return
        text = plain(answer.content)
        if text:
            self._producers.put(text, step.start, step.end, number)

    def _by_result(self, number: int, step: Draft, answer: ToolAnswer) -> None:
        known = self._results.get(plain(answer.content)) or self._results.get(plain(result(answer.content).value), [])
        same = [
            tool
            for end, tool in known[-CANDIDATES:]
            if end <= step.start and tool != number and answer.name in (None, self._drafts.steps[tool].name)
        ]
        if same:
            unread = [tool for tool in same if not self._drafts.steps[tool].answered_in]
            tool = (unread or same)[-1]
            self._edge(number, tool, "result_text", 0.8)
            self._drafts.steps[tool].read_by(number)
            return
        if answer.id:
            self.unmatched.append((number, answer))

    def _text(self, number: int, step: Draft, message: Message) -> None:
        """Outputs that stand in a text. What stood there before anybody made it (a fixed prompt) was not made."""
        seen = self._first_seen.setdefault(id(message), step.start)
        if not message.text or message.role == "assistant":
            return
        sighting = self._sightings[id(message)] = self._producers.again(message.text, self._sightings.get(id(message)))
        for text in sighting.found:
            if not self._producers.makers(text, seen):
                continue
            for maker in self._producers.makers(text, step.start):
                if maker != number:
                    self._edge(number, maker, "text", 0.7)
                    if self._drafts.steps[maker].kind in ("tool", "handoff"):
                        self._drafts.steps[maker].read_by(number)
