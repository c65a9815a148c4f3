"""`python evalagent_call.py package.module:function`: the agent is a function of {"id", "input"} that returns its answer."""

import importlib
import json
import os
import sys

if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
    del sys.path[0]


def call(target: str) -> None:
    """Print what the function returns, text as it is and anything else as JSON; what it prints itself goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    module, _, name = target.partition(":")
    answer = getattr(importlib.import_module(module), name)(json.load(sys.stdin))
    if answer is not None:
        answers.write(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))
        answers.flush()


if __name__ == "__main__":
    call(sys.argv[1])
