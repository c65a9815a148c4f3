"""Which model is asked, how often, and when it is enough: a state machine without a clock or a wire.

cheap ─ sure ─────────────────────────────► verdict
  │ unsure, or twice no usable reply
  ▼
strong ─ usable reply ────────────────────► verdict
  │ twice no usable reply
  ▼
not_judged
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from evalagent.errors import JudgeRefused
from evalagent.judging.prompting import JudgeRequest, Manner, request
from evalagent.judging.questions import Question
from evalagent.judging.replies import Malformed, Reply, parse
from evalagent.judging.rubrics import Rubric
from evalagent.model import Verdict


@dataclass(frozen=True, slots=True)
class Ladder:
    """The models in the order they are asked, and how."""

    models: tuple[str, ...]
    """Cheap first; one model alone has the last word at once."""
    judge: str = "anthropic"
    """The judge's name, which verdicts carry before the model's."""
    manner: Manner = field(default_factory=Manner)
    band: float = 0.15
    """A score nearer to tau than this is unsure."""
    tries: int = 2
    """Asked so often before a model counts as giving no usable reply."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The next request, and what was learnt so far."""

    request: JudgeRequest
    rung: int = 0
    attempt: int = 1
    unusable: tuple[str, ...] = ()
    """What was wrong with each unusable reply."""
    held: Verdict | None = None
    """What an unsure model said."""


def start(question: Question, rubric: Rubric, ladder: Ladder, repeat: int = 0) -> Turn:
    """The first request about a question."""
    return Turn(request(question, rubric, ladder.models[0], repeat, manner=ladder.manner))


def advance(
    turn: Turn, reply: Reply | Malformed, question: Question, rubric: Rubric, ladder: Ladder, tau: float
) -> Turn | Verdict:
    """What follows from a reply: the next request, or the verdict."""
    read = reply if isinstance(reply, Malformed) else parse(turn.request, reply, question, tau, ladder.judge)
    last = turn.rung + 1 == len(ladder.models)
    if isinstance(read, Verdict):
        if last or not unsure(read, question, tau, ladder.band):
            return _with_history(read, turn)
        return _climb(replace(turn, held=read), question, rubric, ladder)
    turn = replace(turn, unusable=(*turn.unusable, f"{turn.request.model}: {read.reason}"))
    if read.cause != "refusal" and turn.attempt < ladder.tries:
        told = read.reason if read.cause in ("form", "quotes") else ""
        again = request(
            question,
            rubric,
            turn.request.model,
            turn.request.repeat % 1_000 + 1_000 * turn.attempt,
            manner=ladder.manner,
            unusable=told,
        )
        return replace(turn, request=again, attempt=turn.attempt + 1)
    if not last:
        return _climb(turn, question, rubric, ladder)
    return _nothing(turn, question, ladder)


def unsure(verdict: Verdict, question: Question, tau: float, band: float) -> bool:
    """Whether a stronger model should look: no score, one too near to tau, a fault of unknown origin, or a pass where a
    check warned."""
    if verdict.score is None or abs(verdict.score - tau) < band:
        return True
    if verdict.verdict == "fail":
        return verdict.own_fault == "unknown"
    return bool(question.warnings)


def judge(
    question: Question,
    rubric: Rubric,
    ladder: Ladder,
    tau: float,
    ask: Callable[[JudgeRequest], Reply],
    repeat: int = 0,
) -> Verdict:
    """The verdict on one question. What `ask` raises passes through, but a JudgeRefused counts as a refusal."""
    turn: Turn | Verdict = start(question, rubric, ladder, repeat)
    while isinstance(turn, Turn):
        reply: Reply | Malformed
        try:
            reply = ask(turn.request)
        except JudgeRefused as refused:
            reply = Malformed(str(refused), "refusal")
        turn = advance(turn, reply, question, rubric, ladder, tau)
    return turn


def _climb(turn: Turn, question: Question, rubric: Rubric, ladder: Ladder) -> Turn:
    rung = turn.rung + 1
    repeat = turn.request.repeat % 1_000
    first = request(question, rubric, ladder.models[rung], repeat, manner=ladder.manner)
    return replace(turn, request=first, rung=rung, attempt=1)


def _with_history(verdict: Verdict, turn: Turn) -> Verdict:
    if turn.held is None and not turn.unusable:
        return verdict
    evidence = dict(verdict.evidence or {})
    if turn.held is not None:
        evidence["first_view"] = _view(turn.held)
    if turn.unusable:
        evidence["unusable"] = list(turn.unusable)
    return replace(verdict, evidence=evidence)


NO_USABLE_REPLY = "no usable reply from a judge"


def _nothing(turn: Turn, question: Question, ladder: Ladder) -> Verdict:
    evidence: dict[str, object] = {"unusable": list(turn.unusable)}
    reason = f"{NO_USABLE_REPLY}: {turn.unusable[-1]}"
    if turn.held is not None:
        evidence["first_view"] = _view(turn.held)
        reason = f"{turn.held.judge} was not sure, and there was {reason}"
    return Verdict(
        question.trace_id,
        question.step_id,
        "step",
        "not_judged",
        None,
        "unknown",
        f"{ladder.judge}/{turn.request.model}",
        reason,
        question.aspect,
        turn.request.rubric,
        evidence=evidence,
    )


def _view(verdict: Verdict) -> dict[str, object]:
    return {
        "judge": verdict.judge,
        "score": verdict.score,
        "own_fault": verdict.own_fault,
        "category": verdict.category,
        "reason": verdict.reason,
    }
