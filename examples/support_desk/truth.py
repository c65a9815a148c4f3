"""Draws the planted truth for a seed: what goes wrong in which trial, and at which step.

`python examples/support_desk/truth.py [SEED [TRIALS]]` prints JSON Lines, one a trial. It runs the desk itself, so it
needs the packages that the desk needs. Only tests read the file: an evaluation that saw it would know the answers.

A line: `case_id, trial, fault` (null: none took effect), `must_fail`, `steps` (how many llm and tool steps there are),
`root` (null, or where it began: `step` counts llm and tool steps from 1 in the order of time, `kind`, `name` of the
tool), `also` (steps that may be named as well, because the fault shows there first) and `recovered` (null, or the step
that failed and was made good).
"""

import json
import sqlite3
import sys
import tempfile
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "agent"))

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage  # noqa: E402
from support_desk.graph import build  # noqa: E402
from support_desk.scripted import ScriptedDesk  # noqa: E402


def truth(seed: int, trials: int) -> list[dict[str, Any]]:
    """The lines for every case, cases in the order of the file."""
    cases = [json.loads(line) for line in (HERE / "cases.jsonl").read_text().splitlines()]
    return [_line(seed, case["id"], case["input"], trial) for case in cases for trial in range(trials)]


def _line(seed: int, case_id: str, letter: str, trial: int) -> dict[str, Any]:
    desk = ScriptedDesk(seed=seed, case_id=case_id, trial=trial)
    messages = _run(desk, letter)
    steps = [(message, index) for index, message in enumerate(messages) if not isinstance(message, HumanMessage)]
    # The model sees the system prompt first, so its message n is the n-1st of the conversation.
    planted = None if desk.planted_at is None else desk.planted_at - 1
    at = next((number for number, (_, index) in enumerate(steps) if index == planted), None)
    fault = None if at is None else desk.fault
    must_fail = fault not in (None, "busy")
    root = None if at is None or not must_fail else _step(steps[at][0], at)
    also = []
    if fault == "false_success" and at is not None:  # the call that failed, and the request for it
        also = [_step(steps[at - 1][0], at - 1), _step(steps[at - 2][0], at - 2)]
    return {
        "case_id": case_id,
        "trial": trial,
        "fault": fault,
        "must_fail": must_fail,
        "steps": len(steps),
        "root": root,
        "also": also,
        "recovered": _step(steps[at + 1][0], at + 1) if at is not None and fault == "busy" else None,
    }


def _step(message: BaseMessage, at: int) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        return {"step": at + 1, "kind": "tool", "name": message.name}
    asked = message.tool_calls if isinstance(message, AIMessage) else []
    return {"step": at + 1, "kind": "llm", "name": asked[0]["name"] if asked else None}


def _run(desk: ScriptedDesk, letter: str) -> list[BaseMessage]:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("world").mkdir()
        with closing(sqlite3.connect("world/desk.db")) as connection:
            connection.executescript((HERE / "world" / "seed.sql").read_text())
        return list(build(desk).invoke({"messages": [HumanMessage(letter)]}, {"recursion_limit": 60})["messages"])


if __name__ == "__main__":
    seed, trials = (int(text) for text in (*sys.argv[1:3], *("7", "4")[len(sys.argv) - 1 :]))
    for line in truth(seed, trials):
        sys.stdout.write(json.dumps(line) + "\n")
