"""What a downstream answers: the dispatch envelope echoed, and the state of one dashboard row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from . import vocabulary as words
from .shape import ShapeError, member, parse, show

_SOME_TEXT = r"[\s\S]+"
_SOME_TEXT_EXPECTS = "text that is not empty"
_CLOCK = r"[0-9]{2}:[0-9]{2}"
_TIME = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_CLOCK}:[0-9]{{2}}(\.[0-9]{{1,9}})?(Z|[+-]{_CLOCK})"
_TIME_EXPECTS = "an ISO-8601 time with a zone, such as 2026-12-01T08:00:00Z"


@dataclass(frozen=True)
class TestResults:
    """Counts of one row. `total` may be left out; it is then the sum of the others."""

    __test__ = False  # not a pytest class

    passed: int = member("Tests that passed", minimum=0)
    failed: int = member("Tests that failed, crashed or were lost", minimum=0)
    skipped: int = member("Tests that were skipped", minimum=0)
    total: Optional[int] = member("All of them", default=None, minimum=0, omit_none=True)


@dataclass(frozen=True)
class FailedTest:
    """One entry of `failed_tests_detail`."""

    name: str = member("Test method or node id")
    classname: str = member("Test class", default="")
    message: str = member("First line of the failure", default="", max_length=words.MAX_MESSAGE_CHARACTERS)
    stacktrace: str = member("The rest of it", default="", max_length=words.MAX_STACKTRACE_CHARACTERS)
    duration: Optional[float] = member("Seconds", default=None, minimum=0, omit_none=True)


@dataclass(frozen=True)
class WorkflowReport:
    """The state of one dashboard row: which job of which run, and how it stands."""

    status: str = member("in_progress, then completed", one_of=words.STATUSES)
    name: str = member("Name of the workflow", pattern=_SOME_TEXT, expects=_SOME_TEXT_EXPECTS)
    job_name: str = member("Name of the row", pattern=_SOME_TEXT, expects=_SOME_TEXT_EXPECTS)
    check_run_id: str = member(
        "Opaque, the same in both callbacks", pattern=_SOME_TEXT, expects=_SOME_TEXT_EXPECTS
    )
    run_id: str = member("Run of the CI system", pattern=_SOME_TEXT, expects=_SOME_TEXT_EXPECTS)
    run_attempt: int = member("1 for the first attempt", default=1, minimum=1, digits_accepted=True)
    url: Optional[str] = member("Page of the run", default=None)
    conclusion: Optional[str] = member("Null while in progress", default=None, one_of=words.CONCLUSIONS)
    started_at: Optional[str] = member("", default=None, pattern=_TIME, expects=_TIME_EXPECTS)
    completed_at: Optional[str] = member("", default=None, pattern=_TIME, expects=_TIME_EXPECTS)
    schema_version: str = member("Version of this object", default=words.WORKFLOW_SCHEMA_VERSION)
    test_results: Optional[TestResults] = member("Counts", default=None, omit_none=True)
    artifact_url: Optional[str] = member("Where the evidence is", default=None, omit_none=True)
    failed_tests_detail: Optional[tuple[FailedTest, ...]] = member(
        "Failed tests by name", default=None, max_length=words.MAX_FAILED_TESTS, omit_none=True
    )
    triage_verdict: Optional[Mapping[str, Any]] = member(
        "Upstream's advisory verdict", default=None, omit_none=True
    )


@dataclass(frozen=True)
class CallbackBody:
    """The body of `POST /github/callback`."""

    event_type: str = member("Echoed from the dispatch", one_of=words.EVENT_TYPES)
    delivery_id: str = member(
        "Echoed from the dispatch", pattern=r"[\s\S]{1,128}", expects="text of 1 to 128 characters"
    )
    payload: Mapping[str, Any] = member("The upstream webhook body, echoed")
    workflow: WorkflowReport = member("The row")


def parse_callback(value: object) -> CallbackBody:
    """A callback body from decoded JSON, with the rules that span members.

    Raises ShapeError: a completed row has a conclusion, a running one has none.
    """
    body = parse(CallbackBody, value)
    workflow = body.workflow
    if workflow.status == "completed" and workflow.conclusion is None:
        allowed = "one of " + ", ".join(words.CONCLUSIONS) + " when status is completed"
        raise ShapeError("workflow.conclusion", "nothing", allowed)
    if workflow.status == "in_progress" and workflow.conclusion is not None:
        raise ShapeError("workflow.conclusion", show(workflow.conclusion), "null while status is in_progress")
    return body
