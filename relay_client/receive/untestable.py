"""Events that ask for no test whatever the policy is. Pure; the report asks this too, when the receive job died."""

from __future__ import annotations

from typing import Optional

from relay_client.documents.receive import Decision
from relay_client.protocol import vocabulary as words
from relay_client.protocol.dispatch import PushEvent, UpstreamEvent
from relay_client.receive.trust import landed


def untestable(event: UpstreamEvent) -> Optional[Decision]:
    """Why an event has nothing that could be tested, whatever the policy; None if it has."""
    if isinstance(event, PushEvent):
        if event.deleted or event.after == words.ZERO_SHA:
            return Decision(
                "deleted-ref",
                "client_payload.payload.deleted is true: the push removed its ref, so there is no commit to "
                "test. Nothing is reported; nothing needs to be changed",
            )
        return None
    if event.action == "closed" and not landed(event):
        return Decision(
            "closed",
            "client_payload.payload.action is closed: the pull request asks for no test any more. "
            "Its running tests are cancelled by the workflow's `concurrency`; nothing is reported",
        )
    if event.pull_request.head.repo is None and not landed(event):
        return Decision(
            "deleted-fork",
            "client_payload.payload.pull_request.head.repo is null: the fork was deleted, so nobody can "
            "update this pull request. To test its commit all the same, restore the fork and reopen it",
        )
    return None
