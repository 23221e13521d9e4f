"""The callback body: its members, and the rules that span them."""

from __future__ import annotations

from typing import Any

import pytest

from relay_client.protocol.callback import parse_callback
from relay_client.protocol.shape import ShapeError, dump
from relay_client.protocol.vocabulary import CONCLUSIONS, MAX_FAILED_TESTS

NOT_EMPTY = "text that is not empty"
A_TIME = "an ISO-8601 time with a zone, such as 2026-12-01T08:00:00Z, or null"


def body(**workflow: Any) -> dict[str, Any]:
    return {
        "event_type": "pull_request",
        "delivery_id": "8f0c1d2e",
        "payload": {"anything": ["goes"]},
        "workflow": {
            "status": "in_progress",
            "name": "CRCR",
            "job_name": "test",
            "check_run_id": "77-1-9f86d081",
            "run_id": "77",
            **workflow,
        },
    }


# As the production action sends it (pytorch/test-infra, cross-repo-ci-relay-callback, September 2026).
PRODUCTION = body(
    status="completed",
    conclusion="success",
    schema_version="1",
    url="https://github.com/example-downstream/backend/actions/runs/77",
    run_attempt="1",
    started_at=None,
    completed_at="2026-09-01T10:00:00.123456Z",
    test_results={"passed": 3, "failed": 0, "skipped": 1},
    failed_tests_detail=[
        {"name": "test_a", "classname": "A", "message": "", "stacktrace": "", "duration": 0.5}
    ],
    triage_verdict={"advice": "none"},
)


def test_the_production_clients_body_is_accepted() -> None:
    parsed = parse_callback(PRODUCTION)
    assert parsed.workflow.run_attempt == 1
    assert parsed.workflow.test_results is not None
    assert parsed.workflow.test_results.total is None


def test_a_minimal_running_row_is_accepted_and_dumps_without_the_optional_extensions() -> None:
    value = dump(parse_callback(body()))
    assert value["payload"] == {"anything": ["goes"]}
    assert value["workflow"]["conclusion"] is None
    assert not {"test_results", "artifact_url", "failed_tests_detail", "triage_verdict"} & set(
        value["workflow"]
    )


@pytest.mark.parametrize(
    ("workflow", "field", "found", "allowed"),
    [
        (
            {"status": "completed"},
            "workflow.conclusion",
            "nothing",
            "one of " + ", ".join(CONCLUSIONS) + " when status is completed",
        ),
        ({"conclusion": "success"}, "workflow.conclusion", '"success"', "null while status is in_progress"),
    ],
)
def test_status_and_conclusion_must_go_together(
    workflow: dict[str, str], field: str, found: str, allowed: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        parse_callback(body(**workflow))
    assert (caught.value.field, caught.value.found, caught.value.allowed) == (field, found, allowed)


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
def test_every_conclusion_of_github_is_accepted(conclusion: str) -> None:
    assert parse_callback(body(status="completed", conclusion=conclusion)).workflow.conclusion == conclusion


@pytest.mark.parametrize(
    ("name", "value", "field", "found", "allowed"),
    [
        ("status", "queued", "status", '"queued"', "one of in_progress, completed"),
        ("name", "", "name", '""', NOT_EMPTY),
        ("job_name", "", "job_name", '""', NOT_EMPTY),
        ("run_id", 77, "run_id", "77", NOT_EMPTY),
        ("check_run_id", None, "check_run_id", "null", NOT_EMPTY),
        ("run_attempt", "0", "run_attempt", "0", "a whole number, 1 or more"),
        ("run_attempt", "first", "run_attempt", '"first"', "a whole number, 1 or more"),
        ("started_at", "yesterday", "started_at", '"yesterday"', A_TIME),
        ("completed_at", "2026-09-01T10:00:00", "completed_at", '"2026-09-01T10:00:00"', A_TIME),
        (
            "started_at",
            "٢٠٢٦-09-01T10:00:00Z",
            "started_at",
            '"\\u0662\\u0660\\u0662\\u0666-09-01T10:00:00Z"',
            A_TIME,
        ),
        ("test_results", [3, 0, 1], "test_results", "[3, 0, 1]", "a JSON object"),
        ("test_results", {"passed": 1}, "test_results.failed", "nothing", "a whole number, 0 or more"),
        (
            "test_results",
            {"passed": -1, "failed": 0, "skipped": 0},
            "test_results.passed",
            "-1",
            "a whole number, 0 or more",
        ),
        ("failed_tests_detail", [{}], "failed_tests_detail[0].name", "nothing", "text"),
        (
            "failed_tests_detail",
            [{"name": "t"}] * (MAX_FAILED_TESTS + 1),
            "failed_tests_detail",
            "1001 items",
            "a JSON array of at most 1000 items, or null",
        ),
        (
            "failed_tests_detail",
            [{"name": "t", "duration": float("nan")}],
            "failed_tests_detail[0].duration",
            "NaN",
            "a number, 0 or more, or null",
        ),
        ("triage_verdict", "advice", "triage_verdict", '"advice"', "a JSON object, or null"),
    ],
)
def test_a_wrong_member_of_the_row_is_named(
    name: str, value: object, field: str, found: str, allowed: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        parse_callback(body(**{name: value}))
    assert caught.value.field == f"workflow.{field}"
    assert (caught.value.found, caught.value.allowed) == (found, allowed)


@pytest.mark.parametrize(
    ("name", "value"),
    [("event_type", "check_run"), ("delivery_id", ""), ("delivery_id", "x" * 129), ("payload", None)],
)
def test_a_wrong_member_of_the_envelope_is_named(name: str, value: object) -> None:
    with pytest.raises(ShapeError) as caught:
        parse_callback({**body(), name: value})
    assert caught.value.field == name
