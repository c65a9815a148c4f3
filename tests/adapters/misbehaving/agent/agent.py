"""An agent that does what its task says, mostly badly. Its one good turn leaves an llm span."""

import json
import os
import sqlite3
import sys
import time

from opentelemetry import trace

task = json.load(sys.stdin)
turn = task["input"]
tracer = trace.get_tracer("agent")


def answer(text: str) -> None:
    messages = [{"role": "user", "parts": [{"type": "text", "content": turn}]}]
    reply = [{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}]
    with tracer.start_as_current_span("chat m") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.input.messages", json.dumps(messages))
        span.set_attribute("gen_ai.output.messages", json.dumps(reply))
        span.set_attribute("gen_ai.usage.input_tokens", 3)
        span.set_attribute("gen_ai.usage.output_tokens", 2)


if turn == "crash":
    answer("soon")
    print("about to fail", file=sys.stderr)
    sys.exit(1)
if turn == "hang":
    answer("soon")
    time.sleep(600)
if turn == "binary":
    answer("done")
    sys.stdout.buffer.write(bytes(range(256)) * 100)
    sys.exit(0)
if turn == "silent":
    os._exit(0)
if turn == "wreck":
    answer("done")
    with open("world/app.db", "wb") as file:
        file.write(b"no database any more" * 100)
    print("done")
    sys.exit(0)
if turn == "peek":
    answer(json.dumps(sorted(task)) + " " + json.dumps(sorted(os.listdir("."))))
    print("peeked")
    sys.exit(0)
if turn == "leak":
    answer("my key is sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa and ACME-12345678")
    print("leaked sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
    sys.exit(0)
with sqlite3.connect("world/app.db") as world:
    world.execute("UPDATE items SET name = 'new' WHERE id = 1")
answer("done")
print("done")
