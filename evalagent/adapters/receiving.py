"""One connection to the OTLP receiver: HTTP and its limits. What a request holds is the receiver's business."""

import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Literal

import orjson

from evalagent.adapters.request_bodies import Busy, Damaged, Hold, TooLarge, unpacked

if TYPE_CHECKING:
    from evalagent.adapters.receiver import Receiver

Signal = Literal["traces", "logs"]
PATHS: Mapping[str, Signal | Literal["metrics"]] = {
    "/v1/traces": "traces",
    "/v1/logs": "logs",
    "/v1/metrics": "metrics",
}
DISCARDED = 512 << 20
"""Bytes of a body over the limit that are still taken off the wire, so that its sender hears the answer."""

BODY_S = 120.0
"""Seconds within which a body has to come."""
BROKEN_OFF = "the connection broke off"
AGAIN_S = 2
"""Seconds after which whoever came too early is asked to come again."""
_NO_HTTP: Mapping[int, str] = {
    400: "this is no HTTP request",
    408: "the request did not come in time",
    414: "the path is too long",
    431: "the headers are too many or too long",
    501: "only GET and POST are answered",
    505: "only HTTP/1.0 and HTTP/1.1 are spoken",
}
_CODES: Mapping[int, int] = {503: 14, 500: 13, 413: 8, 404: 5, 501: 12}
"""Codes of google.rpc.Status; 3 for a request that is wrong."""


class Refused(ValueError):
    """A body that is no export request; the message says why."""


class NotStored(OSError):
    """A request was good and could not be written; sending it again may help."""


class _Answer(Exception):
    """The request ends here with this status and reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Receiving(BaseHTTPRequestHandler):
    """Reads requests of one connection, gives their bodies to the receiver and answers as OTLP/HTTP asks."""

    protocol_version = "HTTP/1.1"
    server_version = "evalagent"
    sys_version = ""
    timeout = 30.0

    def __init__(self, receiver: "Receiver", *arguments: Any) -> None:
        self.receiver = receiver
        super().__init__(*arguments)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: the receiver counts."""

    def do_GET(self) -> None:
        """`/healthz` says that requests are taken."""
        if self.path.split("?")[0] == "/healthz":
            self._send(HTTPStatus.OK, b'{"status":"ok"}', "application/json")
        else:
            self._send(HTTPStatus.NOT_FOUND, b'{"message":"only /healthz can be read"}', "application/json")

    def do_POST(self) -> None:
        """An export request."""
        if not self.receiver.begin():
            self.close_connection = True
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, b"", "text/plain")
            return
        try:
            with Hold(self.receiver.in_flight) as hold:
                self._export(hold)
        except (TimeoutError, ConnectionError):
            self.receiver.count("refused", BROKEN_OFF)
            self.close_connection = True
        finally:
            self.receiver.end()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request gets the same kind of answer; none of it is repeated."""
        self.close_connection = True
        if self.request_version in ("", "HTTP/0.9"):  # or no status would be sent
            self.request_version = "HTTP/1.0"
        status = HTTPStatus(code)
        self._failure(status, _NO_HTTP.get(code, status.phrase), False)

    def _export(self, hold: Hold) -> None:
        binary = False
        try:
            sent = self._body(hold)
            signal = PATHS.get(self.path.split("?")[0].rstrip("/"))
            if signal is None:
                raise _Answer(HTTPStatus.NOT_FOUND, f"only {', '.join(PATHS)} are received")
            kind = self.headers.get_content_type() if "Content-Type" in self.headers else ""
            if kind not in ("application/x-protobuf", "application/json"):
                raise _Answer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "application/x-protobuf or application/json is taken")
            binary = kind == "application/x-protobuf"
            body = self._unpacked(sent, hold)
            del sent
            lost: tuple[str, ...] = ()
            if signal != "metrics":
                lost = self.receiver.take(signal, body, binary)
            self.receiver.count("accepted", signal)
            name = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
            self._success(binary, name, lost)
        except Refused as error:
            self._failure(HTTPStatus.BAD_REQUEST, str(error), binary)
        except (NotStored, Busy) as error:
            self._failure(HTTPStatus.SERVICE_UNAVAILABLE, str(error), binary)
        except TooLarge as error:
            self._failure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error), binary)
        except Damaged as error:
            self._failure(HTTPStatus.BAD_REQUEST, str(error), binary)
        except _Answer as answer:
            self._failure(answer.status, answer.reason, binary)
        except (TimeoutError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - the sender hears of it, and it is counted
            self._failure(HTTPStatus.INTERNAL_SERVER_ERROR, f"a fault of ours ({type(error).__name__})", binary)

    # --- in ------------------------------------------------------------------------------------------

    def _body(self, hold: Hold) -> bytes:
        """The body as it was sent. What was left unread after an error ends with the connection."""
        most = self.receiver.largest_body
        if "Transfer-Encoding" in self.headers:
            if self.headers["Transfer-Encoding"].strip().lower() != "chunked":
                raise self._broken(HTTPStatus.NOT_IMPLEMENTED, "no transfer encoding but chunked is taken")
            return self._chunks(most, hold)
        length = self.headers.get("Content-Length", "").strip()
        if not (length.isascii() and length.isdecimal()):
            raise self._broken(HTTPStatus.LENGTH_REQUIRED, "a Content-Length or chunks are needed")
        if len(length) > 15 or int(length) > most:
            if len(length) <= 15 and int(length) <= DISCARDED:
                self._discard(int(length))  # a sender in the middle of sending would not hear the answer
            raise self._too_large(most)
        body = bytearray()  # not a list: pieces of a byte or two would take many times their size
        self._append(body, int(length), hold, time.monotonic() + BODY_S)
        return bytes(body)

    def _append(self, body: bytearray, size: int, hold: Hold, deadline: float) -> None:
        """So many bytes more, held as they come, so that a mere claim costs nobody anything."""
        while size > 0:
            piece = self._some(size, deadline)
            size -= len(piece)
            try:
                hold.more(len(piece))
            except Busy:
                body.clear()
                self._discard(size)
                raise
            body += piece

    def _some(self, most: int, deadline: float) -> bytes:
        if time.monotonic() > deadline:
            raise TimeoutError("the body did not come in time")
        piece = self.rfile.read1(min(most, 1 << 18))
        if not piece:
            raise ConnectionError("the body ended too early")
        return piece

    def _discard(self, size: int) -> None:
        deadline = time.monotonic() + BODY_S
        while size > 0:
            size -= len(self._some(size, deadline))

    def _chunks(self, most: int, hold: Hold) -> bytes:
        body = bytearray()
        size, deadline = 0, time.monotonic() + BODY_S
        while True:
            head = self.rfile.readline(256).split(b";")[0].strip()
            try:
                length = int(head, 16) if head.isalnum() else -1
            except ValueError:
                length = -1
            if length < 0:
                raise self._broken(HTTPStatus.BAD_REQUEST, "a chunk without a size")
            size += length
            if size > most:
                raise self._too_large(most)
            if length == 0:
                break
            try:
                self._append(body, length, hold, deadline)
            except Busy as error:
                raise self._broken(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error
            if self.rfile.readline(256).strip():
                raise self._broken(HTTPStatus.BAD_REQUEST, "a chunk longer than its size")
        for _ in range(64):  # trailers, which nothing here needs
            if not self.rfile.readline(1024).strip():
                return bytes(body)
        raise self._broken(HTTPStatus.BAD_REQUEST, "too many trailers")

    def _unpacked(self, body: bytes, hold: Hold) -> bytes:
        encoding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding in ("", "identity"):
            return body
        if encoding not in ("gzip", "zstd"):
            raise _Answer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "no content encoding but gzip and zstd is taken")
        found = unpacked(body, encoding, self.receiver.largest_body, hold)
        hold.less(len(body))
        return found

    def _too_large(self, most: int) -> _Answer:
        return self._broken(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {most} bytes")

    def _broken(self, status: HTTPStatus, reason: str) -> _Answer:
        """An error after which the rest of the connection cannot be understood."""
        self.close_connection = True
        return _Answer(status, reason)

    # --- out -----------------------------------------------------------------------------------------

    def _success(self, binary: bool, name: str, lost: tuple[str, ...]) -> None:
        if binary:
            told = _field(1, len(lost)) + _field(2, lost[0].encode()[:500]) if lost else b""
            self._send(HTTPStatus.OK, _field(1, told) if told else b"", "application/x-protobuf")
        else:
            partial = {"partialSuccess": {name: str(len(lost)), "errorMessage": lost[0][:500]}} if lost else {}
            self._send(HTTPStatus.OK, orjson.dumps(partial), "application/json")

    def _failure(self, status: HTTPStatus, reason: str, binary: bool) -> None:
        """A google.rpc.Status, in the encoding of the request."""
        self.receiver.count("refused", reason)
        code = _CODES.get(status, 3)
        if binary:
            said = reason.encode("utf-8", "replace")[:500]
            self._send(status, _field(1, code) + _field(2, said), "application/x-protobuf")
        else:
            self._send(status, orjson.dumps({"code": code, "message": reason[:500]}), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", str(AGAIN_S))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value
