"""What the jobs API knows more than `needs`: whether a cancelled job hit its time limit.

GitHub ends a job at its `timeout-minutes` with the conclusion `cancelled`, as if somebody had cancelled it
(docs.github.com, "Workflow syntax", jobs.<job_id>.timeout-minutes). What tells the two apart is how long it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from relay_client.http import Answer, TransportError, request_json
from relay_client.protocol.shape import ShapeError, member, parse
from relay_client.runner.context import RunContext

_SECONDS = 20.0
_PER_PAGE = 100
_MAX_PAGES = 10
_PERMISSION = "add to the report job: `permissions: { actions: read }`"


@dataclass(frozen=True)
class JobTimes:
    """One job as the API tells it. Times are ISO-8601, or None while it has not come so far."""

    name: str = member("Name, not id")
    conclusion: Optional[str] = member("Null while it runs", default=None)
    created_at: Optional[str] = member("When it was queued", default=None)
    started_at: Optional[str] = member("", default=None)
    completed_at: Optional[str] = member("", default=None)

    def minutes(self) -> Optional[float]:
        """How long it ran; None when that is not known."""
        try:
            started, completed = (
                datetime.fromisoformat((text or "").replace("Z", "+00:00"))
                for text in (self.started_at, self.completed_at)
            )
            return (completed - started).total_seconds() / 60
        except (ValueError, TypeError):
            return None


def refine(
    results: Mapping[str, str], jobs: Sequence[JobTimes], limit_minutes: float
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The results of `needs` with `timed_out` for `cancelled` where that is what happened, and remarks. Pure.

    `needs` has ids and the API has names, so no single job can be looked up: only when every cancelled job of the
    run hit its limit, and the run itself was therefore not cancelled, is it said of those in `needs`.
    """
    cancelled = [job for job in jobs if job.conclusion in ("cancelled", "timed_out")]
    over = [job for job in cancelled if _hit_limit(job, limit_minutes)]
    # Jobs that never started were waiting for one that hit its limit.
    started = [job for job in cancelled if job.minutes() is not None]
    if not over or len(over) < len(started):
        return dict(results), ()
    remarks = tuple(
        f"{job.name} ran {job.minutes() or 0:.0f} minutes; its limit is {limit_minutes:.0f}" for job in over
    )
    return {job: "timed_out" if result == "cancelled" else result for job, result in results.items()}, remarks


def _hit_limit(job: JobTimes, limit_minutes: float) -> bool:
    minutes = job.minutes()
    return job.conclusion == "timed_out" or (minutes is not None and minutes >= limit_minutes)


def ask_jobs(
    context: RunContext, token: str, request: Callable[..., Answer] = request_json
) -> tuple[Optional[tuple[JobTimes, ...]], str]:
    """The jobs of this attempt of the run, or None and why they could not be had.

    Source: docs.github.com, REST API, "List jobs for a workflow run attempt"; needs `actions: read`.
    """
    if not token:
        return None, "there is no github-token to ask the jobs API with"
    api = context.environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
    path = f"/repos/{context.repository}/actions/runs/{context.run_id}/attempts/{context.run_attempt}/jobs"
    found: list[JobTimes] = []
    for page in range(1, _MAX_PAGES + 1):
        url = f"{api}{path}?per_page={_PER_PAGE}&page={page}"
        try:
            answer = request("GET", url, deadline_seconds=_SECONDS, bearer=token)
        except TransportError as error:
            return None, f"the jobs API did not answer: {error.reason}"
        if answer.status != 200:
            hint = f"; {_PERMISSION}" if answer.status in (401, 403, 404) else ""
            return None, f"the jobs API answered HTTP {answer.status}{hint}"
        jobs = _jobs_of(answer.body)
        if jobs is None:
            return None, "the jobs API answered something that is no list of jobs"
        found += jobs
        if len(jobs) < _PER_PAGE:
            break
    return tuple(found), ""


def _jobs_of(body: Any) -> Optional[list[JobTimes]]:
    try:
        return [parse(JobTimes, item) for item in body["jobs"]]
    except (ShapeError, TypeError, KeyError):
        return None
