"""A loopback server that speaks the Messages protocol by a script: what it answers, in order, is given beforehand."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass
class Answer:
    """One scripted answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False
    """Announce the whole body, send half of it, and hang up."""


def message(*blocks: Body, stop_reason: str | None = "end_turn", usage: Mapping[str, int] | None = None) -> Answer:
    """A reply of the Messages protocol."""
    value = {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": dict(usage or {"input_tokens": 100, "output_tokens": 20}),
    }
    return Answer(200, json.dumps(value).encode(), {"content-type": "application/json"})


def text(said: str, **more: Any) -> Answer:
    return message({"type": "text", "text": said}, **more)


def call(arguments: Any, name: str = "verdict", **more: Any) -> Body:
    return {"type": "tool_use", "id": "toolu_scripted", "name": name, "input": arguments, **more}


def error(status: int, kind: str = "api_error", said: str = "scripted", **headers: str) -> Answer:
    value = {"type": "error", "error": {"type": kind, "message": said}}
    told = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    return Answer(status, json.dumps(value).encode(), told)


class Script:
    """Answers in order; the last one again and again. An answer may be a function of the request's body."""

    def __init__(self, *answers: Answer | Callable[[Body], Answer]) -> None:
        self.answers = list(answers)
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self.url = ""

    def take(self, body: Body, headers: dict[str, str]) -> Answer:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(body) if callable(answer) else answer

    def done(self) -> None:
        with self._lock:
            self._at_once -= 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        script = self.server.script
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        try:
            answer = script.take(body, dict(self.headers.items()))
            time.sleep(answer.delay_s)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            if answer.cut:
                self.wfile.write(answer.body[: len(answer.body) // 2])
                self.close_connection = True
                return
            self.wfile.write(answer.body)
        except BrokenPipeError:
            self.close_connection = True
        finally:
            script.done()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    script: Script


@contextmanager
def serving(*answers: Answer | Callable[[Body], Answer]) -> Iterator[Script]:
    """A server on a free loopback port; `script.url` is its base URL, `script.requests` what it was asked."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.script = Script(*answers)
    server.script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
