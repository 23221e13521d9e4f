"""`crcr receive`: read the event, decide, choose the commit, leave `receive.json` and the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Optional

from relay_client.documents.document import save
from relay_client.documents.receive import Decision, Receive
from relay_client.errors import NothingToRun, RemoteUnreachable
from relay_client.protocol import vocabulary as words
from relay_client.protocol.dispatch import PushEvent, UpstreamEvent, tested_commit
from relay_client.receive.began import run_began
from relay_client.receive.commit import Chosen, choose
from relay_client.receive.condition.facts import Facts
from relay_client.receive.decide import (
    DEFAULT_APPROVAL_LABEL,
    DEFAULT_TRUSTED_AUTHORS,
    DEFAULT_WHEN,
    decide,
)
from relay_client.receive.doors import Arrival
from relay_client.receive.event import read_arrival
from relay_client.receive.subject import describe, subject_of, trust_of
from relay_client.receive.trust import TrustPolicy
from relay_client.receive.upstream import Upstream
from relay_client.runner.commands import Commands, markdown_text
from relay_client.runner.context import RunContext
from relay_client.runner.options import StageOptions, option


@dataclass(frozen=True)
class ReceiveOptions(StageOptions):
    when: str = option(
        "Which dispatches run the tests: an expression, see docs/receive.md", default=DEFAULT_WHEN
    )
    trusted_authors: tuple[str, ...] = option(
        "Whose unlanded code may run: associations of authors with the upstream repository",
        default=DEFAULT_TRUSTED_AUTHORS,
        one_of=words.AUTHOR_ASSOCIATIONS,
        words=True,
    )
    approval_label: str = option(
        "Label of upstream that lets the code of anybody else run", default=DEFAULT_APPROVAL_LABEL
    )
    commit: str = option(
        "Which commit to test: event, pr-head, pr-merge, landed, base-head, nightly, or a SHA",
        default="event",
    )
    repository: str = option(
        "Git remote of the upstream repository", default=f"https://github.com/{words.UPSTREAM_REPOSITORY}.git"
    )
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
    "outcome": "run, or why not: closed, deleted-ref, deleted-fork, not-wanted, not-trusted, superseded",
    "mode": "How the run came about: dispatch, forwarded, manual, schedule or recorded",
    "event-type": "pull_request, push, nightly or manual",
    "commit": "The upstream commit to test, 40 hexadecimal digits",
    "trust": "pull-request or landed: whether the commit stands on a branch of upstream",
    "base-commit": "What it is compared with; empty when unknown",
    "pull-request": "Number of the pull request; empty for a push",
    "delivery-id": "GUID of the upstream delivery",
}


def run(options: ReceiveOptions, context: RunContext, commands: Commands) -> None:
    """Raises EventError when what arrived is no dispatch, CheckoutError when its commit cannot be found,
    NothingToRun if asked for.
    """
    arrival = read_arrival(options.event_file or context.event_path, options.upstream)
    upstream = Upstream(options.repository, context.environment)
    decision, chosen = _decide(options, arrival, upstream, context, commands)
    trust = trust_of(arrival, options.commit)
    received = describe(arrival, options.upstream, decision, chosen, trust)
    save(received, context.run_folder(options.run_dir))
    for name, value in outputs(received).items():
        commands.output(name, value)
    _show(received, commands)
    if options.exit_code and not received.decision.should_run:
        raise NothingToRun(
            "There is nothing to run.", seen=received.decision.reason, fix="leave out --exit-code to pass"
        )


def _decide(
    options: ReceiveOptions, arrival: Arrival, upstream: Upstream, context: RunContext, commands: Commands
) -> tuple[Decision, Chosen]:
    event = arrival.event
    policy = TrustPolicy(options.trusted_authors, options.approval_label)
    if event is None:
        decision = Decision("run", "a person asked for it" if arrival.manual else "its time has come")
    else:
        changed = lru_cache(lambda: _changed(event, upstream, commands))
        decision = decide(Facts(event, policy, changed), options.when)
        if not decision.should_run:
            return decision, Chosen(tested_commit(event), "")
    chosen = _choose(options.commit, arrival, upstream, context, commands)
    if chosen.superseded_by:
        newer = f"the pull request has a newer head, {chosen.superseded_by}, which has a dispatch of its own"
        return Decision("superseded", newer), chosen
    return decision, chosen


def _choose(
    choice: str, arrival: Arrival, upstream: Upstream, context: RunContext, commands: Commands
) -> Chosen:
    subject = subject_of(arrival)
    try:
        return choose(choice, subject, upstream, lambda: run_began(context, commands))
    except RemoteUnreachable as error:
        if choice not in ("event", "pr-head") or not subject.event_commit or subject.has_landed:
            raise
        # The commit is known; only whether it is still the newest is not. A network must not cost a result.
        commands.warning(f"Whether the pull request has moved on is not known. Seen: {error.seen}")
        return Chosen(subject.event_commit, "the commit of the event")


def _changed(event: UpstreamEvent, upstream: Upstream, commands: Commands) -> tuple[str, ...]:
    """The paths that changed since the merge base. A new ref is compared with `main`: a push says only zeros."""
    if isinstance(event, PushEvent):
        base = event.before if event.before != words.ZERO_SHA else "refs/heads/main"
    else:
        base = event.pull_request.base.sha
    commands.line("Asking git which files changed ...")
    return upstream.changed(base, tested_commit(event))


def outputs(received: Receive) -> dict[str, str]:
    """The step's outputs: validated values only; what a stranger wrote is quoted in `reason`, on one line."""
    return {
        "should-run": str(received.decision.should_run).lower(),
        "reason": received.decision.reason,
        "outcome": received.decision.outcome,
        "mode": received.mode,
        "event-type": received.event_type,
        "commit": received.commit,
        "trust": received.trust,
        "base-commit": received.base_commit or "",
        "pull-request": str(received.pull_request or ""),
        "delivery-id": received.delivery_id,
    }


def _show(received: Receive, commands: Commands) -> None:
    decision = received.decision
    subject = f"pull request {received.pull_request}" if received.pull_request else received.event_type
    verdict = "run" if decision.should_run else "do not run"
    commands.notice(f"{received.upstream} {subject}: {verdict}, because {decision.reason}.")
    rows = {
        "commit": f"`{received.commit}` {markdown_text(received.chosen)}",
        **({"dispatched": f"`{received.dispatched_commit}`"} if received.dispatched_commit else {}),
        "upstream": markdown_text(received.upstream),
        "delivery": markdown_text(received.delivery_id or "none"),
        "outcome": decision.outcome,
    }
    commands.summary(
        f"### {'▶️ Run' if decision.should_run else '⏭️ Not run'}: {subject}\n\n"
        f"{markdown_text(decision.reason)}.\n\n"
        "| | |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows.items())
    )
