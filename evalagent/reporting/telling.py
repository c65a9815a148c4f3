"""Sentences of other rooms as the report says them: steps by number, texts that were cut made whole, tracebacks folded.

Reasons and findings name a step by its id, which says nothing to who reads. Here it becomes `step 6`, the number that
the step has in the list of its run.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evalagent.model import Json, Step
from evalagent.reporting.wording import bounded, line, quotes
from evalagent.statistics.units import Unit

_WORD = re.compile(r"(\b[Ss]teps? )?([A-Za-z0-9][\w.:#/+=-]{0,199})")
_BARE = 8
"""A word of fewer characters, or without a digit, is taken for a step's id only after the word `step`."""
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):")
_FRAME = re.compile(r"""File ["'][^"'\n]*["'], line \d+(?:, in \S+)?""")
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Group)\b[^\n]*")
_CUT = "…"
_REST = 4_000
_SENTENCE = 300
"""Other rooms cut a quoted reason or error to so many characters."""


@dataclass(frozen=True, slots=True)
class Said:
    """A text and what of it is folded away."""

    text: str
    rest: str = ""
    """A traceback, whole as far as it is known; "" where there is none."""


@dataclass(slots=True)
class Telling:
    """The numbers of the steps: of each run, and of all where an id stands for one step alone."""

    of_run: dict[tuple[str, int | None], dict[str, int]] = field(default_factory=dict)
    of_all: dict[str, int] = field(default_factory=dict)

    def numbered(self, text: str, run: Unit | None = None) -> str:
        """The text with each id of a step (of this run) as `step N`."""
        numbers = self.of_run.get((run.case_id, run.trial), {}) if run else self.of_all
        return _WORD.sub(lambda found: _named(found, numbers), text) if numbers else text

    def say(self, text: str, limit: int, run: Unit | None = None, error: str | None = None) -> Said:
        """A text of several lines, bounded; `error` is the whole error of the step that it speaks of."""
        told = folded(text, error)
        return Said(bounded(self.numbered(told.text, run), limit), bounded(told.rest, _REST))

    def sentence(self, text: str, limit: int, run: Unit | None = None, error: str | None = None) -> str:
        """A text on one line, bounded, without the traceback in it."""
        return line(self.numbered(folded(text, error).text, run), limit)

    def evidence(self, content: Json, said: str, run: Unit) -> tuple[str, ...]:
        """The words in a piece of evidence; a single step that the sentence `said` names already is not named again."""
        numbers = self.of_run.get((run.case_id, run.trial), {})
        found = []
        if isinstance(content, Mapping):
            content = dict(content)
            for name, part in list(content.items()):
                ids = part if isinstance(part, list | tuple) else [part]
                steps = [numbers[one] for one in ids if isinstance(one, str) and one in numbers]
                if not steps or len(steps) < len(ids):
                    continue
                del content[name]
                if isinstance(part, str) and re.search(rf"\bstep {steps[0]}\b", said):
                    continue
                shown = [f"step {number}" for number in steps[:12]]
                more = f" and {len(steps) - 12} more" if len(steps) > 12 else ""
                found.append(f"{line(str(name), 60).replace('_', ' ')}: {', '.join(shown)}{more}")
        parts = [bounded(self.numbered(folded(part).text, run), _SENTENCE) for part in quotes(content, 20_000)]
        return (*parts, *found)


def telling(runs: Iterable[Unit]) -> Telling:
    """One pass over all steps."""
    made = Telling()
    twice: set[str] = set()
    for run in runs:
        mine = made.of_run.setdefault((run.case_id, run.trial), {})
        own: set[str] = set()
        keys = (step.step_id for trace in run.traces for step in trace.steps)
        for number, step_id in enumerate(keys, 1):
            if step_id in mine:
                own.add(step_id)
            if step_id in made.of_all:
                twice.add(step_id)
            mine[step_id] = made.of_all[step_id] = number
        for step_id in own:
            del mine[step_id]
    for step_id in twice:
        del made.of_all[step_id]
    return made


def _named(found: re.Match[str], numbers: Mapping[str, int]) -> str:
    before, word = found[1] or "", found[2]
    step_id = word
    while step_id and step_id not in numbers and step_id[-1] in ".:/-=+#":
        step_id = step_id[:-1]
    number = numbers.get(step_id)
    if number is None or not (before or (len(step_id) >= _BARE and any(map(str.isdigit, step_id)))):
        return found[0]
    return f"{before[:4] or 'step'} {number}{word[len(step_id) :]}"


def whole(text: str, *known: tuple[str | None, int]) -> str:
    """The text with each (full text, length) that stands in it cut to that length without a word put back in full."""
    for full, cut in known:
        if full and len(full) > cut and full[:cut] in text and full not in text:
            text = text.replace(full[:cut], full, 1)
    return text


def failed_as(step: Step | None) -> tuple[str | None, int]:
    """What a sentence about a failed step quotes of it."""
    return (step.error if step else None, _SENTENCE)


def folded(text: str, error: str | None = None) -> Said:
    """A text with a Python traceback: its exception stands in the sentence, the way to it apart.

    `error` is where the exception is looked for when the text was cut before it.
    """
    found = _TRACEBACK.search(text)
    if found is None:
        return Said(text)
    before, rest = text[: found.start()].rstrip(), text[found.start() :]
    frames = list(_FRAME.finditer(rest))
    body = rest[frames[-1].end() if frames else found.end() - found.start() :]
    cut = body.find(_CUT)
    raised = _raised(body if cut < 0 else body[:cut])
    after = "" if cut < 0 else body[cut if raised else cut + len(_CUT) :]
    if raised is None and error and _TRACEBACK.search(error) and error != text:
        whole_error = folded(error)
        rest = whole_error.rest
        raised = _raised(rest)
    said = before
    if raised is not None and _short(raised) not in before:
        said = f"{before} {raised}".strip() if before else raised
    elif raised is None and (not said or said.endswith(":")):
        said = f"{said} a traceback, cut before its exception".strip()
    return Said(said + after, rest)


def _raised(body: str) -> str | None:
    """The exception at the end of a traceback: what stands unindented after the last frame, else the last that is
    named like one."""
    lines = body.split("\n")
    for at in range(len(lines)):
        row = lines[at]
        if at and row.strip() and not row[0].isspace() and not _FRAME.search(row):
            last = [r for r in lines[at:] if r.strip()]
            return "\n".join(last)
    named = _RAISED.findall(body)
    return named[-1].strip() if named else None


def _short(raised: str) -> str:
    """The name of an exception without its module."""
    return re.split(r"[:(\s]", raised, maxsplit=1)[0].rpartition(".")[2]
