"""The callbacks of a row: what in_progress and completed say. Pure but for the clock, which is handed in."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from relay_client.documents.report import Verdict
from relay_client.protocol.callback import CallbackBody, FailedTest, WorkflowReport
from relay_client.protocol.dispatch import DispatchEnvelope
from relay_client.receive.doors import SCHEDULE, Arrival
from relay_client.report.size import fit
from relay_client.runner.context import RunContext, check_run_id


def envelope_to_report(arrival: Arrival, commit: str, upstream: str) -> Optional[DispatchEnvelope]:
    """What a relay knows the run by; None when no relay does.

    A nightly reports itself under the commit of main it tested (pytorch/rfcs, RFC-0056, and test-infra's callback).
    """
    if arrival.door == SCHEDULE:
        payload = {"repository": {"full_name": upstream}, "head_sha": commit}
        return DispatchEnvelope("nightly", commit, payload)
    return arrival.envelope if arrival.reported else None


def in_progress(row: str, context: RunContext, envelope: DispatchEnvelope, now: str) -> CallbackBody:
    """The first callback of a row. `now` is ISO-8601 in UTC."""
    workflow = WorkflowReport(
        status="in_progress",
        name=context.workflow,
        job_name=row,
        check_run_id=check_run_id(context, row),
        run_id=context.run_id,
        run_attempt=context.run_attempt,
        url=context.run_url,
        started_at=now,
    )
    return fit(CallbackBody(envelope.event_type, envelope.delivery_id, envelope.payload, workflow))


def completed(
    start: CallbackBody,
    verdict: Verdict,
    failures: tuple[FailedTest, ...],
    now: str,
    artifact_url: Optional[str],
) -> CallbackBody:
    """The last callback of the row that `start` began."""
    workflow = replace(
        start.workflow,
        status="completed",
        started_at=None,
        conclusion=verdict.conclusion,
        completed_at=now,
        test_results=verdict.results,
        failed_tests_detail=failures or None,
        artifact_url=artifact_url,
    )
    return fit(replace(start, workflow=workflow))
