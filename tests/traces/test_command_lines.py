"""Secrets in the command line that a process detector exports, and in the few fields beside the attributes."""

import json

import pytest

from evalagent.model import Json, LogRecord, Span
from evalagent.traces.command_lines import mask_command
from evalagent.traces.masking import mark, mask, mask_log, mask_span

KEY = "sk-ant-api03-" + "A1b2C3d4E5" * 5


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        ("agent --api-key hunter2 --port 80", f"agent --api-key {mark('hunter2')} --port 80"),
        ("agent -token abcdef", f"agent -token {mark('abcdef')}"),
        ("agent --api-key --verbose", "agent --api-key --verbose"),
        ("agent --max-tokens 512 --key-file k.pem", "agent --max-tokens 512 --key-file k.pem"),
        (["agent", "--password", "hunter2", "x"], ["agent", "--password", mark("hunter2"), "x"]),
        (["agent", "--password"], ["agent", "--password"]),
        (["agent", 5, None], ["agent", 5, None]),
        ({"stringValue": "agent --secret hunter2"}, {"stringValue": f"agent --secret {mark('hunter2')}"}),
    ],
)
def test_what_follows_a_flag_that_names_a_secret_is_masked(given: Json, masked: Json) -> None:
    assert mask_command(given) == masked
    assert mask_command(masked) == masked
    if given == masked:
        assert mask_command(given) is given


def test_a_span_shows_no_secret_in_any_field() -> None:
    started = {
        "process.command_args": ["agent", "--api-key", "hunter2"],
        "process.command_line": "agent --token hunter2",
    }
    span = Span(
        "1" * 32, "2" * 16, None, f"call {KEY}", 5, 6, status_message=KEY, attributes={"a": KEY},
        scope=f"scope {KEY}", scope_version=KEY,
        resource=started,
    )  # fmt: skip
    for _ in range(2):  # the second time the resource is known
        masked = mask_span(span)
        told = repr(masked)
        assert KEY not in told and "hunter2" not in told
        assert mask_span(masked) == masked


def test_a_log_record_and_a_request_show_none_either() -> None:
    log = mask_log(LogRecord("1" * 32, "2" * 16, 5, f"event {KEY}", None))
    assert KEY not in repr(log)
    arguments = {"arrayValue": {"values": [{"stringValue": one} for one in ("agent", "--api-key", "hunter2")]}}
    pairs = [{"key": "process.command_args", "value": arguments}]
    assert "hunter2" not in json.dumps(mask({"resource": {"attributes": pairs}}))
