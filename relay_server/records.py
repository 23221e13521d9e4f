"""What the relay remembers: a dispatch it sent, and a dashboard row. Plain data, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

PENDING, SENT, FAILED = "pending", "sent", "failed"


@dataclass(frozen=True)
class DispatchRecord:
    """One upstream event for one downstream. `repository` is spelt as the allowlist spells it."""

    delivery_id: str
    repository: str
    event_type: str
    upstream: str
    commit: str
    claimed_at: float  # seconds since the epoch, just before the dispatch call
    pull_request: Optional[int] = None
    ref: str = ""
    title: str = ""
    outcome: str = PENDING
    error: str = ""


@dataclass(frozen=True)
class RowKey:
    """What makes two callbacks speak of the same row. `repository` is lower case."""

    delivery_id: str
    repository: str
    run_id: str
    run_attempt: int
    job_name: str


@dataclass(frozen=True)
class FailedTest:
    """A failed test as the dashboard shows it."""

    name: str
    classname: str = ""
    message: str = ""


@dataclass(frozen=True)
class Row:
    """One job of one run of one downstream. Times ending in `_at` that are numbers are the relay's clock."""

    key: RowKey
    repository: str
    level: str
    event_type: str
    upstream: str
    commit: str
    workflow: str
    check_run_id: str
    status: str
    first_seen_at: float
    updated_at: float
    conclusion: Optional[str] = None
    pull_request: Optional[int] = None
    ref: str = ""
    title: str = ""
    url: Optional[str] = None
    artifact_url: Optional[str] = None
    started_at: Optional[str] = None  # the downstream's clock, as sent
    completed_at: Optional[str] = None
    queue_seconds: Optional[float] = None
    execution_seconds: Optional[float] = None
    passed: Optional[int] = None
    failed: Optional[int] = None
    skipped: Optional[int] = None
    total: Optional[int] = None
    failed_tests: tuple[FailedTest, ...] = ()
    in_progress_digest: str = ""  # SHA-256 of the body that made each transition
    completed_digest: str = ""
    revision: int = 1


@dataclass(frozen=True)
class RepositoryTotals:
    """Counts over all rows of one repository; only the last attempt of a job counts."""

    repository: str
    rows: int
    in_progress: int
    succeeded: int
    broken: int  # failure or timed_out: the conclusions that speak against a backend
