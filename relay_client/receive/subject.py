"""From an arrival and a choice of commit to the receive document. Acts only through what it is given."""

from __future__ import annotations

from dataclasses import replace

from relay_client.documents.receive import MANUAL, Decision, Receive
from relay_client.protocol import vocabulary as words
from relay_client.protocol.dispatch import PullRequestEvent, UpstreamEvent, tested_commit
from relay_client.receive.commit import Chosen, Subject
from relay_client.receive.doors import SCHEDULE, Arrival
from relay_client.receive.trust import landed, landed_branch, of_upstream

# Choices whose commit stands on a landed branch of upstream, whatever the event is about.
_LANDED_CHOICES = ("landed", "nightly")


def subject_of(arrival: Arrival) -> Subject:
    """What the choice of a commit starts from."""
    event = arrival.event
    if isinstance(event, PullRequestEvent):
        pull = event.pull_request
        return Subject(pull.head.sha, pull.number, pull.base.ref or "main", landed(event))
    if event is not None:
        branch = event.ref.partition("refs/heads/")[2]
        return Subject(event.after, None, branch or "main")
    if arrival.manual is not None:
        return Subject(arrival.manual.commit, arrival.manual.pull_request)
    return Subject()


def trust_of(arrival: Arrival, choice: str) -> str:
    """Whether the chosen commit has landed. A SHA that a person typed is not known to have."""
    if choice in _LANDED_CHOICES or (arrival.door == SCHEDULE and choice == "event"):
        return "landed"
    if choice == "base-head":
        # A pull request may want to land on a branch of somebody's, whose code has not landed either.
        return "landed" if landed_branch(subject_of(arrival).base_ref) else "pull-request"
    own = arrival.event is not None and choice == "event" and of_upstream(arrival.event)
    return "landed" if own else "pull-request"


def describe(arrival: Arrival, upstream: str, decision: Decision, chosen: Chosen, trust: str) -> Receive:
    """The receive document."""
    event = arrival.event
    dispatched = tested_commit(event) if event is not None else None
    received = Receive(
        event_type="nightly" if arrival.door == SCHEDULE else MANUAL,
        delivery_id=chosen.commit if arrival.door == SCHEDULE else "",
        upstream=upstream,
        commit=chosen.commit,
        decision=decision,
        mode=arrival.door,
        chosen=chosen.how,
        trust=trust,
        dispatched_commit=dispatched if dispatched != chosen.commit else None,
    )
    if arrival.manual is not None:
        return replace(received, pull_request=arrival.manual.pull_request)
    if event is None or arrival.envelope is None:
        return received
    known = replace(
        received,
        event_type=arrival.envelope.event_type,
        delivery_id=arrival.envelope.delivery_id,
        upstream=event.repository.full_name,
    )
    return _with_event(known, event)


def _with_event(received: Receive, event: UpstreamEvent) -> Receive:
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
