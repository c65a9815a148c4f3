"""A scripted model that answers from the messages it is given; in one trial in four a researcher misreads a figure."""

import json
import random
import re
import time
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
"""{"role", "parts"} as in the GenAI semantic conventions."""


@dataclass(frozen=True)
class Reply:
    message: Message
    input_tokens: int
    output_tokens: int

    @property
    def text(self) -> str:
        return "".join(part["content"] for part in self.message["parts"] if part["type"] == "text")

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [part for part in self.message["parts"] if part["type"] == "tool_call"]


@dataclass(frozen=True)
class ScriptedModel:
    """`fault` is `misread_figure` or None, drawn from (seed, case, trial)."""

    seed: int
    case_id: str
    trial: int
    name: str = field(default="scripted-research-1", init=False)
    latency_s: float = 0.02
    """A model takes a while; without it the two researchers would not overlap."""

    @property
    def fault(self) -> str | None:
        dice = random.Random(f"{self.seed}/{self.case_id}/{self.trial}")
        return "misread_figure" if dice.random() < 0.25 else None

    def chat(self, name: str, messages: list[Message]) -> Reply:
        """The next message of the agent of this name."""
        time.sleep(self.latency_s)
        speak = {"planner": self._plan, "writer": self._write}
        parts = (
            speak[name](messages)
            if name in speak
            else self._research(messages, bool(self.fault) and name == "researcher_2")
        )
        message: Message = {"role": "assistant", "parts": parts}
        return Reply(message, _tokens(messages), _tokens([message]))

    def _plan(self, messages: list[Message]) -> list[dict[str, Any]]:
        found = re.search(r"the (\w+) of the (.+?) and the (.+?)\.?$", _said(messages))
        if found is None:
            return [_text(json.dumps({"questions": [_said(messages)]}))]
        measure, *things = found.groups()
        return [_text(json.dumps({"questions": [f"What is the {measure} of the {thing}?" for thing in things]}))]

    def _research(self, messages: list[Message], misreads: bool) -> list[dict[str, Any]]:
        measure, thing = re.search(r"the (\w+) of the (.+)\?", _said(messages)).groups()  # type: ignore[union-attr]
        notes = _result(messages)
        if notes is None:
            return [_call("search_notes", {"words": f"{thing} {measure}"}, messages)]
        figure = re.search(rf"{measure} (\d+)( \w+)", notes[0]["text"]) if notes else None
        if figure is None:
            return [_text(f"The notes do not say what the {measure} of the {thing} is.")]
        value = int(figure[1])
        if misreads:
            value += 300
        return [_text(f"The {measure} of the {thing} is {value}{figure[2]} (note {notes[0]['id']}).")]

    def _write(self, messages: list[Message]) -> list[dict[str, Any]]:
        findings = re.findall(r"The (\w+) of the (.+?) is (\d+)( \w+) \(note", _said(messages))
        if _result(messages) is None:
            return [_call("save_report", {"name": "report.md", "text": f"# Findings\n\n{_said(messages)}\n"}, messages)]
        if len(findings) < 2:
            return [_text("The notes do not suffice for a comparison; the report says what is missing.")]
        (measure, one, a, unit), (_, two, b, _) = findings[:2]
        first, more = (one if int(a) > int(b) else two), {"age": "older", "length": "longer"}.get(measure, "higher")
        return [_text(f"The {first} is {more}: {one} {a}{unit}, {two} {b}{unit}. The report is saved.")]


def _text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def _call(name: str, arguments: dict[str, Any], messages: list[Message]) -> dict[str, Any]:
    digits = random.Random(json.dumps([name, messages])).getrandbits(40)
    return {"type": "tool_call", "id": f"call_{digits:010x}", "name": name, "arguments": arguments}


def _said(messages: list[Message]) -> str:
    users = [message for message in messages if message["role"] == "user"]
    return "\n".join(part["content"] for message in users for part in message["parts"])


def _result(messages: list[Message]) -> Any:
    parts = [part for message in messages if message["role"] == "tool" for part in message["parts"]]
    return parts[-1]["response"] if parts else None


def _tokens(messages: list[Message]) -> int:
    return sum(4 + len(json.dumps(message["parts"])) // 4 for message in messages)
