"""What a condition may ask of an event."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Optional

from relay_client.protocol import vocabulary as words
from relay_client.protocol.dispatch import PullRequestEvent, UpstreamEvent


@dataclass(frozen=True)
class TrustPolicy:
    """Whose unlanded code may run: of which authors, and with which label."""

    authors: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Facts:
    """An event as a condition sees it. `changed` gives the changed paths; asked only if the condition needs them."""

    event: UpstreamEvent
    policy: TrustPolicy
    changed: Callable[[], Collection[str]]

    def flag(self, name: str) -> bool:
        return bool(_FLAGS[name](self))

    def values(self, field: str) -> Collection[str]:
        """All values of a field; none where the event has no such field."""
        return _FIELDS[field](self)

    @property
    def subject(self) -> str:
        """What stays the same over all events of one pull request or commit: the key of sampling."""
        event = self.event
        number = event.pull_request.number if isinstance(event, PullRequestEvent) else event.after
        return f"{event.repository.full_name.lower()}#{number}"


def landed(event: UpstreamEvent) -> bool:
    """Whether a pull request was closed by landing it."""
    if not isinstance(event, PullRequestEvent) or event.action != "closed":
        return False
    return event.pull_request.merged or words.LANDED_LABEL in labels(event)


def labels(event: UpstreamEvent) -> tuple[str, ...]:
    return tuple(label.name for label in _pull(event, "labels", ()))


def trusted(event: UpstreamEvent, policy: TrustPolicy) -> bool:
    """Whether the code may run on the hardware: it is upstream's own, or somebody vouches for it."""
    if not isinstance(event, PullRequestEvent):
        return event.ref.startswith(_LANDED_REFS)
    by_author = event.pull_request.author_association.upper() in policy.authors
    return landed(event) or by_author or policy.label in labels(event)


# Whoever may push a branch or a `ciflow` tag upstream may push the commit of somebody's pull request.
_LANDED_REFS = ("refs/heads/main", "refs/heads/release/", "refs/tags/v", "refs/tags/trunk/")

_FLAGS: dict[str, Callable[[Facts], bool]] = {
    "push": lambda facts: not isinstance(facts.event, PullRequestEvent),
    "pull_request": lambda facts: isinstance(facts.event, PullRequestEvent) and not landed(facts.event),
    "landed": lambda facts: landed(facts.event),
    "draft": lambda facts: bool(_pull(facts.event, "draft", False)),
    "trusted": lambda facts: trusted(facts.event, facts.policy),
}


def _pull(event: UpstreamEvent, name: str, otherwise: object) -> Any:
    return getattr(event.pull_request, name) if isinstance(event, PullRequestEvent) else otherwise


def _one(value: Optional[str]) -> Collection[str]:
    return () if value is None else (value,)


_FIELDS: dict[str, Callable[[Facts], Collection[str]]] = {
    "action": lambda facts: _one(facts.event.action if isinstance(facts.event, PullRequestEvent) else None),
    "label": lambda facts: labels(facts.event),
    "author": lambda facts: _one(_lower(_pull(facts.event, "author_association", None))),
    "base": lambda facts: _one(
        facts.event.pull_request.base.ref if isinstance(facts.event, PullRequestEvent) else None
    ),
    "ref": lambda facts: _one(None if isinstance(facts.event, PullRequestEvent) else facts.event.ref),
    "changed": lambda facts: facts.changed(),
}


def _lower(text: Optional[str]) -> Optional[str]:
    return None if text is None else text.lower()
