"""From an accepted callback to a dashboard row. Pure: the clock and the previous row come as data."""

from __future__ import annotations

from relay_client.protocol.callback import CallbackBody
from relay_server.gates.lifecycle import Step
from relay_server.gates.provenance import echoed
from relay_server.records import DispatchRecord, FailedTest, Row

_TEXT_CHARACTERS = 300  # of each text of a failed test; the downstream's own page has the rest


def row_from(body: CallbackBody, digest: str, step: Step, *, repository: str, level: str, now: float) -> Row:
    """The row after this callback. `now` is seconds since the epoch; durations are the relay's own clock's.

    Queue time runs from the dispatch to the start of the first attempt: a re-run was not waited for.
    """
    workflow, previous, dispatch = body.workflow, step.previous, step.dispatch
    upstream, commit = echoed(body)
    counts = workflow.test_results
    running = workflow.status == "in_progress"
    return Row(
        key=step.key,
        repository=repository,
        level=level,
        event_type=body.event_type,
        upstream=upstream,
        commit=commit,
        workflow=workflow.name,
        check_run_id=workflow.check_run_id,
        status=workflow.status,
        first_seen_at=previous.first_seen_at if previous else now,
        updated_at=now,
        conclusion=workflow.conclusion,
        pull_request=dispatch.pull_request if dispatch else None,
        ref=dispatch.ref if dispatch else "",
        title=dispatch.title if dispatch else "",
        url=workflow.url or (previous.url if previous else None),
        artifact_url=workflow.artifact_url,
        started_at=workflow.started_at or (previous.started_at if previous else None),
        completed_at=workflow.completed_at,
        queue_seconds=_queue_seconds(step, dispatch, now),
        execution_seconds=now - previous.first_seen_at if previous and dispatch and not running else None,
        passed=counts.passed if counts else None,
        failed=counts.failed if counts else None,
        skipped=counts.skipped if counts else None,
        total=_total(counts.passed + counts.failed + counts.skipped, counts.total) if counts else None,
        failed_tests=tuple(
            FailedTest(*(text[:_TEXT_CHARACTERS] for text in (test.name, test.classname, test.message)))
            for test in workflow.failed_tests_detail or ()
        ),
        in_progress_digest=digest if running else (previous.in_progress_digest if previous else ""),
        completed_digest="" if running else digest,
        revision=previous.revision + 1 if previous else 1,
    )


def _total(summed: int, stated: int | None) -> int:
    return summed if stated is None else stated


def _queue_seconds(step: Step, dispatch: DispatchRecord | None, now: float) -> float | None:
    if step.previous:
        return step.previous.queue_seconds
    return now - dispatch.claimed_at if dispatch and step.key.run_attempt == 1 else None
