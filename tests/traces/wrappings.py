"""The same OTLP requests in every spelling, layout and packing that a file of them may have."""

import base64
import gzip
import json
import uuid
from collections.abc import Callable, Mapping

import zstandard
from google.protobuf import json_format
from google.protobuf.internal.encoder import _VarintBytes
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evalagent.model import Json

_IDS = ("traceId", "spanId", "parentSpanId")


def changed(change: Callable[[str, Json], Json], value: Json, key: str = "") -> Json:
    """The value with `change(key, leaf)` in place of each leaf."""
    if isinstance(value, dict):
        return {name: changed(change, inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [changed(change, inner, key) for inner in value]
    return change(key, value)


def renamed(rename: Callable[[str], str], value: Json) -> Json:
    if isinstance(value, dict):
        return {rename(key): renamed(rename, inner) for key, inner in value.items()}
    return [renamed(rename, inner) for inner in value] if isinstance(value, list) else value


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


def _ids(spell: Callable[[bytes], Json]) -> Callable[[Json], Json]:
    return lambda value: changed(lambda key, leaf: spell(bytes.fromhex(leaf)) if key in _IDS and leaf else leaf, value)


def _numbers(value: Json) -> Json:
    return changed(lambda key, leaf: int(leaf) if key.endswith("UnixNano") or key == "intValue" else leaf, value)


def _enums(value: Json) -> Json:
    names = ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"]
    return changed(lambda key, leaf: names[leaf] if key == "code" and isinstance(leaf, int) else leaf, value)


SPELLINGS: Mapping[str, Callable[[Json], Json]] = {
    "plain": lambda value: value,
    "snake case": lambda value: renamed(_snake, value),
    "upper hex": _ids(lambda raw: raw.hex().upper()),
    "base64": _ids(lambda raw: base64.b64encode(raw).decode()),
    "0x": _ids(lambda raw: "0x" + raw.hex()),
    "integers": _ids(lambda raw: int.from_bytes(raw, "big")),
    "decimal text": _ids(lambda raw: str(int.from_bytes(raw, "big")).rjust(2 * len(raw) + 1, "0")),
    "uuid": _ids(lambda raw: str(uuid.UUID(bytes=raw)) if len(raw) == 16 else raw.hex()),
    "numbers": _numbers,
    "enum names": _enums,
    "parent of zeros": lambda value: changed(lambda k, v: v or "0" * 16 if k == "parentSpanId" else v, value),
    "older names": lambda value: renamed(
        lambda key: {"scopeSpans": "instrumentationLibrarySpans", "scope": "instrumentationLibrary"}.get(key, key),
        value,
    ),
}
"""How ids, numbers, enums and keys are written."""


def _text(value: Json) -> bytes:
    return json.dumps(value).encode()


def _flat(requests: list[Json]) -> bytes:
    """Each span and record as a document of its own, with its resource and scope inside."""
    found = []
    for request in requests:
        for lists, scopes, items in (
            ("resourceSpans", "scopeSpans", "spans"),
            ("resourceLogs", "scopeLogs", "logRecords"),
        ):
            for part in request.get(lists, ()):
                for scope in part[scopes]:
                    where = {"resource": part.get("resource", {}), "scope": scope.get("scope", {})}
                    found += [_text({**item, **where}) for item in scope[items]]
    return b"\n".join(found)


LAYOUTS: Mapping[str, Callable[[list[Json]], bytes]] = {
    "lines": lambda requests: b"\n".join(map(_text, requests)),
    "crlf": lambda requests: b"\xef\xbb\xbf" + b"\r\n".join(map(_text, requests)) + b"\r\n",
    "pretty": lambda requests: "\n".join(json.dumps(request, indent=2) for request in requests).encode(),
    "concatenated": lambda requests: b"".join(map(_text, requests)),
    "array": _text,
    "pretty array": lambda requests: json.dumps(requests, indent="\t").encode(),
    "parts": lambda requests: b"\n".join(
        _text(part) for r in requests for part in (*r.get("resourceSpans", ()), *r.get("resourceLogs", ()))
    ),
    "wrapped": lambda requests: _text({"result": requests}),
    "utf-16": lambda requests: b"\n".join(map(_text, requests)).decode().encode("utf-16"),
}
"""How requests are put into a text."""


def _packed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


PACKINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "as it is": lambda data: data,
    "gzip": gzip.compress,
    "gzip members": lambda data: gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :]),
    "zstd": zstandard.compress,
    "gzip twice": lambda data: gzip.compress(gzip.compress(data)),
}
"""How a file is packed."""


def messages(requests: list[Json]) -> list[bytes]:
    """Each request in protobuf, spans and log records apart."""
    based = _ids(lambda raw: base64.b64encode(raw).decode())
    found = []
    for request in requests:
        for name, kind in (("resourceSpans", ExportTraceServiceRequest), ("resourceLogs", ExportLogsServiceRequest)):
            if any(scope for part in request.get(name, ()) for scope in part.get("scopeSpans", part.get("scopeLogs"))):
                message = json_format.ParseDict(based({name: request[name]}), kind(), ignore_unknown_fields=True)
                found.append(message.SerializeToString())
    return found


PROTOBUF: Mapping[str, Callable[[list[bytes]], list[bytes]]] = {
    "one a file": lambda found: found,
    "varint lengths": lambda found: [b"".join(_VarintBytes(len(one)) + one for one in found)],
    "collector frames": lambda found: [b"".join(map(_packed, found))],
    "zstd frames": lambda found: [b"".join(_packed(zstandard.compress(one)) for one in found)],
    "gzip": lambda found: [gzip.compress(one) for one in found],
}
"""How protobuf requests are put into files."""
