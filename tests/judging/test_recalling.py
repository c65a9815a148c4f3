"""What an answer rests on is found again where the recording keeps with each model call only what was new."""

import time

from evalagent.judging.deciding import decide
from evalagent.judging.questions import Question
from evalagent.model import Message, Step, Trace
from tests.judging.small_runs import TRACE, step

ASKED = "Thanks. And the tracking number of the parcel that went back?"
PARCEL = {"parcel": "#P-77120", "state": "returned", "events": ["packed", "sent", "returned"] * 40, "tracking": "TR559"}


def long_talk(turns: int, answer: str = "Parcel #P-77120 never had a tracking number.") -> Trace:
    """A lookup at the beginning, small talk, and an answer at the end; each model call recorded with its news only."""
    steps = [step(1, "tool", "find_parcel", arguments={"parcel": "#P-77120"}, result=PARCEL)]
    steps += [_says(n, f"Small talk, part {n}.", f"Tell me more, {n}.") for n in range(2, turns)]
    steps.append(_says(turns, answer, ASKED))
    return Trace(TRACE, tuple(steps), task="Where are my parcels?")


def _says(number: int, text: str, heard: str) -> Step:
    messages = (Message("user", heard),)
    return step(
        number,
        "llm",
        "m",
        aspect="answer",
        parents=[(number - 1, "order")],
        messages=messages,
        reply=Message("assistant", text),
    )


def last_question(trace: Trace) -> Question:
    return decide(trace, (), 0.7).questions[-1]


def places(question: Question) -> dict[str, str]:
    return {piece.place: "".join(piece.parts) for piece in question.pieces}


def test_the_result_that_an_answer_speaks_of_is_shown_however_far_away_it_is() -> None:
    shown = places(last_question(long_talk(60)))
    assert "find_parcel" in shown["earlier-1"]
    assert '"tracking":"TR559"' in shown["earlier-1"]


def test_a_value_in_the_latest_message_finds_its_result_too() -> None:
    trace = long_talk(60, answer="There is none.")
    asks = Message("user", "What about #P-77120, has it a tracking number?")
    last = step(60, "llm", "m", aspect="answer", messages=(asks,), reply=Message("assistant", "There is none."))
    shown = places(last_question(Trace(TRACE, (*trace.steps[:-1], last), task=trace.task)))
    assert '"tracking":"TR559"' in shown["earlier-1"]


def test_what_the_model_was_given_is_not_shown_twice_and_what_came_later_not_at_all() -> None:
    trace = long_talk(5)
    later = step(6, "tool", "find_parcel", parents=[(5, "order")], arguments={}, result={**PARCEL, "state": "lost"})
    shown = places(
        next(q for q in decide(Trace(TRACE, (*trace.steps, later)), (), 0.7).questions if q.step_id[-1] == "5")
    )
    assert [place for place in shown if place.startswith("earlier")] == ["earlier-1"]
    assert '"state":"returned"' in shown["earlier-1"]
    near = places(last_question(long_talk(2)))
    assert sum("TR559" in text for text in near.values()) == 1


def test_finding_results_again_stays_linear_in_the_length_of_a_run() -> None:
    """Four times the steps must not take sixteen times as long."""

    def timed(turns: int) -> float:
        trace = long_talk(turns)
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            decide(trace, (), 0.7)
            best = min(best, time.process_time() - start)
        return best

    assert timed(2_400) < 9 * timed(600)
