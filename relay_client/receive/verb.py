"""`crcr receive`: read the dispatch, decide, leave `receive.json` and the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from relay_client.documents.document import save
from relay_client.documents.receive import Receive
from relay_client.errors import NothingToRun
from relay_client.protocol import vocabulary as words
from relay_client.receive.decide import decide, describe
from relay_client.receive.event import read_dispatch
from relay_client.runner.commands import Commands, markdown_text
from relay_client.runner.context import RunContext
from relay_client.runner.options import StageOptions, option


@dataclass(frozen=True)
class ReceiveOptions(StageOptions):
    event_file: Optional[Path] = option(
        "Event file to read instead of the run's own ($GITHUB_EVENT_PATH)", default=None, shell_only=True
    )
    upstream: str = option(
        "Repository whose events are accepted, owner/name", default=words.UPSTREAM_REPOSITORY
    )
    exit_code: bool = option(
        "Whether to end with exit code 3 when there is nothing to run", default=False, shell_only=True
    )


OPTIONS = (ReceiveOptions,)

OUTPUTS = {
    "should-run": "true when the tests should run, else false",
    "reason": "One sentence that says why",
    "outcome": "run, closed, deleted-ref or deleted-fork",
    "event-type": "pull_request or push",
    "commit": "The upstream commit to test, 40 hexadecimal digits",
    "base-commit": "What it is compared with; empty when unknown",
    "pull-request": "Number of the pull request; empty for a push",
    "delivery-id": "GUID of the upstream delivery",
}


def run(options: ReceiveOptions, context: RunContext, commands: Commands) -> None:
    """Raises EventError when what arrived is no dispatch, NothingToRun if asked for."""
    dispatch = read_dispatch(options.event_file or context.event_path, options.upstream)
    received = describe(dispatch.envelope, dispatch.event, decide(dispatch.event))
    save(received, context.run_folder(options.run_dir))
    for name, value in outputs(received).items():
        commands.output(name, value)
    _show(received, commands)
    if options.exit_code and not received.decision.should_run:
        raise NothingToRun(
            "There is nothing to run.", seen=received.decision.reason, fix="leave out --exit-code to pass"
        )


def outputs(received: Receive) -> dict[str, str]:
    """The step's outputs: validated values only, none of them free text of a stranger."""
    return {
        "should-run": str(received.decision.should_run).lower(),
        "reason": received.decision.reason,
        "outcome": received.decision.outcome,
        "event-type": received.event_type,
        "commit": received.commit,
        "base-commit": received.base_commit or "",
        "pull-request": str(received.pull_request or ""),
        "delivery-id": received.delivery_id,
    }


def _show(received: Receive, commands: Commands) -> None:
    decision = received.decision
    subject = f"pull request {received.pull_request}" if received.pull_request else "push"
    verdict = "run" if decision.should_run else "do not run"
    commands.notice(f"{received.upstream} {subject}: {verdict}, because {decision.reason}.")
    commands.summary(
        f"### {'▶️ Run' if decision.should_run else '⏭️ Not run'}: {subject}\n\n"
        f"{markdown_text(decision.reason)}.\n\n"
        "| | |\n|---|---|\n"
        f"| commit | `{received.commit}` |\n"
        f"| upstream | {markdown_text(received.upstream)} |\n"
        f"| delivery | {markdown_text(received.delivery_id)} |\n"
    )
