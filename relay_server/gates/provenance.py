"""Gate 5: is the result about what was dispatched. The echo must name our commit, the token the caller's run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from relay_client.protocol import vocabulary as words
from relay_client.protocol.callback import CallbackBody
from relay_client.protocol.dispatch import Repository
from relay_client.protocol.shape import ShapeError, member, parse, show
from relay_server.records import DispatchRecord
from relay_server.refusal import Refusal

from .identity import Identity


@dataclass(frozen=True)
class _Tip:
    sha: str = member("Commit")


@dataclass(frozen=True)
class _PullRequest:
    head: _Tip = member("The tested commit")


@dataclass(frozen=True)
class _EchoedPullRequest:
    """Less than `protocol.dispatch.PullRequestEvent`: an echo may have been cut down by the downstream."""

    repository: Repository = member("Upstream")
    pull_request: _PullRequest = member("The pull request")


@dataclass(frozen=True)
class _EchoedPush:
    repository: Repository = member("Upstream")
    after: str = member("Commit")


@dataclass(frozen=True)
class _SelfReport:
    repository: Repository = member("Upstream")
    head_sha: Optional[str] = member("Commit", default=None)


_COMMIT_MEMBER = {
    "pull_request": "payload.pull_request.head.sha",
    "push": "payload.after",
    **dict.fromkeys(words.SELF_REPORTED_EVENTS, "payload.head_sha"),
}


def check(body: CallbackBody, caller: Identity, dispatch: DispatchRecord | None, upstream: str) -> None:
    """Compare echo, dispatch record and token. Raises Refusal 400 naming the member that differs."""
    repository, commit = echoed(body)
    expected = {
        # member: (what the callback says, what it has to say)
        "event_type": (body.event_type, dispatch.event_type if dispatch else body.event_type),
        "payload.repository.full_name": (repository.lower(), upstream.lower()),
        _COMMIT_MEMBER[body.event_type]: (commit, dispatch.commit if dispatch else body.delivery_id),
        "workflow.run_id": (body.workflow.run_id, caller.run_id or body.workflow.run_id),
    }
    sources = {"workflow.run_id": "the run that the OIDC token was made for"}
    for name, (found, allowed) in expected.items():
        if found != allowed:
            source = sources.get(name, "what was dispatched" if dispatch else "the commit in delivery_id")
            raise Refusal(400, f"{name}: found {show(found)}; allowed is {show(allowed)}, {source}")


def echoed(body: CallbackBody) -> tuple[str, str]:
    """Repository and commit that the echoed payload names. Raises Refusal 400 when it names none."""
    try:
        if body.event_type == "pull_request":
            pull_request = parse(_EchoedPullRequest, body.payload, "payload")
            return pull_request.repository.full_name, pull_request.pull_request.head.sha
        if body.event_type == "push":
            push = parse(_EchoedPush, body.payload, "payload")
            return push.repository.full_name, push.after
        report = parse(_SelfReport, body.payload, "payload")
        return report.repository.full_name, report.head_sha or body.delivery_id
    except ShapeError as error:
        raise Refusal(400, str(error)) from None
