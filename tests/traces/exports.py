"""The library's desk once more, as each backend exports it: name → the bytes of a file."""

import base64
import csv
import io
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

from evalagent.model import Json, Span
from tests.traces import loans
from tests.traces.loans import ANSWER, MODEL, TASK

EPOCH = datetime(2026, 3, 1, 9, tzinfo=UTC)
START_NS = int(EPOCH.timestamp()) * 1_000_000_000


def moment(ns: int | None) -> datetime:
    return EPOCH + timedelta(microseconds=(ns or 0) // 1000)


def iso(ns: int | None) -> str:
    return moment(ns).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def identity(hexed: str | None) -> str | None:
    """A UUID for a span id, in its order."""
    return None if hexed is None else str(uuid.UUID(int=int(hexed, 16) + (7 << 64)))


def lines(values: Iterable[Json]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def one(value: Json) -> bytes:
    return json.dumps(value, indent=1).encode()


def table(rows: list[dict[str, Json]], write: Callable[[Json], str] = json.dumps) -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(names)
    for row in rows:
        cells = [row.get(name) for name in names]
        writer.writerow(["" if c is None else write(c) if isinstance(c, list | dict) else c for c in cells])
    return out.getvalue().encode()


def parsed(value: Json) -> Json:
    return json.loads(value) if isinstance(value, str) and value[:1] in '{["' else value


# --- Langfuse -------------------------------------------------------------------------------------

START = "langfuse.observation."


def observations() -> list[dict[str, Json]]:
    """As the API answers: camelCase, values as they are."""
    found = []
    for span in loans.langfuse()[0]:
        told = {key.removeprefix(START): parsed(value) for key, value in span.attributes.items()}
        found.append(
            {
                "id": span.span_id, "traceId": span.trace_id, "type": told["type"].upper(), "name": span.name,
                "startTime": iso(span.start_ns), "endTime": iso(span.end_ns), "completionStartTime": None,
                "parentObservationId": span.parent_id, "level": "DEFAULT", "statusMessage": None, "version": None,
                "input": told.get("input"), "output": told.get("output"), "metadata": {"ward": "north"},
                "model": told.get("model.name"), "modelParameters": {}, "environment": "default",
                "usageDetails": told.get("usage_details", {}), "costDetails": {}, "promptId": None, "latency": 0.01,
                "usage": {"unit": "TOKENS", "input": 0, "output": 0, "total": 0}, "calculatedTotalCost": 0,
            }
        )  # fmt: skip
    return found


def langfuse_trace() -> Json:
    return {
        "id": loans.TRACE, "name": "desk", "timestamp": iso(0), "sessionId": "visit-9", "userId": "reader-4",
        "input": {"question": TASK}, "output": ANSWER, "metadata": {}, "tags": [], "environment": "default",
        "htmlPath": "/project/p/traces/x", "latency": 0.07, "totalCost": 0, "scores": [],
        "observations": observations(),
    }  # fmt: skip


def langfuse_download() -> Json:
    trace = langfuse_trace()
    held = trace.pop("observations")
    return {"trace": trace, "observations": held, "scores": []}


def langfuse_older() -> Json:
    """A server of 2024: ids are UUIDs, tokens stand in `usage`, in `promptTokens` and nowhere else."""
    trace = langfuse_trace()
    for held in trace["observations"]:
        details = held.pop("usageDetails")
        del held["costDetails"]
        held |= {"id": identity(held["id"]), "parentObservationId": identity(held["parentObservationId"])}
        held["type"] = {"TOOL": "SPAN", "AGENT": "SPAN"}.get(held["type"], held["type"])
        held["promptTokens"], held["completionTokens"] = details.get("input", 0), details.get("output", 0)
        held["usage"] |= {key: details.get(key, 0) for key in ("input", "output")}
    return trace


def langfuse_page() -> Json:
    """The second version of the API: values are JSON text."""
    rows = observations()
    for row in rows:
        row |= {"input": json.dumps(row["input"]), "output": json.dumps(row["output"]), "sessionId": "visit-9"}
        row["providedModelName"] = row.pop("model")
        del row["usage"], row["calculatedTotalCost"]
    return {"data": rows, "meta": {"cursor": None}}


def langfuse_blobs() -> list[dict[str, Json]]:
    """The export to blob storage: snake case, times without a zone."""
    names = {
        "traceId": "trace_id", "startTime": "start_time", "endTime": "end_time", "statusMessage": "status_message",
        "parentObservationId": "parent_observation_id", "providedModelName": "provided_model_name",
        "usageDetails": "usage_details", "costDetails": "cost_details", "sessionId": "session_id",
        "modelParameters": "model_parameters",
    }  # fmt: skip
    rows = [{names.get(key, key): value for key, value in row.items()} for row in langfuse_page()["data"]]
    for row in rows:
        for name in ("start_time", "end_time"):
            row[name] = row[name].replace("T", " ").removesuffix("Z") + "000"
    return rows


# --- LangSmith ------------------------------------------------------------------------------------


def runs() -> list[dict[str, Json]]:
    """As the API answers."""
    spans = loans.langsmith()[0]
    root = identity(spans[0].span_id)
    found = []
    for span in spans:
        told = span.attributes
        own, output = identity(span.span_id), parsed(told["gen_ai.completion"])
        path = [(0, root), *([(span.start_ns, own)] if span.parent_id else [])]
        found.append(
            {
                "id": own, "trace_id": root, "parent_run_id": identity(span.parent_id), "name": span.name,
                "run_type": told["langsmith.span.kind"], "status": "success", "error": None, "child_run_ids": None,
                "start_time": moment(span.start_ns).replace(tzinfo=None).isoformat(),
                "end_time": moment(span.end_ns).replace(tzinfo=None).isoformat(),
                "inputs": parsed(told["gen_ai.prompt"]),
                "outputs": output if isinstance(output, dict) else {"output": output},
                "extra": {"metadata": {"ls_model_name": MODEL, "thread_id": "visit-9"}, "runtime": {"sdk": "x"}}
                if "gen_ai.request.model" in told else {"metadata": {"thread_id": "visit-9"}},
                "prompt_tokens": told.get("gen_ai.usage.input_tokens", 95 if span.parent_id is None else 0),
                "completion_tokens": told.get("gen_ai.usage.output_tokens", 20 if span.parent_id is None else 0),
                "total_cost": None, "session_id": str(uuid.UUID(int=99)), "tags": ["desk"],
                "events": [{"name": "start"}],
                "dotted_order": ".".join(f"{moment(at):%Y%m%dT%H%M%S%f}Z{name}" for at, name in path),
                "feedback_stats": None, "in_dataset": False, "app_path": "/o/p",
            }
        )  # fmt: skip
    return found


def nested_runs() -> Json:
    root, *children = runs()
    return {**root, "child_runs": children}


def bulk_runs() -> list[dict[str, Json]]:
    """Rows of a bulk export, its Parquet as JSON lines: values are JSON text, the parent stands in the order only."""
    rows = []
    for run in runs():
        text = {name: json.dumps(run[name]) for name in ("inputs", "outputs", "extra", "events", "tags")}
        rows.append({key: value for key, value in (run | text).items() if key != "parent_run_id"})
    return rows


# --- MLflow ---------------------------------------------------------------------------------------


def based(hexed: str | None) -> str | None:
    return None if hexed is None else base64.b64encode(bytes.fromhex(hexed)).decode()


def mlflow(version: int) -> Json:
    spans = []
    for span in loans.mlflow()[0]:
        named = {"name": span.name, "attributes": {"mlflow.traceRequestId": '"tr-1"', **span.attributes}, "events": []}
        if version == 3:
            spans.append(
                {
                    "trace_id": based(span.trace_id), "span_id": based(span.span_id),
                    "parent_span_id": based(span.parent_id), "start_time_unix_nano": START_NS + span.start_ns,
                    "end_time_unix_nano": START_NS + (span.end_ns or 0),
                    "status": {"code": "STATUS_CODE_OK", "message": ""}, "links": [], **named,
                }
            )  # fmt: skip
        else:
            spans.append(
                {
                    "context": {"span_id": f"0x{span.span_id}", "trace_id": f"0x{span.trace_id}"},
                    "parent_id": f"0x{span.parent_id}" if span.parent_id else None, "status_code": "OK",
                    "start_time": START_NS + span.start_ns, "end_time": START_NS + (span.end_ns or 0),
                    "status_message": "", **named,
                }
            )  # fmt: skip
    metadata = "trace_metadata" if version == 3 else "request_metadata"
    info = {"trace_id": "tr-1", metadata: {"mlflow.trace.session": "visit-9"}, "tags": {}, "state": "OK"}
    return {"info": info, "data": {"spans": spans}}


# --- Phoenix --------------------------------------------------------------------------------------


def phoenix() -> list[dict[str, Json]]:
    """As its REST API answers: flat attributes."""
    return [
        {
            "id": "U3Bhbjox", "name": span.name, "context": {"trace_id": span.trace_id, "span_id": span.span_id},
            "span_kind": span.attributes["openinference.span.kind"], "parent_id": span.parent_id,
            "start_time": iso(span.start_ns), "end_time": iso(span.end_ns), "status_code": "OK", "status_message": "",
            "attributes": {key: value for key, value in span.attributes.items() if key != "openinference.span.kind"},
            "events": [],
        }
        for span in loans.openinference()[0]
    ]  # fmt: skip


def phoenix_rows(milliseconds: bool) -> list[dict[str, Json]]:
    """Rows of the data frame of spans: the messages are one column."""
    rows = []
    for span in phoenix():
        row: dict[str, Json] = {
            "name": span["name"], "span_kind": span["span_kind"], "parent_id": span["parent_id"],
            "start_time": span["start_time"], "end_time": span["end_time"], "status_code": "OK", "status_message": "",
            "events": [], "context.span_id": span["context"]["span_id"],
            "context.trace_id": span["context"]["trace_id"],
        }  # fmt: skip
        for key, value in span["attributes"].items():
            _column(row, key, value)
        if milliseconds:
            for name in ("start_time", "end_time"):
                row[name] = round(datetime.fromisoformat(row[name]).timestamp() * 1000)
        rows.append(row)
    return rows


def _column(row: dict[str, Json], key: str, value: Json) -> None:
    """An attribute as phoenix puts it into a column: numbered names become lists of objects."""
    parts = key.split(".")
    at = next((place for place, part in enumerate(parts) if part.isdigit()), None)
    if at is None:
        row[f"attributes.{key}"] = value
        return
    held = row.setdefault("attributes." + ".".join(parts[:at]), [])
    number, rest = int(parts[at]), parts[at + 1 :]
    held.extend({} for _ in range(number + 1 - len(held)))
    inner = held[number]
    while len(rest) > 1:
        if rest[1].isdigit():
            listed = inner.setdefault(rest[0], [])
            listed.extend({} for _ in range(int(rest[1]) + 1 - len(listed)))
            inner, rest = listed[int(rest[1])], rest[2:]
        else:
            inner, rest = inner.setdefault(rest[0], {}), rest[1:]
    inner[rest[0]] = value


def columns(rows: list[dict[str, Json]]) -> Json:
    """As pandas writes a frame by default: column by column."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: {str(number): row.get(name) for number, row in enumerate(rows)} for name in names}


# --- Zipkin, CloudWatch ---------------------------------------------------------------------------


def zipkin() -> list[Json]:
    return [
        {
            "traceId": span.trace_id, "id": span.span_id, "parentId": span.parent_id, "name": span.name,
            "kind": "CLIENT", "timestamp": START_NS // 1000 + span.start_ns // 1000,
            "duration": ((span.end_ns or 0) - span.start_ns) // 1000, "localEndpoint": {"serviceName": "desk"},
            "tags": {key: v if isinstance(v, str) else json.dumps(v) for key, v in span.attributes.items()},
        }
        for span in loans.genai()[0]
    ]  # fmt: skip


def agentcore(camel: bool = True) -> list[Json]:
    """Spans without content, and the log documents that hold it."""
    spell = (lambda text: text) if camel else _snake
    scope = {"name": "strands.telemetry.tracer", "version": ""}
    found: list[Json] = []
    for span in loans.strands()[0]:
        where = {spell("traceId"): span.trace_id, spell("spanId"): span.span_id}
        found.append(
            {
                "resource": {"attributes": {"service.name": "desk.DEFAULT"}}, "scope": scope, **where,
                spell("parentSpanId"): span.parent_id or "", "flags": 256, "name": span.name, "kind": "INTERNAL",
                spell("startTimeUnixNano"): START_NS + span.start_ns,
                spell("endTimeUnixNano"): START_NS + (span.end_ns or 0), "durationNano": 1,
                "attributes": {**span.attributes, "session.id": "visit-9"}, "status": {"code": "UNSET"},
            }
        )  # fmt: skip
        body = _body(span)
        found.append(
            {
                "resource": {"attributes": {"service.name": "desk.DEFAULT"}}, "scope": scope, **where, "flags": 1,
                spell("timeUnixNano"): START_NS + span.start_ns, spell("observedTimeUnixNano"): START_NS + 1,
                spell("severityNumber"): 9, spell("severityText"): "", "body": body,
                "attributes": {"event.name": "strands.telemetry.tracer", "session.id": "visit-9"},
            }
        )  # fmt: skip
    return found


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


def _body(span: Span) -> Json:
    given, answered = [], []
    for event in span.events:
        role = event.name.split(".")[1]
        if event.name == "gen_ai.choice":
            answered.append({"content": dict(event.attributes), "role": "assistant"})
        else:
            given.append({"content": dict(event.attributes), "role": role})
    return {"output": {"messages": answered}, "input": {"messages": given}}


def answered_events() -> Json:
    """As `filter-log-events` answers."""
    return {
        "events": [
            {"logStreamName": "default", "timestamp": 1, "message": json.dumps(document), "eventId": str(number)}
            for number, document in enumerate(agentcore())
        ],
        "searchedLogStreams": [],
    }


def queried() -> Json:
    """As `get-query-results` answers."""
    return {
        "results": [
            [{"field": "@timestamp", "value": "2026-03-01"}, {"field": "@message", "value": json.dumps(document)}]
            for document in agentcore()
        ],
        "status": "Complete",
    }


EXPORTS: Mapping[str, Callable[[], bytes]] = {
    "langfuse trace": lambda: one(langfuse_trace()),
    "langfuse download": lambda: one(langfuse_download()),
    "langfuse page": lambda: one(langfuse_page()),
    "langfuse list": lambda: one(observations()),
    "langfuse blobs": lambda: lines(langfuse_blobs()),
    "langfuse table": lambda: table(langfuse_page()["data"]),
    "langfuse blobs table": lambda: table(langfuse_blobs()),
    "langsmith page": lambda: one({"runs": runs(), "cursors": {"next": None}}),
    "langsmith lines": lambda: lines(runs()),
    "langsmith nested": lambda: one(nested_runs()),
    "langsmith bulk": lambda: lines(bulk_runs()),
    "langsmith table": lambda: table(runs()),
    "mlflow 3": lambda: one(mlflow(3)),
    "mlflow 2": lambda: one(mlflow(2)),
    "mlflow lines": lambda: lines([mlflow(3)]),
    "mlflow search": lambda: lines([{"trace_id": "tr-1", "trace": json.dumps(mlflow(3)), "state": "OK"}]),
    "phoenix page": lambda: one({"data": phoenix(), "next_cursor": None}),
    "phoenix records": lambda: lines(phoenix_rows(milliseconds=True)),
    "phoenix columns": lambda: one(columns(phoenix_rows(milliseconds=True))),
    "phoenix table": lambda: table(phoenix_rows(milliseconds=False), repr),
    "zipkin": lambda: one(zipkin()),
    "agentcore lines": lambda: lines(agentcore()),
    "agentcore snake case": lambda: lines(agentcore(camel=False)),
    "cloudwatch answer": lambda: one(answered_events()),
    "cloudwatch query": lambda: one(queried()),
    "cloudwatch table": lambda: table([{"timestamp": 1, "message": json.dumps(d)} for d in agentcore()]),
    "cloudwatch insights": lambda: one([{"@timestamp": "2026-03-01", "@message": d} for d in agentcore()]),
    "cloudwatch export": lambda: b"".join(
        f"2026-03-01T09:00:00.{number:03d}Z {json.dumps(d)}\n".encode() for number, d in enumerate(agentcore())
    ),
    "cloudwatch subscription": lambda: one({"messageType": "DATA_MESSAGE", "logEvents": answered_events()["events"]}),
}
