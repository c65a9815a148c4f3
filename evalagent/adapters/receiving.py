"""One connection to the OTLP receiver: HTTP and its limits. What a request holds is the receiver's business."""

import zlib
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Literal

import orjson
import zstandard

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
            self._export()
        except (TimeoutError, ConnectionError):
            self.receiver.count("refused", "the connection broke off")
            self.close_connection = True
        finally:
            self.receiver.end()

    def _export(self) -> None:
        binary = False
        try:
            sent = self._body()
            signal = PATHS.get(self.path.split("?")[0].rstrip("/"))
            if signal is None:
                raise _Answer(HTTPStatus.NOT_FOUND, f"only {', '.join(PATHS)} are received")
            kind = self.headers.get_content_type() if "Content-Type" in self.headers else ""
            if kind not in ("application/x-protobuf", "application/json"):
                raise _Answer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "application/x-protobuf or application/json is taken")
            binary = kind == "application/x-protobuf"
            body = self._unpacked(sent)
            lost: tuple[str, ...] = ()
            if signal != "metrics":
                lost = self.receiver.take(signal, body, binary)
            self.receiver.count("accepted", signal)
            name = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
            self._success(binary, name, lost)
        except Refused as error:
            self._failure(HTTPStatus.BAD_REQUEST, str(error), binary)
        except NotStored as error:
            self._failure(HTTPStatus.SERVICE_UNAVAILABLE, str(error), binary)
        except _Answer as answer:
            self._failure(answer.status, answer.reason, binary)

    # --- in ------------------------------------------------------------------------------------------

    def _body(self) -> bytes:
        """The body as it was sent. What was left unread after an error ends with the connection."""
        most = self.receiver.largest_body
        if "Transfer-Encoding" in self.headers:
            if self.headers["Transfer-Encoding"].strip().lower() != "chunked":
                raise self._broken(HTTPStatus.NOT_IMPLEMENTED, "no transfer encoding but chunked is taken")
            return self._chunks(most)
        length = self.headers.get("Content-Length", "").strip()
        if not (length.isascii() and length.isdecimal()):
            raise self._broken(HTTPStatus.LENGTH_REQUIRED, "a Content-Length or chunks are needed")
        if len(length) > 15 or int(length) > most:
            if len(length) <= 15 and int(length) <= DISCARDED:
                self._discard(int(length))  # a sender in the middle of sending would not hear the answer
            raise self._too_large(most)
        return self._exactly(int(length))

    def _exactly(self, size: int) -> bytes:
        body = self.rfile.read(size)
        if len(body) < size:
            raise ConnectionError("the body ended too early")
        return body

    def _discard(self, size: int) -> None:
        while size > 0:
            size -= len(self._exactly(min(size, 1 << 20)))

    def _chunks(self, most: int) -> bytes:
        pieces, size = [], 0
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
            pieces.append(self._exactly(length))
            if self.rfile.readline(256).strip():
                raise self._broken(HTTPStatus.BAD_REQUEST, "a chunk longer than its size")
        for _ in range(64):  # trailers, which nothing here needs
            if not self.rfile.readline(1024).strip():
                return b"".join(pieces)
        raise self._broken(HTTPStatus.BAD_REQUEST, "too many trailers")

    def _unpacked(self, body: bytes) -> bytes:
        encoding = self.headers.get("Content-Encoding", "identity").strip().lower()
        most = self.receiver.largest_body
        try:
            if encoding in ("", "identity"):
                return body
            if encoding == "gzip":
                unpacked = zlib.decompressobj(wbits=31)
                found = unpacked.decompress(body, most + 1)
                if len(found) <= most and not unpacked.eof:
                    raise _Answer(HTTPStatus.BAD_REQUEST, "the gzip data ends too early")
            elif encoding == "zstd":
                with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(body) as reader:
                    found = reader.read(most + 1)
            else:
                raise _Answer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "no content encoding but gzip and zstd is taken")
        except (zlib.error, zstandard.ZstdError) as error:
            raise _Answer(HTTPStatus.BAD_REQUEST, f"damaged {encoding} data") from error
        if len(found) > most:
            raise _Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {most} bytes when unpacked")
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
        code = 14 if status is HTTPStatus.SERVICE_UNAVAILABLE else 3
        if binary:
            said = reason.encode("utf-8", "replace")[:500]
            self._send(status, _field(1, code) + _field(2, said), "application/x-protobuf")
        else:
            self._send(status, orjson.dumps({"code": code, "message": reason[:500]}), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
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
