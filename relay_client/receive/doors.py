"""The doors through which a run may come, told apart by what the event file holds. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

from relay_client.errors import BadEventField, EventTooLarge, NoDispatchPayload, NoEvent
from relay_client.protocol import vocabulary as words
from relay_client.protocol.dispatch import (
    DispatchEnvelope,
    UpstreamEvent,
    parse_event,
    require_repository,
)
from relay_client.protocol.shape import ShapeError, parse, show

# GitHub documents 64 KB and does not say how it counts; twice that is certainly not GitHub's.
MAX_ENVELOPE_BYTES = 2 * words.MAX_CLIENT_PAYLOAD_BYTES

DISPATCH, FORWARDED, RECORDED, MANUAL, SCHEDULE = "dispatch", "forwarded", "recorded", "manual", "schedule"


@dataclass(frozen=True)
class Manual:
    """What a person typed into `workflow_dispatch`: a commit, or a pull request's number."""

    commit: str = ""
    pull_request: Optional[int] = None


@dataclass(frozen=True)
class Arrival:
    """How a run came about. `envelope` and `event` are there if the relay knows of it, or knew."""

    door: str
    envelope: Optional[DispatchEnvelope] = None
    event: Optional[UpstreamEvent] = None
    manual: Optional[Manual] = None

    @property
    def reported(self) -> bool:
        """Whether the relay has a record to report to."""
        return self.door in (DISPATCH, FORWARDED)


def open_door(event: dict[str, Any], upstream: str, where: str) -> Arrival:
    """Raises NoDispatchPayload, BadEventField, EventTooLarge, NoEvent. `where` names the file for a person."""
    for door, fits, enter in _DOORS:
        if fits(event):
            return enter(door, event, upstream, where)
    raise NoDispatchPayload(
        "The event carries no dispatch.",
        seen=f"client_payload: {show(event.get('client_payload'))} in {where}; members: {_members(event)}",
        fix="start the workflow with `on: repository_dispatch: types: [pull_request, push]`; "
        "docs/receive.md lists the other doors",
    )


def _inputs(event: dict[str, Any]) -> dict[str, Any]:
    inputs = event.get("inputs")
    return inputs if isinstance(inputs, dict) else {}


def _dispatch(door: str, event: dict[str, Any], upstream: str, where: str) -> Arrival:
    return _enveloped(door, event["client_payload"], upstream, "client_payload", where)


def _envelope(door: str, event: dict[str, Any], upstream: str, where: str) -> Arrival:
    return _enveloped(door, event, upstream, "envelope", where)


def _forwarded(door: str, event: dict[str, Any], upstream: str, where: str) -> Arrival:
    text = _inputs(event)["envelope"]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise NoEvent(
            "The forwarded envelope is not JSON.",
            seen=f"inputs.envelope in {where}: {error}",
            fix='forward it whole: --field envelope="$(jq -c .client_payload "$GITHUB_EVENT_PATH")"',
        ) from error
    return _enveloped(door, value, upstream, "inputs.envelope", where)


def _recorded(door: str, event: dict[str, Any], upstream: str, where: str) -> Arrival:
    name = "pull_request" if "pull_request" in event else "push"
    repository = event["repository"].get("full_name") if isinstance(event["repository"], dict) else None
    if isinstance(repository, str) and repository.lower() != upstream.lower():
        raise NoDispatchPayload(
            f"The event is a {name} of another repository, and no dispatch.",
            seen=f"repository.full_name: {show(repository)} in {where}; upstream is {upstream}",
            fix=f"take `{name}` out of `on:`; a dispatch comes by `repository_dispatch`",
        )
    value = {"event_type": name, "delivery_id": "recorded", "payload": event}
    return _enveloped(door, value, upstream, "event", where)


def _manual(door: str, event: dict[str, Any], _upstream: str, _where: str) -> Arrival:
    inputs = _inputs(event)
    commit = str(inputs.get("sha") or "").strip().lower()
    number = str(inputs.get("pull-request") or "").strip().lstrip("#")
    if bool(commit) == bool(number):
        raise BadEventField(
            "A run by hand needs a commit or a pull request, and not both.",
            seen=f"inputs.sha: {show(inputs.get('sha'))}, inputs.pull-request: {show(inputs.get('pull-request'))}",
            fix="fill in exactly one of the inputs `sha` and `pull-request`",
        )
    if commit and not re.fullmatch(words.SHA_PATTERN, commit):
        raise BadEventField(
            "inputs.sha is not a full commit SHA.", seen=show(commit), fix=f"inputs.sha: {words.SHA_EXPECTS}"
        )
    if number and not re.fullmatch(r"[1-9][0-9]{0,8}", number):
        raise BadEventField(
            "inputs.pull-request is not a number.", seen=show(number), fix="inputs.pull-request: its number"
        )
    return Arrival(door, manual=Manual(commit, int(number) if number else None))


def _schedule(door: str, _event: dict[str, Any], _upstream: str, _where: str) -> Arrival:
    return Arrival(door)


def _looks_recorded(event: dict[str, Any]) -> bool:
    return "repository" in event and ("pull_request" in event or {"ref", "before", "after"} <= set(event))


Fits = Callable[[dict[str, Any]], bool]
Enter = Callable[[str, dict[str, Any], str, str], Arrival]
# In this order: the first that fits is taken.
_DOORS: tuple[tuple[str, Fits, Enter], ...] = (
    (DISPATCH, lambda event: event.get("client_payload") is not None, _dispatch),
    (FORWARDED, lambda event: bool(_inputs(event).get("envelope")), _forwarded),
    (FORWARDED, lambda event: {"event_type", "delivery_id", "payload"} <= set(event), _envelope),
    (MANUAL, lambda event: bool({"sha", "pull-request"} & set(_inputs(event))), _manual),
    (SCHEDULE, lambda event: isinstance(event.get("schedule"), str), _schedule),
    (RECORDED, _looks_recorded, _recorded),
)
DOORS = tuple(dict.fromkeys(door for door, _, _ in _DOORS))


def _enveloped(door: str, payload: Any, upstream: str, name: str, where: str) -> Arrival:
    size = len(json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
    if size > MAX_ENVELOPE_BYTES and door != RECORDED:  # a webhook may be larger than a dispatch
        raise EventTooLarge(
            "The event is larger than GitHub delivers, so it did not come from a dispatch.",
            seen=f"{name}: {size} bytes in {where}; GitHub's limit is {words.MAX_CLIENT_PAYLOAD_BYTES}",
            fix=f"send {name}.payload trimmed (pull_request.body is the usual giant), as the relay does",
        )
    try:
        envelope = parse(DispatchEnvelope, payload, name)
        event = parse_event(envelope, f"{name}.payload")
        require_repository(event, upstream, f"{name}.payload")
    except ShapeError as error:
        raise BadEventField(
            f"The dispatch has a wrong field: {error.field}.",
            seen=f"{error.field}: {error.found}",
            fix=f"{error.field}: {error.allowed}{_hint(error.field)}",
        ) from error
    return Arrival(door, envelope, event)


def _members(event: dict[str, Any]) -> str:
    return ", ".join(sorted(ascii(name)[1:-1][:40] for name in event)[:12]) or "none"


# What usually stands behind a wrong field, for a person who sees it for the first time.
_HINTS = {
    "payload.repository.full_name": " (another upstream: set `upstream:` of receive-dispatch)",
    "event_type": " (other events are not relayed; remove the type from `on:`)",
    "payload.action": " (the relay sends no other action; remove what sent this event)",
}


def _hint(field: str) -> str:
    return _HINTS.get(field.partition(".")[2], "") or _HINTS.get(
        field.partition(".")[2].partition(".")[2], ""
    )
