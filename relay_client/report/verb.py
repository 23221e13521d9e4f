"""`crcr report`: say to the relay that a row runs, or how it ended. Report first, fail after."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

from relay_client.documents.document import save
from relay_client.documents.report import Report, Sent, Verdict
from relay_client.errors import RelayRefused, RelayUnreachable, TokenError, UsageError, VerdictNotSuccess
from relay_client.protocol import vocabulary as words
from relay_client.protocol.callback import CallbackBody, FailedTest, WorkflowReport
from relay_client.protocol.dispatch import tested_commit
from relay_client.protocol.shape import dump
from relay_client.receive.decide import untestable
from relay_client.receive.event import ReceivedDispatch, read_dispatch
from relay_client.report.deliver import deliver, explain
from relay_client.report.evidence import read_evidence, read_job_results
from relay_client.report.size import fit
from relay_client.report.summary import write_summary
from relay_client.report.verdict import conclude, failed_tests, reason_of
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext, check_run_id
from relay_client.runner.options import StageOptions, option
from relay_client.token.mint import mint_token

# The production relay's public address (pytorch/test-infra, action cross-repo-ci-relay-callback).
PRODUCTION_RELAY = (
    "https://gwuj7w5coh4y4l66urspge6mnm0pwaxq.lambda-url.us-east-1.on.aws" + words.CALLBACK_PATH
)
_TOKEN_SECONDS = 30.0


@dataclass(frozen=True)
class ReportOptions(StageOptions):
    status: str = option("What to report", default="completed", one_of=words.STATUSES)
    needs: Optional[str] = option(
        "Results of the jobs before, as toJSON(needs) gives them; needed when completed", default=None
    )
    evidence: Optional[Path] = option(
        "Folder below which the evidence of all shards lies (default: the run folder)",
        default=None,
        shell_only=True,
    )
    row: str = option("Name of the dashboard row, the same for both reports", default="test")
    relay_url: str = option("Address of the relay's callback", default=PRODUCTION_RELAY)
    audience: str = option("Audience of the OIDC token, as the relay wants it", default=words.AUDIENCE)
    if_rejected: str = option(
        "Whether a callback the relay does not take fails the job", default="warn", one_of=("warn", "fail")
    )
    event_file: Optional[Path] = option(
        "Event file to read instead of the run's own ($GITHUB_EVENT_PATH)", default=None, shell_only=True
    )
    upstream: str = option(
        "Repository whose events are accepted, owner/name", default=words.UPSTREAM_REPOSITORY
    )


OPTIONS = (ReportOptions,)

OUTPUTS = {
    "conclusion": "success, failure or cancelled; empty while in progress",
    "delivery": "delivered, ignored, refused, undelivered, or none when there was nothing to report",
    "outbox": "Folder of callbacks that could not be delivered; empty when there are none",
    "outbox-name": "Name for the artifact that keeps them",
}


def run(options: ReportOptions, context: RunContext, commands: Commands) -> None:
    """Raises VerdictNotSuccess after the report, and with `if-rejected: fail` RelayRefused or RelayUnreachable."""
    context.require_run()
    dispatch = read_dispatch(options.event_file or context.event_path, options.upstream)
    nothing = untestable(dispatch.event)
    if nothing is not None:
        commands.notice(f"Nothing to report: {nothing.reason}.")
        commands.output("conclusion", "")
        commands.output("delivery", "none")
        return
    verdict, failures = _verdict(options, context, dispatch)
    body = _body(options, context, dispatch, verdict, failures)
    folder = context.run_folder(options.run_dir)
    commands.output("conclusion", verdict.conclusion if verdict else "")
    commands.line(f"Reporting {options.status} of row {options.row} to {options.relay_url}")
    try:
        sent = deliver(options.relay_url, body, lambda: _token(options, context, commands))
    except TokenError:
        commands.output("delivery", "undelivered")
        _keep(body, options, folder, commands)
        raise
    report = Report(options.row, body.workflow.check_run_id, sent, verdict)
    save(report, folder)
    if sent.delivery == "undelivered":
        _keep(body, options, folder, commands)
    commands.output("delivery", sent.delivery)
    write_summary(commands, report, tested_commit(dispatch.event), failures)
    _say_delivery(sent, options, commands)
    if verdict is not None and verdict.conclusion != "success":
        raise VerdictNotSuccess(
            f"The row {options.row} is {verdict.conclusion}.",
            seen="; ".join(verdict.reasons)[:2_000],
            fix="see the failed tests above and the log of the job that ran them",
        )


def _verdict(
    options: ReportOptions, context: RunContext, dispatch: ReceivedDispatch
) -> tuple[Optional[Verdict], tuple[FailedTest, ...]]:
    if options.status != "completed":
        return None, ()
    if options.needs is None:
        raise UsageError(
            "needs is not given, so nobody knows how the jobs before ended.",
            seen="neither --needs nor $CRCR_NEEDS",
            fix="add to the step, literally: `needs: ${{ toJSON(needs) }}`",
        )
    folder = options.evidence or context.run_folder(options.run_dir)
    found = read_evidence(folder, options.row)
    faults = [*map(reason_of, found.failures), *found.unreadable]
    verdict = conclude(tested_commit(dispatch.event), read_job_results(options.needs), found.evidence, faults)
    return verdict, failed_tests(found.evidence, found.failures)


def _body(
    options: ReportOptions,
    context: RunContext,
    dispatch: ReceivedDispatch,
    verdict: Optional[Verdict],
    failures: tuple[FailedTest, ...],
) -> CallbackBody:
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    workflow = WorkflowReport(
        status=options.status,
        name=context.workflow,
        job_name=options.row,
        check_run_id=check_run_id(context, options.row),
        run_id=context.run_id,
        run_attempt=context.run_attempt,
        url=context.run_url,
    )
    if verdict is None:
        workflow = replace(workflow, started_at=now)
    else:
        workflow = replace(
            workflow,
            conclusion=verdict.conclusion,
            completed_at=now,
            test_results=verdict.results,
            failed_tests_detail=failures or None,
        )
    envelope = dispatch.envelope
    return fit(CallbackBody(envelope.event_type, envelope.delivery_id, envelope.payload, workflow))


def _token(options: ReportOptions, context: RunContext, commands: Commands) -> str:
    token = mint_token(context.environment, options.audience, _TOKEN_SECONDS)
    commands.mask(token)
    return token


def _keep(body: CallbackBody, options: ReportOptions, folder: Path, commands: Commands) -> None:
    """Put what could not be delivered into the outbox. No token is in it."""
    outbox = folder / "outbox"
    outbox.mkdir(parents=True, exist_ok=True)
    letter = {"url": options.relay_url, "audience": options.audience, "body": dump(body)}
    path = outbox / f"{body.workflow.check_run_id}-{body.workflow.status}.json"
    path.write_text(json.dumps(letter) + "\n", encoding="utf-8")
    commands.output("outbox", str(outbox))
    commands.output("outbox-name", f"crcr-outbox-{body.workflow.check_run_id}-{options.status}")


def _say_delivery(sent: Sent, options: ReportOptions, commands: Commands) -> None:
    answer = f"HTTP {sent.http_status}: {sent.answer}" if sent.http_status else sent.answer
    if sent.delivery == "delivered":
        commands.line(f"Delivered after {sent.attempts} attempt(s).")
        return
    error = (RelayUnreachable if sent.delivery == "undelivered" else RelayRefused)(
        f"The dashboard will not show this {sent.status} report: {sent.delivery}.",
        seen=f"{answer} (after {sent.attempts} attempt(s) to {sent.url})",
        fix=explain(sent),
    )
    if options.if_rejected == "fail":
        raise error
    commands.warning(error.text(), title=f"crcr: result {sent.delivery}")
