"""Read the event file, and say through which door the run came.

Always the file: an event in an environment variable fails at 128 KiB, and one pasted into a shell runs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Optional

from relay_client.errors import EventTooLarge, NoEvent
from relay_client.protocol.shape import show
from relay_client.receive.doors import Arrival, open_door

MAX_EVENT_BYTES = 8 * 1024 * 1024
MAX_EVENT_DEPTH = 64  # GitHub's webhooks have less than ten levels


def read_arrival(path: Optional[Path], upstream: str) -> Arrival:
    """What a GitHub event file holds. Raises an EventError that names the field and the fix."""
    return open_door(_read_event(path), upstream, str(path))


def _read_event(path: Optional[Path]) -> dict[str, Any]:
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
