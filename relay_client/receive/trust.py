"""Whose code may run on the hardware, and which code has landed. Pure: event and policy in, an answer out.

A label upstream says less than it seems to. It stays through later pushes, and PyTorch's bot sets any existing label
for whoever comments `@pytorchbot label …` (pytorch/test-infra, torchci/lib/bot/pytorchBotHandler.ts). So the label
counts together with an act that only people with triage rights can do, at the commit that they had before them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from relay_client.protocol.dispatch import PullRequestEvent, UpstreamEvent
from relay_client.protocol.vocabulary import LANDED_LABEL

# Branches that only upstream's own process moves, and tags of their commits. Whoever may push another branch or a
# `ciflow` tag upstream may push the commit of somebody's pull request.
_LANDED_BRANCH = re.compile(r"main|release/.+", re.DOTALL)
_LANDED_TAG = re.compile(r"v[0-9].*|trunk/.+", re.DOTALL)
_BOT = "[bot]"  # no person's login holds a bracket


@dataclass(frozen=True)
class TrustPolicy:
    """Whose unlanded code may run: of which authors, and with which label."""

    authors: tuple[str, ...]
    label: str


def landed(event: UpstreamEvent) -> bool:
    """Whether a pull request was closed by landing it."""
    if not isinstance(event, PullRequestEvent) or event.action != "closed":
        return False
    return event.pull_request.merged or LANDED_LABEL in labels(event)


def landed_branch(name: str) -> bool:
    """Whether what stands on a branch of upstream has landed."""
    return _LANDED_BRANCH.fullmatch(name) is not None


def labels(event: UpstreamEvent) -> tuple[str, ...]:
    if not isinstance(event, PullRequestEvent):
        return ()
    return tuple(label.name for label in event.pull_request.labels)


def added_label(event: UpstreamEvent) -> str:
    """The label that was just added; empty for every other event."""
    if not isinstance(event, PullRequestEvent) or event.action != "labeled" or event.label is None:
        return ""
    return event.label.name


def has_label(event: UpstreamEvent, label: str) -> bool:
    return label in (*labels(event), added_label(event))


def vouched(event: UpstreamEvent, label: str) -> bool:
    """Whether somebody with triage rights upstream, and not the author, has let this very commit run.

    By adding the label, or by reopening a pull request that has it (docs.github.com, "Repository roles for an
    organization": both need the triage role, but for authors, who may reopen what they closed).
    """
    if not label or not isinstance(event, PullRequestEvent):
        return False
    if event.sender is None or event.pull_request.user is None:
        return False
    acted = added_label(event) == label or (event.action == "reopened" and label in labels(event))
    person, author = event.sender.login.lower(), event.pull_request.user.login.lower()
    return acted and person != author and not person.endswith(_BOT)


def known_author(event: UpstreamEvent, policy: TrustPolicy) -> bool:
    """Whether the author of a pull request is one of those who need no label."""
    return (
        isinstance(event, PullRequestEvent)
        and event.pull_request.author_association.upper() in policy.authors
    )


def trusted(event: UpstreamEvent, policy: TrustPolicy) -> bool:
    """Whether the code may run on the hardware: it is upstream's own, or somebody vouches for it."""
    return of_upstream(event) or known_author(event, policy) or vouched(event, policy.label)


def of_upstream(event: UpstreamEvent) -> bool:
    """Whether what the event is about has landed, as far as the event can say."""
    if isinstance(event, PullRequestEvent):
        return landed(event)
    kind, _, name = event.ref.partition("/")[2].partition("/")
    return landed_branch(name) if kind == "heads" else kind == "tags" and bool(_LANDED_TAG.fullmatch(name))
