"""The embedded OTLP receiver, sent to by the real SDK and by hand."""

import gzip
import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import zstandard
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Status, StatusCode

from evalagent.adapters.receiver import Receiver
from evalagent.model import Json
from evalagent.traces.masking import mark
from evalagent.traces.reading import read


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(tmp_path / "otlp") as receiver:
        yield receiver


def request(name: str = "x", **attributes: str) -> Json:
    span = {
        "traceId": "ab" * 16,
        "spanId": "cd" * 8,
        "name": name,
        "startTimeUnixNano": "5",
        "endTimeUnixNano": "6",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": [span]}]}]}


def post(
    receiver: Receiver, body: bytes, path: str = "/v1/traces", kind: str = "application/json", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(receiver.endpoint).netloc, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", path, body, {"Content-Type": kind, **named})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def kept(receiver: Receiver, name: str = "traces.jsonl") -> list[Json]:
    path = receiver.folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_what_the_sdk_sends_is_what_is_read_back(receiver: Receiver, compression: Compression) -> None:
    provider = TracerProvider(resource=Resource({"service.name": "desk", "n": 3}))
    exporter = OTLPSpanExporter(f"{receiver.endpoint}/v1/traces", compression=compression)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("desk.tracing", "3")
    with tracer.start_as_current_span("root") as root:
        values = {"text": "ü", "n": -5, "big": 2**53 + 1, "half": 0.5, "yes": True, "list": ["a", "b"]}
        link = Link(root.get_span_context())
        with tracer.start_as_current_span("child", attributes=values, links=[link]) as child:
            child.add_event("said", {"x": 1})
            child.set_status(Status(StatusCode.ERROR, "no such book"))
    provider.shutdown()
    receiver.stop()

    reading = read((receiver.folder / "traces.jsonl").read_bytes(), "traces.jsonl")
    spans = {span.name: span for span in reading.spans}
    context = root.get_span_context()
    assert spans["root"].trace_id == f"{context.trace_id:032x}"
    assert spans["child"].parent_id == spans["root"].span_id == f"{context.span_id:016x}"
    assert spans["child"].attributes == values
    assert (spans["child"].status, spans["child"].status_message) == ("error", "no such book")
    assert spans["child"].events[0].attributes == {"x": 1}
    assert spans["child"].links[0].span_id == spans["root"].span_id
    assert (spans["child"].scope, spans["child"].scope_version) == ("desk.tracing", "3")
    assert spans["root"].resource["service.name"] == "desk"
    assert spans["root"].end_ns is not None
    assert dict(receiver.accepted) == {"traces": 1}
    assert not receiver.refused


def test_lines_are_as_a_collector_writes_them(receiver: Receiver) -> None:
    message = ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    scope.scope.name = "s"
    span = scope.spans.add(trace_id=b"\xab" * 16, span_id=b"\xcd" * 8, name="x", kind=1, start_time_unix_nano=1 << 62)
    span.attributes.add(key="n").value.int_value = 7
    status, answer = post(receiver, message.SerializeToString(), kind="application/x-protobuf")
    assert (status, ExportTraceServiceResponse.FromString(answer)) == (200, ExportTraceServiceResponse())
    assert kept(receiver) == [
        {
            "resourceSpans": [
                {
                    "resource": {},
                    "scopeSpans": [
                        {
                            "scope": {"name": "s"},
                            "spans": [
                                {
                                    "traceId": "ab" * 16,
                                    "spanId": "cd" * 8,
                                    "parentSpanId": "",
                                    "name": "x",
                                    "kind": 1,
                                    "startTimeUnixNano": str(1 << 62),
                                    "attributes": [{"key": "n", "value": {"intValue": "7"}}],
                                    "status": {},
                                }
                            ],
                        }
                    ],
                }
            ]
        }
    ]


def test_json_is_kept_line_by_line_packed_or_in_chunks(receiver: Receiver) -> None:
    body = json.dumps(request("one"), indent=2).encode()
    assert post(receiver, body) == (200, b"{}")
    assert post(receiver, gzip.compress(body), Content_Encoding="gzip")[0] == 200
    assert post(receiver, zstandard.compress(body), Content_Encoding="zstd")[0] == 200
    connection = http.client.HTTPConnection(urlsplit(receiver.endpoint).netloc, timeout=20)
    pieces = (body[place : place + 100] for place in range(0, len(body), 100))
    connection.request("POST", "/v1/traces", pieces, {"Content-Type": "application/json"}, encode_chunked=True)
    assert connection.getresponse().read() == b"{}"
    connection.request("POST", "/v1/traces", body, {"Content-Type": "application/json; charset=utf-8"})
    assert connection.getresponse().status == 200
    connection.close()
    assert kept(receiver) == [request("one")] * 5


def test_log_records_have_a_file_of_their_own_and_metrics_none(receiver: Receiver) -> None:
    message = ExportLogsServiceRequest()
    record = (
        message.resource_logs.add().scope_logs.add().log_records.add(trace_id=b"\1" * 16, event_name="gen_ai.choice")
    )
    record.body.string_value = "hello"
    assert post(receiver, message.SerializeToString(), "/v1/logs", "application/x-protobuf")[0] == 200
    assert post(receiver, b"whatever", "/v1/metrics", "application/x-protobuf") == (200, b"")
    assert post(receiver, b"{}")[0] == 200
    assert [path.name for path in receiver.folder.iterdir()] == ["logs.jsonl"]
    (log,) = read((receiver.folder / "logs.jsonl").read_bytes(), "logs").logs
    assert (log.body, log.event_name) == ("hello", "gen_ai.choice")


def test_secrets_never_reach_the_disk(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "Ab3" * 8
    with Receiver(tmp_path, patterns=["ACME-[0-9]{8}"]) as receiver:
        body = request(f"call {key}", authorization="Bearer abcdefgh1234", note="card ACME-12345678")
        assert post(receiver, json.dumps(body).encode())[0] == 200
    text = (tmp_path / "traces.jsonl").read_text()
    for secret in (key, "abcdefgh1234", "ACME-12345678"):
        assert secret not in text
        assert mark(secret) in text


def test_a_mask_of_ones_own_is_applied_before_anything_is_written(tmp_path: Path) -> None:
    with Receiver(tmp_path, mask=lambda value: {"resourceSpans": value["resourceSpans"][:0]}) as receiver:
        post(receiver, json.dumps(request()).encode())
        assert kept(receiver) == [{"resourceSpans": []}]


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status"),
    [
        (b"", "application/json", {}, 400),
        (b'{"resourceSpans":[', "application/json", {}, 400),
        (b"[" * 100_000, "application/json", {}, 400),
        (b"[]", "application/json", {}, 400),
        (b'{"resourceSpans":7}', "application/json", {}, 400),
        (b'{"resourceLogs":[]}', "application/json", {}, 400),
        (b"{}{}", "application/json", {}, 400),
        (b"\x0a\xff\xff", "application/x-protobuf", {}, 400),
        (b"{}", "text/plain", {}, 415),
        (b"{}", "application/json", {"Content_Encoding": "gzip"}, 400),
        (gzip.compress(b"{}" * 500)[:-9], "application/json", {"Content_Encoding": "gzip"}, 400),
        (b"{}", "application/json", {"Content_Encoding": "br"}, 415),
        (b"{}", "application/json", {"Transfer_Encoding": "gzip"}, 501),
    ],
)
def test_a_bad_body_is_refused_with_a_reason_and_counted(
    receiver: Receiver, body: bytes, kind: str, headers: dict[str, str], status: int
) -> None:
    found, answer = post(receiver, body, kind=kind, **headers)
    assert found == status
    assert answer
    assert sum(receiver.refused.values()) == 1
    assert post(receiver, json.dumps(request()).encode())[0] == 200
    assert len(kept(receiver)) == 1


def test_a_body_over_the_limit_is_refused_before_and_after_unpacking(tmp_path: Path) -> None:
    with Receiver(tmp_path, largest_body=10_000) as receiver:
        assert post(receiver, b" " * 10_001)[0] == 413
        assert post(receiver, b" " * 10_000_000)[0] == 413
        assert post(receiver, gzip.compress(b" " * 10_001), Content_Encoding="gzip")[0] == 413
        assert post(receiver, zstandard.compress(b" " * 10_001), Content_Encoding="zstd")[0] == 413
        with socket.create_connection(urlsplit(receiver.endpoint).netloc.split(":")) as raw:
            head = b"POST /v1/traces HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            raw.sendall(head + b"fffffff\r\n")
            assert b" 413 " in raw.recv(200)
        assert post(receiver, json.dumps(request()).encode())[0] == 200


def test_a_chunk_without_a_size_and_a_body_that_breaks_off_harm_nobody_else(receiver: Receiver) -> None:
    host, port = urlsplit(receiver.endpoint).netloc.split(":")
    head = b"POST /v1/traces HTTP/1.1\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n")
        assert b" 400 " in raw.recv(200)
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(head + b"Content-Length: 50\r\n\r\n{")
        raw.shutdown(socket.SHUT_WR)
        assert raw.recv(200) == b""
    assert post(receiver, json.dumps(request()).encode())[0] == 200
    assert sum(receiver.refused.values()) == 2


def test_a_part_of_a_request_that_cannot_be_read_is_told_to_the_sender(receiver: Receiver) -> None:
    message = ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    scope.spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, name="AB", start_time_unix_nano=5)
    scope.spans.add(trace_id=b"\1" * 16, span_id=b"\3" * 8, name="whole", start_time_unix_nano=5)
    body = message.SerializeToString().replace(b"\x2a\x02AB", b"\x2a\x7fAB")
    status, answer = post(receiver, body, kind="application/x-protobuf")
    said = ExportTraceServiceResponse.FromString(answer)
    assert (status, said.partial_success.rejected_spans) == (200, 1)
    assert said.partial_success.error_message
    assert [span.name for span in read((receiver.folder / "traces.jsonl").read_bytes(), "f").spans] == ["whole"]


def test_deeply_nested_values_are_kept_and_read_back(receiver: Receiver) -> None:
    value: Json = {"stringValue": "core"}
    for _ in range(62):
        value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    body = request()
    body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = [{"key": "deep", "value": value}]
    assert post(receiver, json.dumps(body).encode())[0] == 200
    assert kept(receiver) == [body]
    (span,) = read((receiver.folder / "traces.jsonl").read_bytes(), "f").spans
    assert "core" in str(span.attributes["deep"])


def test_many_senders_at_once_write_whole_lines(receiver: Receiver) -> None:
    body = json.dumps(request("n" * 5000)).encode()

    def send() -> None:
        for _ in range(10):
            assert post(receiver, body)[0] == 200

    senders = [threading.Thread(target=send) for _ in range(6)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    receiver.stop()
    assert kept(receiver) == [request("n" * 5000)] * 60
    assert receiver.accepted["traces"] == 60


def test_lines_that_were_there_stay_and_an_unfinished_one_does_not_spoil_the_next(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text(json.dumps(request("old")) + '\n{"resourceSpans":[{"res')
    with Receiver(tmp_path) as receiver:
        post(receiver, json.dumps(request("new")).encode())
    reading = read((tmp_path / "traces.jsonl").read_bytes(), "f")
    assert [span.name for span in reading.spans] == ["old", "new"]
    assert [piece.line for piece in reading.rejected] == [2]


def test_it_says_that_it_lives_and_what_it_does_not_serve(receiver: Receiver) -> None:
    connection = http.client.HTTPConnection(urlsplit(receiver.endpoint).netloc, timeout=20)
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())) == (200, {"status": "ok"})
    connection.request("GET", "/v1/traces")
    assert connection.getresponse().read() != b""
    connection.close()
    assert post(receiver, b"{}", "/v1/profiles")[0] == 404
    kind = {"Content-Type": "application/json"}
    for path, status in (("/v1/profiles", 404), ("/v1/traces", 200)):  # one connection: the refused body is read too
        connection.request("POST", path, json.dumps(request()).encode(), kind)
        answer = connection.getresponse()
        assert (answer.status, answer.read() != b"") == (status, True)
    connection.close()
    assert receiver.endpoint.startswith("http://127.0.0.1:")


def test_a_stopped_receiver_takes_nothing_even_on_a_connection_that_was_open(tmp_path: Path) -> None:
    receiver = Receiver(tmp_path)
    with pytest.raises(RuntimeError):
        _ = receiver.endpoint
    receiver.start()
    connection = http.client.HTTPConnection(urlsplit(receiver.endpoint).netloc, timeout=20)
    body, kind = json.dumps(request()).encode(), {"Content-Type": "application/json"}
    connection.request("POST", "/v1/traces", body, kind)
    assert connection.getresponse().read() == b"{}"
    receiver.stop()
    receiver.stop()
    connection.request("POST", "/v1/traces", body, kind)
    assert connection.getresponse().status == 503
    connection.close()
    assert len((tmp_path / "traces.jsonl").read_text().splitlines()) == 1


def test_what_was_written_can_be_cut_off_while_more_comes(receiver: Receiver) -> None:
    assert receiver.cut() == ()
    assert post(receiver, json.dumps(request("first")).encode())[0] == 200
    first = receiver.cut()
    assert post(receiver, json.dumps(request("second")).encode())[0] == 200
    second = receiver.cut()
    assert receiver.cut() == ()
    assert [path.name for path in (*first, *second)] == ["000001-traces.jsonl", "000002-traces.jsonl"]
    names = [[span.name for span in read(path.read_bytes(), path.name).spans] for path in (*first, *second)]
    assert names == [["first"], ["second"]]
    assert kept(receiver) == []


def test_nothing_is_lost_between_two_cuts_however_many_send(receiver: Receiver) -> None:
    def send(number: int) -> None:
        for n in range(20):
            assert post(receiver, json.dumps(request(f"{number}.{n}")).encode())[0] == 200

    senders = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for sender in senders:
        sender.start()
    cut: list[Path] = []
    while any(sender.is_alive() for sender in senders):
        cut += receiver.cut()
    cut += receiver.cut()
    names = [span.name for path in cut for span in read(path.read_bytes(), path.name).spans]
    assert sorted(names) == sorted(f"{number}.{n}" for number in range(4) for n in range(20))


def test_packed_bodies_of_many_members_are_read_whole(receiver: Receiver) -> None:
    body = json.dumps(request("one", text="words " * 50_000)).encode()
    half = len(body) // 2
    packed = gzip.compress(body[:half]) + gzip.compress(body[half:]) + b"\0" * 100
    assert post(receiver, packed, Content_Encoding="gzip")[0] == 200
    framed = zstandard.compress(body[:half]) + zstandard.compress(body[half:])
    assert post(receiver, framed, Content_Encoding="zstd")[0] == 200
    assert kept(receiver) == [request("one", text="words " * 50_000)] * 2
    assert post(receiver, zstandard.compress(body)[:-5], Content_Encoding="zstd")[0] == 400
    assert post(receiver, gzip.compress(b"") * 1001, Content_Encoding="gzip")[0] == 413


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        (gzip.compress(bytes(20 << 20)), {"Content_Encoding": "gzip"}, b"500 times its size"),
        (zstandard.compress(bytes(20 << 20)), {"Content_Encoding": "zstd"}, b"2000 times its size"),
        (b'{"resourceSpans":[' + b"{}," * 2_000_000 + b"{}]}", {}, b"more than 2000000 objects"),
        (b"\n\0" * 2_000_000, {"kind": "application/x-protobuf"}, b"more than 2000000 messages"),
    ],
)
def test_what_is_out_of_proportion_is_refused(
    receiver: Receiver, body: bytes, headers: dict[str, str], reason: bytes
) -> None:
    status, answer = post(receiver, body, **headers)
    assert status == 413
    assert reason in answer


def test_beyond_the_bytes_in_flight_others_are_asked_to_come_again(tmp_path: Path) -> None:
    size = 3_000_000
    head = b"POST /v1/traces HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with Receiver(tmp_path, largest_body=size, in_flight=2 * size) as receiver:
        address = urlsplit(receiver.endpoint).netloc.split(":")
        with socket.create_connection(address) as one, socket.create_connection(address) as two:
            for slow in (one, two):
                slow.sendall(head % size + b" " * (size - 1))
            deadline = time.monotonic() + 10
            while receiver.in_flight.held < 2 * size - 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            connection = http.client.HTTPConnection(":".join(address), timeout=20)
            connection.request("POST", "/v1/traces", json.dumps(request()), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
            assert json.loads(answer.read())["code"] == 14
            connection.close()
        while receiver.in_flight.held and time.monotonic() < deadline:
            time.sleep(0.01)
        assert receiver.in_flight.held == 0
        assert post(receiver, json.dumps(request()).encode())[0] == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"GET /" + b"a" * 70_000, 414),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
        (b"PUT /sk-ant-api03-x HTTP/1.1\r\n\r\n", 501),
    ],
)
def test_what_is_no_request_is_answered_as_status_and_not_repeated(
    receiver: Receiver, sent: bytes, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(urlsplit(receiver.endpoint).netloc.split(":")) as raw:
        raw.sendall(sent)
        found = b""
        while part := raw.recv(4096):
            found += part
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.split()[1] == str(status).encode()
    assert json.loads(body).keys() == {"code", "message"}
    assert not any("sk-ant" in reason for reason in receiver.refused)
    assert sum(receiver.refused.values()) == 1
    assert capfd.readouterr() == ("", "")


def test_a_fault_of_ours_is_told_and_counted_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(value: Json) -> Json:
        raise ZeroDivisionError("secret")

    with Receiver(tmp_path, mask=broken) as receiver:
        status, answer = post(receiver, json.dumps(request()).encode())
        assert (status, json.loads(answer)["code"]) == (500, 13)
        assert dict(receiver.refused) == {"a fault of ours (ZeroDivisionError)": 1}
        linger = struct.pack("ii", 1, 0)
        with socket.create_connection(urlsplit(receiver.endpoint).netloc.split(":")) as raw:
            raw.sendall(b"GET /healthz HT")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)  # closed with a reset
        deadline = time.monotonic() + 10
        while sum(receiver.refused.values()) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert receiver.refused["the connection broke off"] == 1
    assert capfd.readouterr() == ("", "")


def test_small_requests_get_through_while_a_large_one_is_worked_on_and_the_end_does_not_wait_for_it(
    tmp_path: Path,
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def slow(value: Json) -> Json:
        if len(value["resourceSpans"]) > 1:
            begun.set()
            ended.wait(60)
        return value

    large = json.dumps({"resourceSpans": request("large")["resourceSpans"] * 9000}).encode()
    receiver = Receiver(tmp_path, mask=slow)
    receiver.start()
    heard: list[tuple[int, bytes]] = []
    senders = [threading.Thread(target=lambda: heard.append(post(receiver, large))) for _ in range(3)]
    for sender in senders:
        sender.start()
    assert begun.wait(20)
    assert post(receiver, json.dumps(request("small")).encode())[0] == 200
    before = time.monotonic()
    receiver.stop()
    assert time.monotonic() - before < 8
    ended.set()
    for sender in senders:
        sender.join()
    assert receiver.refused["not answered before the receiver ended"] == 1
    assert [status for status, _ in heard] == [503] * 3
    assert kept(receiver) == [request("small")]
