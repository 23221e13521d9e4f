"""Decide whether an event asks for a test run. Pure: event in, decision out."""

from __future__ import annotations

from dataclasses import replace

from relay_client.documents.receive import Decision, Receive
from relay_client.protocol import vocabulary as words
from relay_client.protocol.dispatch import (
    DispatchEnvelope,
    PullRequestEvent,
    PushEvent,
    UpstreamEvent,
    tested_commit,
)


def decide(event: UpstreamEvent) -> Decision:
    """Whether to run the tests. Every other outcome names the field it read."""
    if isinstance(event, PushEvent):
        if event.deleted or event.after == words.ZERO_SHA:
            return Decision(
                "deleted-ref",
                "client_payload.payload.deleted is true: the push removed its ref, so there is no commit to "
                "test. Nothing is reported; nothing needs to be changed",
            )
        return Decision("run", "a push asks for its commit to be tested")
    if event.action == "closed":
        return Decision(
            "closed",
            "client_payload.payload.action is closed: the pull request asks for no test any more. "
            "Its running tests are cancelled by the workflow's `concurrency`; nothing is reported",
        )
    if event.pull_request.head.repo is None:
        return Decision(
            "deleted-fork",
            "client_payload.payload.pull_request.head.repo is null: the fork was deleted, so nobody can "
            "update this pull request. To test its commit all the same, restore the fork and reopen it",
        )
    return Decision("run", f"the pull request was {event.action}")


def describe(envelope: DispatchEnvelope, event: UpstreamEvent, decision: Decision) -> Receive:
    """The receive document of an event."""
    received = Receive(
        event_type=envelope.event_type,
        delivery_id=envelope.delivery_id,
        upstream=event.repository.full_name,
        commit=tested_commit(event),
        decision=decision,
    )
    if isinstance(event, PullRequestEvent):
        return replace(
            received,
            action=event.action,
            pull_request=event.pull_request.number,
            base_commit=event.pull_request.base.sha,
            ref=event.pull_request.base.ref,
        )
    return replace(
        received, base_commit=None if event.before == words.ZERO_SHA else event.before, ref=event.ref
    )
