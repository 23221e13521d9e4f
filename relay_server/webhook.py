"""`POST /github/webhook`: verify GitHub's signature, decide whether the event concerns anyone, fan it out.

Sources: GitHub Docs "Validating webhook deliveries" and "Webhook events and payloads"; the relay's own rules
are those of PyTorch's production relay.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relay_client.protocol import vocabulary as words
from relay_client.protocol.dispatch import (
    DELIVERY_EXPECTS,
    DELIVERY_PATTERN,
    DispatchEnvelope,
    PullRequestEvent,
    UpstreamEvent,
    parse_event,
    tested_commit,
)
from relay_client.protocol.shape import ShapeError, dump, show

from .allowlist import AllowlistError
from .fanout import Outcome, fan_out, records_for
from .json_body import decode
from .records import DispatchRecord
from .refusal import Refusal, explain
from .relay import Relay
from .trim import fit


@dataclass(frozen=True)
class Delivery:
    """The headers of a webhook that matter here."""

    event: str
    guid: str
    signature: str

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Delivery:
        """From case-insensitive headers; absent ones are empty."""
        names = ("X-GitHub-Event", "X-GitHub-Delivery", "X-Hub-Signature-256")
        return cls(*(headers.get(name, "") for name in names))


@dataclass(frozen=True)
class Answer:
    """Status and JSON body of the answer."""

    status: int
    body: Mapping[str, Any]


def handle(relay: Relay, delivery: Delivery, raw: bytes) -> Answer:
    """Serve one delivery. Blocks until every dispatch is sent or the deadline passed. Raises Refusal."""
    if delivery.event not in words.DISPATCHED_EVENTS:
        return _ignored(f"{show(delivery.event)} events are not relayed")
    check_signature(raw, delivery.signature, relay.settings.webhook_secret)
    if not re.fullmatch(DELIVERY_PATTERN, delivery.guid):
        raise Refusal(400, f"X-GitHub-Delivery: found {show(delivery.guid)}; allowed is {DELIVERY_EXPECTS}")
    payload = decode(raw).value
    reason = why_ignored(delivery.event, payload, relay.settings.upstream)
    if reason:
        return _ignored(reason)
    envelope = DispatchEnvelope(delivery.event, delivery.guid, payload)
    try:
        event = parse_event(envelope, "payload")
        targets = relay.allowlist.current().subscribed(delivery.event)
    except ShapeError as error:
        raise Refusal(400, str(error)) from None
    except AllowlistError as error:
        raise Refusal(
            503, explain("There is no allowlist yet", seen=str(error), fix="redeliver later")
        ) from None
    record = _record(envelope, event, relay.now())
    outcomes = fan_out(
        fit(dump(envelope)),
        records_for(record, [entry.repository for entry in targets]),
        store=relay.store,
        send=relay.github.dispatch,
        executor=relay.executor,
        deadline=relay.settings.fanout.answer_seconds,
    )
    return _answer(outcomes)


def check_signature(raw: bytes, signature: str, secret: str) -> None:
    """Compare HMAC-SHA256 in constant time. Raises Refusal: 400 without a signature, 401 with a wrong one."""
    if not signature:
        fix = "set a webhook secret in the GitHub App's settings"
        raise Refusal(400, explain("X-Hub-Signature-256 is missing", fix=fix))
    expected = "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")):
        what = "X-Hub-Signature-256 does not fit the body"
        fix = "use the same webhook secret in the GitHub App and in the relay, and pass the body on unchanged"
        raise Refusal(401, explain(what, seen=f"{len(raw)} bytes", fix=fix))


def why_ignored(event: str, payload: Any, upstream: str) -> str:
    """Why nobody is told of this event; empty when everybody is."""
    payload = payload if isinstance(payload, dict) else {}
    repository = payload.get("repository")
    name = repository.get("full_name") if isinstance(repository, dict) else None
    if not isinstance(name, str) or name.lower() != upstream.lower():
        return f"repository {show(name)} is not {upstream}"
    action = payload.get("action")
    if event == "pull_request" and action not in words.PULL_REQUEST_ACTIONS:
        return f"pull_request action {show(action)} is not relayed"
    return ""


def _record(envelope: DispatchEnvelope, event: UpstreamEvent, now: float) -> DispatchRecord:
    pull_request = event.pull_request if isinstance(event, PullRequestEvent) else None
    return DispatchRecord(
        delivery_id=envelope.delivery_id,
        repository="",
        event_type=envelope.event_type,
        upstream=event.repository.full_name,
        commit=tested_commit(event),
        claimed_at=now,
        pull_request=pull_request.number if pull_request else None,
        ref=event.pull_request.head.ref if isinstance(event, PullRequestEvent) else event.ref,
        title=pull_request.title if pull_request else "",
    )


def _ignored(reason: str) -> Answer:
    return Answer(200, {"ignored": True, "detail": reason})


def _answer(outcomes: list[Outcome]) -> Answer:
    """200 unless every dispatch failed, which is 502: GitHub then shows the delivery as failed."""
    failed = [{"repo": each.repository, "error": each.error} for each in outcomes if each.error]
    dispatched = [
        {"repo": each.repository, **({"replayed": True} if each.replayed else {})}
        for each in outcomes
        if not each.error
    ]
    all_failed = bool(failed) and not dispatched
    return Answer(
        502 if all_failed else 200, {"ok": not all_failed, "dispatched": dispatched, "failed": failed}
    )
