"""What the jobs API adds: a time limit is no cancellation, and a refusal of the API is said."""

from __future__ import annotations

from typing import Any

import pytest
from local_http import LocalServer, Reply

from relay_client.report.jobs import JobTimes, ask_jobs, refine
from relay_client.runner.context import read_context

PATH = "/repos/o/r/actions/runs/7/attempts/2/jobs"
JOB = {
    "id": 5,
    "name": "Build and test",
    "status": "completed",
    "conclusion": "cancelled",
    "created_at": "2026-12-01T00:00:00Z",
    "started_at": "2026-12-01T00:10:00Z",
    "completed_at": "2026-12-01T02:10:07Z",
    "steps": [],
}


def ask(server: LocalServer, *replies: Reply) -> tuple[Any, str]:
    server.answer(PATH, *replies)
    environment = {
        "GITHUB_API_URL": server.url, "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "2",
    }  # fmt: skip
    return ask_jobs(read_context(environment), "the-token")


def test_the_jobs_of_this_attempt_are_asked_for_with_the_token(server: LocalServer) -> None:
    jobs, why = ask(server, Reply(200, {"total_count": 1, "jobs": [JOB]}))
    assert why == ""
    assert [(job.name, round(job.minutes() or 0)) for job in jobs] == [("Build and test", 120)]
    (request,) = server.asked(PATH)
    assert request.headers["authorization"] == "Bearer the-token"


def test_all_pages_are_read(server: LocalServer) -> None:
    jobs, _ = ask(server, Reply(200, {"jobs": [JOB] * 100}), Reply(200, {"jobs": [JOB] * 3}))
    assert len(jobs) == 103
    assert [request.path.rpartition("page=")[2] for request in server.asked(PATH)] == ["1", "2"]


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (Reply(403, {"message": "Resource not accessible by integration"}), "actions: read"),
        (Reply(404, {}), "actions: read"),
        (Reply(500, {}), "HTTP 500"),
        (Reply(200, b"<html>"), "no list of jobs"),
        (Reply(200, {"jobs": [{"name": 5}]}), "no list of jobs"),
        (Reply(200, {"jobs": None}), "no list of jobs"),
    ],
)
def test_what_the_api_does_not_tell_is_said(server: LocalServer, reply: Reply, word: str) -> None:
    jobs, why = ask(server, reply)
    assert jobs is None
    assert word in why


def test_without_a_token_nobody_is_asked(server: LocalServer) -> None:
    assert ask_jobs(read_context({"GITHUB_API_URL": server.url}), "")[0] is None
    assert server.requests == []


def job(minutes: float, conclusion: str = "cancelled") -> JobTimes:
    end = f"2026-12-01T{int(minutes) // 60:02}:{int(minutes) % 60:02}:00Z"
    return JobTimes("x", conclusion, "2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z", end)


WAITED = JobTimes("waited", "cancelled", "2026-12-01T00:00:00Z", None, None)


@pytest.mark.parametrize(
    ("jobs", "result"),
    [
        ([], "cancelled"),
        ([job(60)], "timed_out"),
        ([job(59)], "cancelled"),
        ([job(60), job(59)], "cancelled"),
        ([job(60), job(61)], "timed_out"),
        ([job(60), WAITED], "timed_out"),
        ([WAITED], "cancelled"),
        ([job(60), job(10, "success"), job(90, "failure")], "timed_out"),
        ([job(5, "timed_out")], "timed_out"),
        ([JobTimes("odd", "cancelled", None, "yesterday", "today")], "cancelled"),
        ([JobTimes("odd", "cancelled", None, "2026-12-01T00:00:00", "2026-12-01T09:00:00Z")], "cancelled"),
    ],
)
def test_when_a_cancelled_job_hit_its_limit(jobs: list[JobTimes], result: str) -> None:
    refined, remarks = refine({"a": "success", "test": "cancelled"}, jobs, 60)
    assert refined == {"a": "success", "test": result}
    assert bool(remarks) == (result == "timed_out")
