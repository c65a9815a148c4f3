"""Which tool span ran which call that a model asked for; calls without a span become virtual steps.

Rules, in order (confidence): call_id (1.0), name_args (0.9; 0.7 where arguments differ or are off),
handoff_name (0.9), agent_call (0.9), virtual (1.0). Each call is used once.
"""

import re
from bisect import bisect_right

from evalagent.model import ToolRequest
from evalagent.traces.drafts import Draft, Drafts, Request
from evalagent.traces.unwrapping import canonical

SLACK_NS = 1_000_000
PSEUDO_TOOLS = re.compile(
    r"(?i)^(final_?answer|final_?result|final_?output|structured_?output|output_?tool|finish|submit_?answer)"
)
"""Tools by which a framework lets the model end a run; nothing runs them."""
_TOOLS = ("tool", "handoff")
_TO = "transfer_to_"
"""OpenAI Agents names the target in the name of the call, which OpenLLMetry's span does not tell."""
_TRANSFER = re.compile(r"(?i)^(transfer|handoff|hand_off)")


class Shelf:
    """Unused calls in order of their model call's start; gives the latest before a moment, in near constant time."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._groups: list[list[Request]] = []
        self._heads: list[int] = []
        self._before: list[int] = []
        self._after: dict[int, int] = {}

    def put(self, start: int, request: Request) -> None:
        """Calls are put in order of start."""
        if self._groups and self._groups[-1][0].llm == request.llm:
            self._groups[-1].append(request)
            return
        self._before.append(len(self._groups))
        self._starts.append(start)
        self._groups.append([request])
        self._heads.append(0)

    def take(self, moment: int, otherwise_later: bool = False) -> Request | None:
        """The first unused call of the latest model call that had started by then."""
        at = self._live(bisect_right(self._starts, moment) - 1)
        if at < 0:  # only then: a tool may be done, and the next model call begun, within what clocks may be off
            upto = bisect_right(self._starts, moment + SLACK_NS)
            at = self._live(upto - 1)
            if at < 0 and otherwise_later:
                at = self._live_after(upto)
        return self._groups[at][self._heads[at]] if 0 <= at < len(self._groups) else None

    def _alive(self, at: int) -> bool:
        group = self._groups[at]
        head = self._heads[at]
        while head < len(group) and group[head].used:
            head += 1
        self._heads[at] = head
        return head < len(group)

    def _live_after(self, at: int) -> int:
        passed: list[int] = []
        while at < len(self._groups) and not self._alive(at):
            passed.append(at)
            at = self._after.get(at, at + 1)
        for seen in passed:
            self._after[seen] = at
        return at

    def _live(self, at: int) -> int:
        passed: list[int] = []
        while at >= 0 and not self._alive(at):
            passed.append(at)
            jump = self._before[at]
            at = jump - 1 if jump <= at else at - 1
        for seen in passed:
            self._before[seen] = at + 1
        return at


class Shelves:
    """Shelves by key. Most hold one call, which needs no shelf."""

    def __init__(self) -> None:
        self._single: dict[tuple[object, ...], tuple[int, Request]] = {}
        self._shelves: dict[tuple[object, ...], Shelf] = {}

    def put(self, key: tuple[object, ...], start: int, request: Request) -> None:
        shelf = self._shelves.get(key)
        if shelf is None:
            first = self._single.setdefault(key, (start, request))
            if first[1] is request:
                return
            shelf = self._shelves[key] = Shelf()
            shelf.put(*first)
        shelf.put(start, request)

    def take(self, key: tuple[object, ...], moment: int, otherwise_later: bool = False) -> Request | None:
        shelf = self._shelves.get(key)
        if shelf is not None:
            return shelf.take(moment, otherwise_later)
        start, request = self._single.get(key, (0, None))
        if request is None or request.used or (start > moment + SLACK_NS and not otherwise_later):
            return None
        return request


def request_of(llm: int, position: int, asked: ToolRequest) -> Request:
    """A call as it stands in a reply."""
    return Request(llm, position, asked.id, asked.name, asked.arguments, canonical(asked.arguments))


def match_requests(drafts: Drafts) -> None:
    """Join tool steps to calls, then calls to agents."""
    shelves = Shelves()
    for number, step in enumerate(drafts.steps):
        reply = step.observation.reply if step.kind == "llm" else None
        if reply is None or not reply.requests:
            continue
        step.requests = [request_of(number, at, asked) for at, asked in enumerate(reply.requests)]
        for request in step.requests:
            if request.id:
                shelves.put(("id", request.id, step.agent_at), step.start, request)
                shelves.put(("id", request.id), step.start, request)
    tools = [(n, s) for n, s in enumerate(drafts.steps) if s.kind in _TOOLS and s.request is None]
    for number, step in tools:
        identity = step.observation.call_id
        if identity:
            found = shelves.take(("id", identity, step.agent_at), step.start) or shelves.take(
                ("id", identity), step.start, True
            )
            if found is not None:
                _join(drafts, number, found, "call_id", 1.0)
    tools = [(number, step) for number, step in tools if step.request is None]
    if tools:
        shelves = _named(drafts)
        for number, step in tools:
            _by_arguments(drafts, shelves, number, step)
        for number, step in tools:
            if step.request is None:
                _by_name(drafts, shelves, number, step)
    _by_spelling(drafts, [(number, step) for number, step in tools if step.request is None])
    _agent_calls(drafts)


def _named(drafts: Drafts) -> Shelves:
    """The calls that are left, by name and arguments."""
    shelves = Shelves()
    for step in drafts.steps:
        agent = step.agent_at
        for request in step.requests:
            if request.used:
                continue
            for key in _keys(request.name, request.text):
                shelves.put((*key, agent), step.start, request)
                shelves.put(key, step.start, request)
            if _TRANSFER.match(request.name):
                shelves.put(("transfer", agent), step.start, request)
                shelves.put(("transfer",), step.start, request)
    return shelves


def _keys(name: str, text: str) -> tuple[tuple[object, ...], ...]:
    return (("args", name, text), ("name", name))


def _by_arguments(drafts: Drafts, shelves: Shelves, number: int, step: Draft) -> None:
    """Before any call is given away by its name alone."""
    given = step.observation.arguments
    if given is None:
        return
    text = canonical(given)
    keys: tuple[tuple[object, ...], ...] = (("args", step.name, text, step.agent_at), ("args", step.name, text))
    for key in keys:
        found = shelves.take(key, step.start)
        if found is not None:
            _join(drafts, number, found, "name_args", 0.9)
            return


def _by_name(drafts: Drafts, shelves: Shelves, number: int, step: Draft) -> None:
    keys: tuple[tuple[object, ...], ...] = (("name", step.name, step.agent_at), ("name", step.name))
    for key in keys:
        found = shelves.take(key, step.start)
        if found is not None:
            confidence = 0.9 if _same_single(found, step.observation.arguments) else 0.7
            _join(drafts, number, found, "name_args", confidence)
            return
    if step.kind == "handoff":
        for key in (("transfer", step.agent_at), ("transfer",)):
            found = shelves.take(key, step.start)
            if found is not None:
                _join(drafts, number, found, "handoff_name", 0.9)
                if step.observation.target is None and found.name.startswith(_TO):
                    step.observation.target = step.name = found.name.removeprefix(_TO)
                return


def _by_spelling(drafts: Drafts, tools: list[tuple[int, Draft]]) -> None:
    """CrewAI shows a model `delegate_work_to_coworker` for what it runs as `Delegate work to coworker`."""
    if not tools:
        return
    shelves = Shelves()
    for step in drafts.steps:
        for request in step.requests:
            if not request.used:
                for key in _keys(plain_name(request.name), request.text):
                    shelves.put(key, step.start, request)
    for number, step in tools:
        given, name = step.observation.arguments, plain_name(step.name)
        text = None if given is None else canonical(given)
        found = None if text is None else shelves.take(("args", name, text), step.start)
        same = found is not None
        found = found or shelves.take(("name", name), step.start)
        if found is not None:
            _join(drafts, number, found, "name_args", 0.9 if same else 0.7)


def _same_single(request: Request, given: object) -> bool:
    """LangChain's OpenInference spans hold the bare value of a single argument."""
    values = list(request.arguments.values()) if isinstance(request.arguments, dict) else []
    return len(values) == 1 and (values[0] == given or str(values[0]) == given)


def _join(drafts: Drafts, number: int, request: Request, rule: str, confidence: float) -> None:
    request.step = number
    drafts.steps[number].request = request
    drafts.steps[number].agent = drafts.steps[number].agent or drafts.steps[request.llm].agent
    ran = drafts.steps[number].observation
    if ran.arguments is None or (not isinstance(ran.arguments, dict) and _same_single(request, ran.arguments)):
        ran.arguments = request.arguments
    drafts.add(number, request.llm, rule, confidence)


def _agent_calls(drafts: Drafts) -> None:
    """A call by an agent's name, without a tool span: the agent's own span ran it."""
    named: dict[str, list[int]] = {}
    for at in drafts.forest.preorder:
        one = drafts.observations[at]
        if one.kind == "agent":
            named.setdefault(plain_name(one.name), []).append(at)
    if not named:
        return
    for starts in named.values():
        starts.sort(key=lambda at: drafts.forest.spans[at].start_ns)
    taken: set[int] = set()
    cursor: dict[str, int] = {}
    for step in drafts.steps:
        for request in step.requests:
            spans = named.get(plain_name(request.name)) if not request.used else None
            if not spans:
                continue
            at = cursor.get(plain_name(request.name), 0)
            while at < len(spans) and (
                spans[at] in taken
                or drafts.forest.spans[spans[at]].start_ns < step.start - SLACK_NS
                or drafts.forest.inside(step.at, spans[at])
            ):
                at += 1
            cursor[plain_name(request.name)] = at
            if at < len(spans):
                taken.add(spans[at])
                request.container = spans[at]


def plain_name(name: str) -> str:
    """A name without what frameworks change in it: case, blanks, dashes and underscores."""
    return re.sub(r"[\W_]+", "", name).lower()


def add_virtual_steps(drafts: Drafts) -> None:
    """A step for each call that nothing ran that is known."""
    made: list[Draft] = []
    known = {step.step_id for step in drafts.steps}
    for step in list(drafts.steps):
        for request in step.requests:
            if request.used:
                continue
            step_id = f"{step.step_id}#{request.id or request.position}"
            if step_id in known:
                step_id = f"{step_id}.{request.position}"
            known.add(step_id)
            made.append(_virtual_step(step, request, step_id))
    if not made:
        return
    old = drafts.steps
    merged = sorted(
        [*old, *made], key=lambda s: (s.start, drafts.forest.enter[s.at], s.virtual, _position(s), s.step_id)
    )
    places = {id(step): number for number, step in enumerate(merged)}
    moved = [places[id(step)] for step in old]
    for step in old:
        step.parents = {moved[parent]: said for parent, said in step.parents.items()}
        step.children = [moved[child] for child in step.children]
        for request in step.requests:
            request.llm = moved[request.llm]
            request.step = None if request.step is None else moved[request.step]
    drafts.by_span = {at: moved[number] for at, number in drafts.by_span.items()}
    drafts.steps = merged
    for step in made:
        number = places[id(step)]
        if step.request is not None:
            step.request.step = number
            drafts.add(number, step.request.llm, "virtual", 1.0)


def _position(step: Draft) -> int:
    return step.request.position if step.virtual and step.request is not None else -1


def _virtual_step(step: Draft, request: Request, step_id: str) -> Draft:
    kind = "handoff" if _TRANSFER.match(request.name) else "tool"
    return Draft(
        step.at, step_id, kind, request.name, step.observation, step.end, step.end, (), step.agent_at, step.agent,
        step.node, step.attempt, True, request,
    )  # fmt: skip
