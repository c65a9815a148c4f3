"""`python -m support_desk`: one letter as JSON on standard input, the answer as text on standard output."""

import json
import sys

from langchain_core.messages import AnyMessage, HumanMessage

from support_desk.graph import build
from support_desk.model import choose


def answer(task: dict[str, object]) -> str:
    """The desk's last word; a list of texts is a conversation of several turns."""
    turns = task["input"] if isinstance(task["input"], list) else [task["input"]]
    desk = build(choose(str(task["id"])))
    messages: list[AnyMessage] = []
    for turn in turns:
        messages = desk.invoke({"messages": [*messages, HumanMessage(str(turn))]}, {"recursion_limit": 60})["messages"]
    return messages[-1].text


if __name__ == "__main__":
    sys.stdout.write(answer(json.load(sys.stdin)) + "\n")
