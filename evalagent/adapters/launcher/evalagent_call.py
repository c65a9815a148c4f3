"""`python evalagent_call.py package.module:function`: the agent is a function of {"id", "input"} to its answer."""

import importlib
import json
import sys

if sys.path and sys.path[0] == __file__.rpartition("/")[0]:  # else this folder would be on the agent's path
    del sys.path[0]


def call(target: str) -> None:
    """Print what the function returns, text as it is, else as JSON; what it prints itself goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    module, _, name = target.partition(":")
    answer = getattr(importlib.import_module(module), name)(json.load(sys.stdin))
    if answer is not None:
        answers.write(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))
        answers.flush()


if __name__ == "__main__":
    call(sys.argv[1])
