"""What the relay sends: the envelope of a `repository_dispatch`, and the upstream event inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import vocabulary as words
from .shape import ShapeError, member, parse, show

DELIVERY_PATTERN = r"[0-9A-Za-z][0-9A-Za-z._-]{0,127}"
DELIVERY_EXPECTS = "the GUID of the upstream delivery (X-GitHub-Delivery)"


@dataclass(frozen=True)
class DispatchEnvelope:
    """The `client_payload` of a dispatch: three members, the last being the upstream webhook verbatim."""

    event_type: str = member("The upstream event's name", one_of=words.DISPATCHED_EVENTS)
    delivery_id: str = member(
        "GUID of the upstream delivery", pattern=DELIVERY_PATTERN, expects=DELIVERY_EXPECTS
    )
    payload: Mapping[str, Any] = member("The whole upstream webhook body")


@dataclass(frozen=True)
class Repository:
    """A repository as webhooks name it."""

    full_name: str = member("owner/name", pattern=words.REPOSITORY_PATTERN, expects=words.REPOSITORY_EXPECTS)


@dataclass(frozen=True)
class Head:
    """The tip of a pull request. `repo` is null when the fork was deleted."""

    sha: str = member("Commit", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)
    ref: str = member("Branch name in the fork", default="")
    repo: Optional[Repository] = member("The fork; null when it was deleted", default=None)


@dataclass(frozen=True)
class Base:
    """The branch a pull request wants to land on."""

    sha: str = member("Commit", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)
    ref: str = member("Branch name", default="")


@dataclass(frozen=True)
class Label:
    """A label of a pull request."""

    name: str = member("Set by whoever may triage upstream")


@dataclass(frozen=True)
class Account:
    """Whoever did something. Bots of GitHub's end in `[bot]`."""

    login: str = member("Name of the account")


@dataclass(frozen=True)
class PullRequest:
    """The members of `payload.pull_request` that CRCR's consumers read."""

    number: int = member("Number of the pull request", minimum=1)
    head: Head = member("The commit to test")
    base: Base = member("Where it would land")
    title: str = member("Untrusted text", default="")
    labels: tuple[Label, ...] = member("As they were when the event was sent", default=())
    user: Optional[Account] = member("The author", default=None)
    author_association: str = member("What the author is to the upstream repository", default="NONE")
    draft: bool = member("Whether the author calls it unfinished", default=False)
    merged: bool = member(
        "Whether GitHub merged it; PyTorch's own bot does not merge through GitHub", default=False
    )


@dataclass(frozen=True)
class PullRequestEvent:
    """A `pull_request` webhook."""

    action: str = member("What happened", one_of=words.UNDERSTOOD_ACTIONS)
    repository: Repository = member("The upstream repository")
    pull_request: PullRequest = member("The pull request")
    label: Optional[Label] = member("What was added, if the action is labeled", default=None)
    sender: Optional[Account] = member("Who did it", default=None)


@dataclass(frozen=True)
class PushEvent:
    """A `push` webhook. A deleted ref has `deleted: true` and an `after` of forty zeros."""

    ref: str = member(
        "Full ref name", pattern=r"refs/[^\x00-\x20\x7f]+", expects="a ref that starts with refs/"
    )
    after: str = member("Commit after the push", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)
    repository: Repository = member("The upstream repository")
    before: str = member(
        "Commit before the push; forty zeros for a new ref",
        default=words.ZERO_SHA,
        pattern=words.SHA_PATTERN,
        expects=words.SHA_EXPECTS,
    )
    deleted: bool = member("Whether the push deleted the ref", default=False)


UpstreamEvent = Union[PullRequestEvent, PushEvent]

_EVENT_CLASSES: dict[str, type[Any]] = {"pull_request": PullRequestEvent, "push": PushEvent}


def parse_event(envelope: DispatchEnvelope, where: str = "client_payload.payload") -> UpstreamEvent:
    """The upstream event of an envelope. Raises ShapeError with the path below `where`."""
    event: UpstreamEvent = parse(_EVENT_CLASSES[envelope.event_type], envelope.payload, where)
    return event


def require_repository(event: UpstreamEvent, expected: str, where: str = "client_payload.payload") -> None:
    """Refuse an event of another upstream. GitHub names are case-insensitive."""
    found = event.repository.full_name
    if found.lower() != expected.lower():
        raise ShapeError(f"{where}.repository.full_name", show(found), show(expected))


def tested_commit(event: UpstreamEvent) -> str:
    """The commit an event asks to test: the pull request's head, or what was pushed."""
    return event.pull_request.head.sha if isinstance(event, PullRequestEvent) else event.after
