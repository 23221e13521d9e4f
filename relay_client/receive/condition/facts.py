"""What a condition may ask of an event."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Optional

from relay_client.protocol.dispatch import PullRequestEvent, UpstreamEvent
from relay_client.receive.trust import TrustPolicy, added_label, labels, landed, trusted


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
    "added": lambda facts: _one(added_label(facts.event) or None),
    "author": lambda facts: _one(_lower(_pull(facts.event, "author_association", None))),
    "base": lambda facts: _one(
        facts.event.pull_request.base.ref if isinstance(facts.event, PullRequestEvent) else None
    ),
    "ref": lambda facts: _one(None if isinstance(facts.event, PullRequestEvent) else facts.event.ref),
    "changed": lambda facts: facts.changed(),
}


def _lower(text: Optional[str]) -> Optional[str]:
    return None if text is None else text.lower()
