"""The one query layer of the dashboard. HTML and JSON show the same of these dataclasses.

Pass rate, defined once: of the rows that finished, successes over successes + failures + time-outs.
Cancelled, skipped and neutral rows say nothing about a backend; of a re-run job only the last attempt counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_server.allowlist import Allowlist
from relay_server.records import FailedTest, RepositoryTotals, Row
from relay_server.store import Store

ROWS_SHOWN = 100
RECENT_SHOWN = 12


@dataclass(frozen=True)
class RowView:
    """One row as anyone may see it. `verdict` is the conclusion, or `in_progress`. Times: epoch seconds."""

    repository: str
    level: str
    verdict: str
    status: str
    conclusion: str | None
    event: str
    pull_request: int | None
    ref: str
    title: str
    commit: str
    workflow: str
    job: str
    run_id: str
    run_attempt: int
    url: str | None
    artifact_url: str | None
    passed: int | None
    failed: int | None
    skipped: int | None
    total: int | None
    failed_tests: tuple[FailedTest, ...]
    queue_seconds: float | None
    execution_seconds: float | None
    first_seen_at: float
    updated_at: float
    delivery_id: str


@dataclass(frozen=True)
class Summary:
    """One repository in a line. `level` is `unlisted` for one that has left the allowlist."""

    repository: str
    level: str
    device: str | None
    rows: int
    in_progress: int
    pass_rate: float | None
    last: RowView | None
    recent: tuple[str, ...]  # verdicts, newest last


@dataclass(frozen=True)
class Overview:
    """`GET /crcr`: all repositories, the most integrated first."""

    upstream: str
    repositories: tuple[Summary, ...]


@dataclass(frozen=True)
class RepositoryPage:
    """`GET /crcr/<owner>/<repo>`."""

    upstream: str
    summary: Summary
    rows: tuple[RowView, ...]  # at most ROWS_SHOWN, newest first


@dataclass(frozen=True)
class PullRequestPage:
    """`GET /pr/<number>`."""

    upstream: str
    pull_request: int
    title: str
    rows: tuple[RowView, ...]  # at most ROWS_SHOWN, newest first


def overview(store: Store, allowlist: Allowlist, upstream: str) -> Overview:
    """Everyone on the allowlist, and everyone who has rows."""
    totals = {each.repository.lower(): each for each in store.totals()}
    names = {name: entry.repository for name, entry in allowlist.entries.items()}
    names.update({name: each.repository for name, each in totals.items() if name not in names})
    summaries = [
        _summary(
            name, totals.get(key), allowlist, _views(store.newest_rows_of_repository(name, RECENT_SHOWN))
        )
        for key, name in names.items()
    ]
    # Level first (an unlisted one last), then name.
    rank = {"unlisted": "L0"}
    summaries.sort(key=lambda each: each.repository.lower())
    summaries.sort(key=lambda each: rank.get(each.level, each.level), reverse=True)
    return Overview(upstream, tuple(summaries))


def repository_page(store: Store, allowlist: Allowlist, upstream: str, name: str) -> RepositoryPage | None:
    """One repository, or None if nothing is known of it. Names are case-insensitive."""
    rows = _views(store.newest_rows_of_repository(name, ROWS_SHOWN))
    entry = allowlist.find(name)
    if entry is None and not rows:
        return None
    totals = next((each for each in store.totals() if each.repository.lower() == name.lower()), None)
    shown = entry.repository if entry else rows[0].repository
    return RepositoryPage(upstream, _summary(shown, totals, allowlist, rows[:RECENT_SHOWN]), rows)


def pull_request_page(store: Store, upstream: str, number: int) -> PullRequestPage:
    """One upstream pull request over all repositories; without rows when nobody reported yet."""
    rows = _views(store.newest_rows_of_pull_request(number, ROWS_SHOWN))
    return PullRequestPage(upstream, number, rows[0].title if rows else "", rows)


def pass_rate(totals: RepositoryTotals) -> float | None:
    """Between 0 and 1; None while nothing has finished."""
    judged = totals.succeeded + totals.broken
    return totals.succeeded / judged if judged else None


def _summary(
    name: str, totals: RepositoryTotals | None, allowlist: Allowlist, newest: tuple[RowView, ...]
) -> Summary:
    entry = allowlist.find(name)
    return Summary(
        repository=name,
        level=entry.level if entry else "unlisted",
        device=entry.device if entry else None,
        rows=totals.rows if totals else 0,
        in_progress=totals.in_progress if totals else 0,
        pass_rate=pass_rate(totals) if totals else None,
        last=newest[0] if newest else None,
        recent=tuple(row.verdict for row in reversed(newest)),
    )


def _views(rows: list[Row]) -> tuple[RowView, ...]:
    return tuple(
        RowView(
            repository=row.repository,
            level=row.level,
            verdict=row.conclusion or row.status,
            status=row.status,
            conclusion=row.conclusion,
            event=row.event_type,
            pull_request=row.pull_request,
            ref=row.ref,
            title=row.title,
            commit=row.commit,
            workflow=row.workflow,
            job=row.key.job_name,
            run_id=row.key.run_id,
            run_attempt=row.key.run_attempt,
            url=row.url,
            artifact_url=row.artifact_url,
            passed=row.passed,
            failed=row.failed,
            skipped=row.skipped,
            total=row.total,
            failed_tests=row.failed_tests,
            queue_seconds=row.queue_seconds,
            execution_seconds=row.execution_seconds,
            first_seen_at=row.first_seen_at,
            updated_at=row.updated_at,
            delivery_id=row.key.delivery_id,
        )
        for row in rows
    )
