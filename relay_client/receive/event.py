"""Read the dispatch from the event file.

Always the file: an event in an environment variable fails at 128 KiB, and one pasted into a shell runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from relay_client.errors import BadEventField, EventTooLarge, NoDispatchPayload, NoEvent
from relay_client.protocol import vocabulary as words
from relay_client.protocol.dispatch import (
    DispatchEnvelope,
    UpstreamEvent,
    parse_event,
    require_repository,
)
from relay_client.protocol.shape import ShapeError, parse, show

MAX_EVENT_BYTES = 8 * 1024 * 1024
MAX_EVENT_DEPTH = 64  # GitHub's webhooks have less than ten levels
# GitHub documents 64 KB and does not say how it counts; twice that is certainly not GitHub's.
MAX_ENVELOPE_BYTES = 2 * words.MAX_CLIENT_PAYLOAD_BYTES


@dataclass(frozen=True)
class ReceivedDispatch:
    """A dispatch and the upstream event inside it, both valid."""

    envelope: DispatchEnvelope
    event: UpstreamEvent


def read_dispatch(path: Optional[Path], upstream: str) -> ReceivedDispatch:
    """The dispatch in a GitHub event file. Raises an EventError that names the field and the fix."""
    event = _read_event(path)
    payload = event.get("client_payload")
    if payload is None:
        raise NoDispatchPayload(
            "The event carries no dispatch.",
            seen=f"client_payload: {show(payload)} in {path}; members: {_members(event)}",
            fix="start the workflow with `on: repository_dispatch: types: [pull_request, push]` only",
        )
    size = len(json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
    if size > MAX_ENVELOPE_BYTES:
        raise EventTooLarge(
            "The event is larger than GitHub delivers, so it did not come from a dispatch.",
            seen=f"client_payload: {size} bytes in {path}; GitHub's limit is {words.MAX_CLIENT_PAYLOAD_BYTES}",
            fix="send client_payload.payload trimmed (pull_request.body is the usual giant), as the relay does",
        )
    try:
        envelope = parse(DispatchEnvelope, payload, "client_payload")
        upstream_event = parse_event(envelope)
        require_repository(upstream_event, upstream)
    except ShapeError as error:
        raise BadEventField(
            f"The dispatch has a wrong field: {error.field}.",
            seen=f"{error.field}: {error.found}",
            fix=f"{error.field}: {error.allowed}{_hint(error.field)}",
        ) from error
    return ReceivedDispatch(envelope, upstream_event)


def _read_event(path: Optional[Path]) -> dict[str, object]:
    if path is None:
        raise NoEvent(
            "There is no event to read.",
            seen="GITHUB_EVENT_PATH is not set",
            fix="run `crcr receive` in a GitHub Actions job, or name a file with --event-file",
        )
    try:
        if path.stat().st_size > MAX_EVENT_BYTES:
            raise EventTooLarge(
                "The event file is too large to be an event.",
                seen=f"{path.stat().st_size} bytes in {path}; the limit is {MAX_EVENT_BYTES}",
                fix="name the file that GITHUB_EVENT_PATH names",
            )
        event = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise NoEvent(
            "The event file cannot be read.",
            seen=f"{path}: {error}",
            fix="--event-file: the path of a JSON file with the event, as GITHUB_EVENT_PATH names it",
        ) from error
    if not isinstance(event, dict):
        raise NoEvent(
            "The event file holds no event.", seen=show(event), fix="the file must hold a JSON object"
        )
    if _deeper_than(MAX_EVENT_DEPTH, event):
        raise NoEvent(
            "The event file holds no event of GitHub's.",
            seen=f"{path}: objects and arrays in more than {MAX_EVENT_DEPTH} levels",
            fix="name the file that GITHUB_EVENT_PATH names",
        )
    return event


def _deeper_than(limit: int, value: object) -> bool:
    """Whether JSON is nested in more levels, found without recursion: whoever handles it later may recurse."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            item
            for node in level
            if isinstance(node, (dict, list))
            for item in (node.values() if isinstance(node, dict) else node)
        ]
    return bool(level)


def _members(event: dict[str, object]) -> str:
    return ", ".join(sorted(ascii(name)[1:-1][:40] for name in event)[:12]) or "none"


# What usually stands behind a wrong field, for a person who sees it for the first time.
_HINTS = {
    "client_payload.payload.repository.full_name": " (another upstream: set `upstream:` of receive-dispatch)",
    "client_payload.event_type": " (other events are not relayed; remove the type from `on:`)",
    "client_payload.payload.action": " (the relay sends no other action; remove what sent this event)",
}


def _hint(field: str) -> str:
    return _HINTS.get(field, "")
