"""A result says that it failed by its shape or its first words, never by merely talking of errors."""

import pytest

from evalagent.checks.failures import cause_of, failure_of
from evalagent.model import Json, Step

FAILED: list[Json] = [
    {"status": "error", "message": "depot closed"},
    '{"status": "FAILED", "reason": "no slot"}',
    {"success": False},
    {"ok": False, "detail": "x"},
    {"error": "locker full"},
    {"error": {"code": 7, "message": "locker full"}},
    {"errors": [{"message": "bad field"}], "data": None},
    {"isError": True, "content": [{"type": "text", "text": "boom"}]},
    {"content": [{"type": "text", "text": "Error: boom"}]},
    {"content": "could not reach it", "status": "error", "name": "redirect"},
    {"result": {"error": "nope"}},
    {"statusCode": 503, "body": "try later"},
    {"status": 404},
    "Error: no such parcel",
    "ERROR - locker full",
    "Error executing tool redirect: timed out",
    "ValueError: weight must be positive",
    "depot.errors.DepotError: closed",
    "Traceback (most recent call last):\n  File ...",
    "HTTP 502",
    "HTTP/1.1 500 Internal Server Error",
    "404 Not Found",
    "An error: the depot is closed",
]
FINE: list[Json] = [
    None,
    "",
    {"errors": 0},
    {"error": None},
    {"error": ""},
    {"error": "none"},
    {"error": False, "data": 1},
    {"status": "ok", "errors": []},
    {"status": 200, "message": "error budget left: 4 %"},
    {"success": True, "error": "an old one, cleared"},
    {"hits": ["Error: disk full", "Error: no route"], "total": 2},
    [{"error": "one entry of a log"}, {"error": "another"}],
    {"log": "Error: disk full"},
    {"job_id": "J-1", "status": "failed", "duration_s": 12},
    {"file": "a.py", "errors": ["E501 line too long"]},
    {"error_count": 3, "status": "degraded"},
    {"status": 40400},
    "Errors found: 0",
    "Error handling in depots: a guide",
    "Error rates fell last week.",
    "404 parcels found",
    "terror: a film about a postman",
    "The last message was: Error: disk full",
    "2025-01-01 ERROR disk full",
]


def tool(result: Json, error: str | None = None, kind: str = "tool") -> Step:
    return Step("t", "s", ("s",), kind, "x", 0, 1, result=result, error=error)  # type: ignore[arg-type]


@pytest.mark.parametrize("result", FAILED, ids=repr)
def test_a_result_that_says_error_by_its_shape_is_a_soft_failure(result: Json) -> None:
    failure = failure_of(tool(result))
    assert failure is not None and failure.soft


@pytest.mark.parametrize("result", FINE, ids=repr)
def test_a_result_that_only_talks_of_errors_is_none(result: Json) -> None:
    assert failure_of(tool(result)) is None


def test_a_hard_error_is_told_with_what_the_result_says() -> None:
    failure = failure_of(tool({"error": "no such parcel"}, error="ToolException"))
    assert failure is not None and not failure.soft and failure.text == "no such parcel"


def test_documents_that_were_retrieved_are_never_failures() -> None:
    assert failure_of(tool("Error: how to read this message", kind="retrieval")) is None


def test_deeply_nested_results_are_read_without_recursion() -> None:
    value: Json = {"error": "deep down"}
    for _ in range(5_000):
        value = {"data": value}
    assert failure_of(tool(value)) is None


@pytest.mark.parametrize(
    ("text", "cause", "fault"),
    [
        ("HTTP 503", "unavailable", "yes"),
        ("connection reset by peer", "unavailable", "yes"),
        ("429 Too Many Requests", "access", "yes"),
        ("403 Forbidden", "access", "yes"),
        ("parcel not found", "not_found", "unknown"),
        ("field `weight` is required", "invalid", "no"),
        ("delivered parcels cannot be redirected", "refused", "unknown"),
        ("the price is 3834, paid 569", "refused", "unknown"),
    ],
)
def test_the_cause_of_a_failure_says_whose_fault_it_may_be(text: str, cause: str, fault: str) -> None:
    failure = failure_of(tool(None, error=text))
    assert failure is not None
    assert (cause_of(text), failure.cause, failure.own_fault) == (cause, cause, fault)
