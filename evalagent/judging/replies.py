"""Reading a judge's reply. What is not exactly a verdict never becomes a score."""

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from evalagent.judging.prompting import NO_CATEGORY, TOOL, JudgeRequest
from evalagent.judging.questions import Question
from evalagent.judging.showing import visible
from evalagent.model import Json, Verdict
from evalagent.taxonomy import LEAVES

LONGEST = 100_000
"""Characters of a reply that are read; a longer one is no verdict."""

SHORTEST_QUOTE = 3


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the endpoint counted them. Cache tokens are apart from `input`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered: its content blocks in order, as the protocol names them."""

    blocks: tuple[Mapping[str, Json], ...]
    stop_reason: str | None
    model: str = ""
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Malformed:
    """A reply that is no verdict. `reason` is in our words, and may be told to the judge."""

    reason: str
    cause: Literal["form", "quotes", "cut", "refusal"] = "form"


class _Unfit(Exception):
    """Carries a Malformed out of the reading of a field."""

    def __init__(self, reason: str, cause: Literal["form", "quotes", "cut", "refusal"] = "form") -> None:
        super().__init__(reason)
        self.malformed = Malformed(reason, cause)


def parse(
    request: JudgeRequest, reply: Reply, question: Question, tau: float, judge: str = "model"
) -> Verdict | Malformed:
    """The verdict in a reply, or why there is none.

    A score counts only with every field in form and at least one quote that stands literally in what was shown
    (whitespace, escapes and typographic quotation marks aside). `tau` parts pass from fail.
    """
    try:
        return _verdict(request, _object(reply), question, tau, judge)
    except _Unfit as unfit:
        return unfit.malformed


def _object(reply: Reply) -> Mapping[str, Json]:
    """The one object that the reply consists of."""
    if reply.stop_reason == "refusal":
        raise _Unfit("the model refused to answer", "refusal")
    if reply.stop_reason in ("max_tokens", "model_context_window_exceeded"):
        raise _Unfit("it was cut off before its end", "cut")
    if reply.stop_reason not in ("end_turn", "tool_use", "stop_sequence"):
        raise _Unfit("it did not come to its end", "cut")
    calls = [block for block in reply.blocks if block.get("type") == "tool_use"]
    if len(calls) > 1:
        raise _Unfit("it held several verdicts")
    if calls:
        given = calls[0].get("input")
        if calls[0].get("name") != TOOL or not isinstance(given, Mapping):
            raise _Unfit(f"it called something else than `{TOOL}`")
        return given
    text = "".join(str(block.get("text", "")) for block in reply.blocks if block.get("type") == "text").strip()
    if not text:
        raise _Unfit("it was empty")
    if len(text) > LONGEST:
        raise _Unfit("it was far too long")
    fenced = re.fullmatch(r"```(?:json)?\s*\n(.*?)\n?```", text, re.DOTALL)
    try:
        value = json.loads(fenced[1] if fenced else text, object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise _Unfit("it was not one JSON object") from None
    if not isinstance(value, dict):
        raise _Unfit("it was not one JSON object")
    return value


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _verdict(request: JudgeRequest, said: Mapping[str, Json], question: Question, tau: float, judge: str) -> Verdict:
    reason = said.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise _Unfit("`reason` has to be a text")
    reason = visible(reason.strip())[:2_000]
    can_tell = _one_of(said, "can_tell", ("yes", "no"))
    named = f"{judge}/{request.model}"
    if can_tell == "no":
        return Verdict(
            question.trace_id,
            question.step_id,
            "step",
            "not_judged",
            None,
            "unknown",
            named,
            f"the judge could not tell from what it was shown: {reason}",
            question.aspect,
            request.rubric,
        )
    score = said.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score) or not 0 <= score <= 1:
        raise _Unfit("`score` has to be a number from 0 to 1")
    own_fault = _one_of(said, "own_fault", ("yes", "no", "unknown"))
    category = _one_of(said, "category", (*LEAVES, NO_CATEGORY))
    passed = score >= tau
    if not passed and category == NO_CATEGORY:
        raise _Unfit("a step that is wrong needs a `category` other than none")
    quotes = said.get("quotes")
    if not isinstance(quotes, list):
        raise _Unfit("`quotes` has to be a list")
    found = _found(quotes, question)
    if not found:
        raise _Unfit("none of its quotes stands literally in the data", "quotes")
    evidence: dict[str, Json] = {"quotes": found}
    if len(found) < len(quotes):
        evidence["quotes_not_found"] = len(quotes) - len(found)
    return Verdict(
        trace_id=question.trace_id,
        step_id=question.step_id,
        metric="step",
        verdict="pass" if passed else "fail",
        score=float(score),
        own_fault="no" if passed else own_fault,  # type: ignore[arg-type]
        judge=named,
        reason=reason,
        aspect=question.aspect,
        rubric=request.rubric,
        category=None if passed else category,
        evidence=evidence,
    )


def _one_of(said: Mapping[str, Json], key: str, allowed: tuple[str, ...]) -> str:
    value = said.get(key)
    if not isinstance(value, str) or value not in allowed:
        shown = ", ".join(allowed) if len(allowed) < 5 else "an id from the table"
        raise _Unfit(f"`{key}` has to be {shown}")
    return value


# --- quotes --------------------------------------------------------------------------------------

_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([nrt"/\\]))')
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_TYPOGRAPHIC = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "‚": "'"})


def _found(quotes: list[Json], question: Question) -> list[dict[str, str]]:
    """The quotes that stand in a text that was shown, each with the place where it really stands."""
    places: dict[str, list[str]] = {}
    for piece in question.pieces:
        for part in piece.parts:
            places.setdefault(piece.place, []).extend(_forms(part))
    found = []
    for quote in quotes[:20]:
        text = quote.get("text") if isinstance(quote, Mapping) else None
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
            continue
        forms = _forms(text)
        wanted = str(quote.get("where"))
        for place in sorted(places, key=lambda name: name != wanted):
            if any(_stands(form, shown) for form in forms for shown in places[place]):
                found.append({"text": visible(text.strip())[:1_000], "where": place})
                break
    return found


def _stands(quote: str, shown: str) -> bool:
    return quote == shown or (len(quote) >= SHORTEST_QUOTE and quote in shown)


def _forms(text: str) -> list[str]:
    """A text as it is and with its JSON escapes undone, both with even whitespace and plain quotation marks."""
    plain = _even(text)
    unescaped = _even(_ESCAPE.sub(lambda hit: chr(int(hit[1], 16)) if hit[1] else _ESCAPED.get(hit[2], hit[2]), text))
    return [plain] if unescaped == plain else [plain, unescaped]


def _even(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).translate(_TYPOGRAPHIC).split())


# --- as JSON, for a cache ------------------------------------------------------------------------


def to_json(reply: Reply) -> dict[str, Json]:
    """A reply as JSON; `from_json` reads it back."""
    used = reply.usage
    return {
        "blocks": [dict(block) for block in reply.blocks],
        "stop_reason": reply.stop_reason,
        "model": reply.model,
        "usage": [used.input, used.output, used.cache_read, used.cache_write],
    }


def from_json(value: Json) -> Reply | None:
    """A reply from JSON; None if it is not one."""
    if not isinstance(value, Mapping) or not isinstance(value.get("blocks"), list):
        return None
    blocks, usage, stop = value["blocks"], value.get("usage"), value.get("stop_reason")
    if not all(isinstance(block, Mapping) for block in blocks) or not isinstance(stop, str | None):
        return None
    if not isinstance(usage, list) or len(usage) != 4 or not all(type(count) is int for count in usage):
        return None
    return Reply(tuple(blocks), stop, str(value.get("model", "")), Usage(*usage))
