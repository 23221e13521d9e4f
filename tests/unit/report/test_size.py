"""A callback fits what the relay takes, whatever failed."""

from __future__ import annotations

import pytest

from relay_client.http import encode
from relay_client.protocol.callback import (
    CallbackBody,
    FailedTest,
    TestResults,
    WorkflowReport,
    parse_callback,
)
from relay_client.protocol.shape import dump
from relay_client.protocol.vocabulary import (
    MAX_CALLBACK_BYTES,
    MAX_FAILED_TESTS,
    MAX_MESSAGE_CHARACTERS,
    MAX_STACKTRACE_CHARACTERS,
)
from relay_client.report.size import fit


def body(*failures: FailedTest) -> CallbackBody:
    results = TestResults(0, len(failures), 0, len(failures))
    return CallbackBody(
        "push",
        "guid",
        {"ref": "refs/heads/main"},
        WorkflowReport(
            "completed", "CRCR", "test", "1-1", "1",
            conclusion="failure", test_results=results, failed_tests_detail=failures or None,
        ),
    )  # fmt: skip


def test_a_body_that_fits_is_not_touched() -> None:
    small = body(FailedTest("a", stacktrace="x" * MAX_STACKTRACE_CHARACTERS))
    assert fit(small) is small


@pytest.mark.parametrize("character", ["x", "ü", "💥"])
def test_when_everything_fails_every_name_and_message_stays_and_the_traces_go(character: str) -> None:
    failure = FailedTest(
        "test", "Class", character * 200, "head" + character * (MAX_STACKTRACE_CHARACTERS - 4)
    )
    fitted = fit(body(*(failure,) * MAX_FAILED_TESTS))
    assert len(encode(dump(fitted))) <= MAX_CALLBACK_BYTES
    parse_callback(dump(fitted))
    detail = fitted.workflow.failed_tests_detail or ()
    assert len(detail) == MAX_FAILED_TESTS
    assert {item.message for item in detail} == {failure.message}
    assert fitted.workflow.test_results == TestResults(0, MAX_FAILED_TESTS, 0, MAX_FAILED_TESTS)


def test_the_end_of_a_trace_stays_as_long_as_anything_of_it_does() -> None:
    failure = FailedTest("a", stacktrace="x" * 4_000 + "AssertionError")
    detail = fit(body(*(failure,) * 100), limit=200_000).workflow.failed_tests_detail or ()
    assert {item.stacktrace for item in detail} == {"x" * (1_000 - 14) + "AssertionError"}


@pytest.mark.parametrize("limit", [400, 5_000, 100_000])
def test_hostile_names_and_a_small_limit_leave_fewer_tests_and_the_counts(limit: int) -> None:
    failure = FailedTest("n" * 1_000_000, "c" * 1_000_000, "m" * MAX_MESSAGE_CHARACTERS)
    fitted = fit(body(*(failure,) * 10), limit=limit)
    assert len(encode(dump(fitted))) <= max(limit, len(encode(dump(body()))) + 100)
    assert fitted.workflow.test_results == TestResults(0, 10, 0, 10)
