"""`crcr report`: say to the relay that a row runs, or how it ended. Report first, fail after."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

from relay_client.documents.document import save
from relay_client.documents.report import Report, Sent, Verdict
from relay_client.errors import RelayRefused, RelayUnreachable, TokenError, UsageError, VerdictNotSuccess
from relay_client.protocol import vocabulary as words
from relay_client.protocol.callback import FailedTest
from relay_client.protocol.dispatch import DispatchEnvelope, tested_commit
from relay_client.protocol.shape import show
from relay_client.receive.doors import Arrival
from relay_client.receive.event import read_arrival
from relay_client.receive.untestable import untestable
from relay_client.report.body import completed, envelope_to_report, in_progress
from relay_client.report.deliver import Courier, explain
from relay_client.report.options import GatherOptions
from relay_client.report.outbox import Letter, keep
from relay_client.report.summary import write_summary
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option
from relay_client.token.mint import mint_token

# The production relay's public address (pytorch/test-infra, action cross-repo-ci-relay-callback).
PRODUCTION_RELAY = (
    "https://gwuj7w5coh4y4l66urspge6mnm0pwaxq.lambda-url.us-east-1.on.aws" + words.CALLBACK_PATH
)
_TOKEN_SECONDS = 30.0


@dataclass(frozen=True)
class ReportOptions(GatherOptions):
    status: str = option("What to report", default="completed", one_of=words.STATUSES)
    relay_url: str = option("Address of the relay's callback", default=PRODUCTION_RELAY)
    audience: str = option("Audience of the OIDC token, as the relay wants it", default=words.AUDIENCE)
    if_rejected: str = option(
        "Whether a callback the relay does not take fails the job", default="warn", one_of=("warn", "fail")
    )
    artifact_url: Optional[str] = option("Where the evidence can be looked at", default=None)
    event_file: Optional[Path] = option(
        "Event file to read instead of the run's own ($GITHUB_EVENT_PATH)", default=None, shell_only=True
    )
    upstream: str = option(
        "Repository whose events are accepted, owner/name", default=words.UPSTREAM_REPOSITORY
    )


OPTIONS = (ReportOptions,)

OUTPUTS = {
    "conclusion": "success, failure, cancelled, timed_out or skipped; empty while in progress",
    "delivery": "delivered, ignored, refused, undelivered, or none when there was nothing to report",
    "outbox": "Folder of callbacks that could not be delivered; empty when there are none",
    "outbox-name": "Name for the artifact that keeps them",
}


def run(options: ReportOptions, context: RunContext, commands: Commands) -> None:
    """Raises VerdictNotSuccess after the report, and with `if-rejected: fail` RelayRefused or RelayUnreachable."""
    context.require_run()
    arrival = read_arrival(options.event_file or context.event_path, options.upstream)
    nothing = untestable(arrival.event) if arrival.event is not None else None
    if nothing is not None:
        commands.notice(f"Nothing to report: {nothing.reason}.")
        commands.output("conclusion", "")
        commands.output("delivery", "none")
        return
    commit = _tested(options, arrival)
    verdict, failures = _verdict(options, context, commit, commands)
    commands.output("conclusion", verdict.conclusion if verdict else "")
    envelope = envelope_to_report(arrival, commit, options.upstream)
    if envelope is None or (verdict is None and envelope.event_type not in words.DISPATCHED_EVENTS):
        why = f"a run by {arrival.door} has no row" if envelope is None else "a nightly reports only its end"
        commands.notice(f"Nothing is sent to the relay: {why}.")
        commands.output("delivery", "none")
    else:
        report = _send(options, context, commands, envelope, verdict, failures)
        write_summary(commands, report, commit, failures)
        _say_delivery(report.sent, options, commands)
    if verdict is not None and verdict.conclusion not in ("success", "skipped"):
        raise VerdictNotSuccess(
            f"The row {options.row} is {verdict.conclusion}.",
            seen="; ".join(verdict.reasons)[:2_000],
            fix="see the failed tests above and the log of the job that ran them",
        )


def _send(
    options: ReportOptions,
    context: RunContext,
    commands: Commands,
    envelope: DispatchEnvelope,
    verdict: Optional[Verdict],
    failures: tuple[FailedTest, ...],
) -> Report:
    """Send the callback, and keep it when it does not arrive. Raises TokenError."""
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    start = in_progress(options.row, context, envelope, now)
    letter = Letter(options.relay_url, options.audience, start)
    if verdict is not None:
        end = completed(start, verdict, failures, now, options.artifact_url)
        has_start = envelope.event_type in words.DISPATCHED_EVENTS
        letter = Letter(options.relay_url, options.audience, end, start if has_start else None)
    folder = context.run_folder(options.run_dir)
    commands.line(f"Reporting {options.status} of row {options.row} to {options.relay_url}")
    courier = Courier(options.relay_url, token_minter(context, options.audience, commands))
    try:
        # "Re-run failed jobs" does not run the job again that reports the start.
        sent = courier.report(letter.body, letter.start, start_first=context.run_attempt > 1)
    except TokenError:
        commands.output("delivery", "undelivered")
        _keep(letter, folder, commands)
        raise
    report = Report(options.row, start.workflow.check_run_id, sent, verdict)
    save(report, folder)
    if sent.delivery in ("undelivered", "refused"):
        _keep(letter, folder, commands)
    commands.output("delivery", sent.delivery)
    return report


def _tested(options: ReportOptions, arrival: Arrival) -> str:
    """The commit the row is about. Raises UsageError."""
    commit = options.commit or (tested_commit(arrival.event) if arrival.event is not None else "")
    if not re.fullmatch(words.SHA_PATTERN, commit):
        raise UsageError(
            "commit is not a full commit SHA.",
            seen=show(commit),
            fix="add to the step, literally: `commit: ${{ needs.receive.outputs.commit }}`",
        )
    return commit


def token_minter(context: RunContext, audience: str, commands: Commands) -> Callable[[], str]:
    """Mints a token each time it is called, masked in the log before anything else sees it."""

    def mint() -> str:
        token = mint_token(context.environment, audience, _TOKEN_SECONDS)
        commands.mask(token)
        return token

    return mint


def _verdict(
    options: ReportOptions, context: RunContext, commit: str, commands: Commands
) -> tuple[Optional[Verdict], tuple[FailedTest, ...]]:
    if options.status != "completed":
        return None, ()
    if options.needs is None:
        raise UsageError(
            "needs is not given, so nobody knows how the jobs before ended.",
            seen="neither --needs nor $CRCR_NEEDS",
            fix="add to the step, literally: `needs: ${{ toJSON(needs) }}`",
        )
    # Only here: a first report does not pay for reading evidence, and the tests wait for it.
    from relay_client.report.gather import gather

    return gather(options, context, commit, commands)


def _keep(letter: Letter, folder: Path, commands: Commands) -> None:
    path = keep(letter, folder / "outbox")
    workflow = letter.body.workflow
    commands.output("outbox", str(path.parent))
    commands.output("outbox-name", f"crcr-outbox-{workflow.check_run_id}-{workflow.status}")
    commands.line(f"Kept for later: {path}. Send it with `crcr resend {path.parent}`.")


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
