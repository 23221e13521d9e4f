"""Keep a callback within what the relay takes: when everything fails, the failures alone are too large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from relay_client.http import encode
from relay_client.protocol.callback import CallbackBody, FailedTest
from relay_client.protocol.shape import dump
from relay_client.protocol.vocabulary import MAX_CALLBACK_BYTES

_MAX_NAME_CHARACTERS = 500
# What stays of each failed test, step by step: characters of the stack trace, of the message.
_STEPS = ((1_000, 1_000), (0, 1_000), (0, 200))


def fit(body: CallbackBody, limit: int = MAX_CALLBACK_BYTES) -> CallbackBody:
    """The body in at most `limit` bytes: shorter texts first, then fewer failed tests. The counts stay."""
    if _size(body) <= limit:
        return body
    for failures in _shorter(body.workflow.failed_tests_detail or ()):
        smaller = replace(body, workflow=replace(body.workflow, failed_tests_detail=failures or None))
        if _size(smaller) <= limit:
            return smaller
    return body


def _shorter(failures: tuple[FailedTest, ...]) -> Iterator[tuple[FailedTest, ...]]:
    for trace, message in _STEPS:
        failures = tuple(
            replace(
                failure,
                name=failure.name[:_MAX_NAME_CHARACTERS],
                classname=failure.classname[:_MAX_NAME_CHARACTERS],
                message=failure.message[:message],
                stacktrace=failure.stacktrace[-trace:] if trace else "",
            )
            for failure in failures
        )
        yield failures
    while failures:
        failures = failures[: len(failures) // 2]
        yield failures


def _size(body: CallbackBody) -> int:
    return len(encode(dump(body)))
