"""`POST /github/callback`: five gates, then one durable write, then the answer."""

from __future__ import annotations

from typing import Any

from relay_client.protocol.callback import parse_callback
from relay_client.protocol.shape import ShapeError

from .allowlist import AllowlistError
from .gates import allowlist, identity, lifecycle, provenance, rate
from .hud.ingestion import row_from
from .json_body import decode
from .refusal import Refusal, explain
from .relay import Relay

_RACES = 5  # how often a row may change between our reading and writing it before we ask for a retry
_RETRY_AFTER = {"Retry-After": "15"}


def handle(relay: Relay, authorization: str | None, raw: bytes) -> dict[str, Any]:
    """Serve one callback and return the body of the 200 answer. Blocks. Raises Refusal."""
    settings = relay.settings
    caller = identity.check(
        authorization,
        audience=settings.oidc.audience,
        issuers=tuple(each.issuer for each in settings.oidc.issuers),
        find_key=relay.signing_keys.find,
    )
    try:
        entry = allowlist.check(caller.repository, relay.allowlist.current())
    except AllowlistError as error:
        detail = explain("There is no allowlist yet", seen=str(error), fix="send the callback again later")
        raise Refusal(503, detail, _RETRY_AFTER) from None
    if isinstance(entry, allowlist.Ignored):
        return {"ok": True, "status": "ignored", "detail": entry.detail}
    rate.check(caller.repository, relay.store, limit=settings.limits.calls_per_minute, now=relay.now())
    content = decode(raw)
    try:
        body = parse_callback(content.value)
    except ShapeError as error:
        raise Refusal(400, str(error)) from None
    status = body.workflow.status
    for _ in range(_RACES):
        step = lifecycle.check(body, content.digest, caller.repository, relay.store)
        provenance.check(body, caller, step.dispatch, settings.upstream)
        if step.replayed:
            return {"ok": True, "status": status, "replayed": True}
        row = row_from(
            body, content.digest, step, repository=entry.repository, level=entry.level, now=relay.now()
        )
        if relay.store.put_row(row, replaces=step.previous.revision if step.previous else None):
            return {"ok": True, "status": status}
    raise Refusal(
        503, explain("The row is being written by other callbacks", fix="send it again"), _RETRY_AFTER
    )
