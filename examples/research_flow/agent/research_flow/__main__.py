"""`python -m research_flow`: a question as JSON on standard input, the writer's conclusion on standard output."""

import json
import os
import sys

from research_flow.flow import research
from research_flow.model import ScriptedModel
from research_flow.telemetry import exporting

if __name__ == "__main__":
    task = json.load(sys.stdin)
    seed, trial = int(os.environ.get("RESEARCH_SEED", "7")), int(os.environ.get("EVALAGENT_TRIAL", "0"))
    question = task["input"] if isinstance(task["input"], str) else " ".join(task["input"])
    with exporting():
        answer = research(question, ScriptedModel(seed=seed, case_id=task["id"], trial=trial))
    sys.stdout.write(answer + "\n")
