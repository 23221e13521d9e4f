"""Who takes part, and at which level: upstream's `.github/allowlist.yml`.

L1, L2 and L4 are lists of `owner/repo` or of single-key mappings `owner/repo: oncalls`; L3 maps a device
to such entries. Oncalls are text, a list, or (since September 2026) a mapping with `events` and `oncalls`.
A wrong entry costs that entry, never the file: one typo upstream must not stop every backend.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import show

log = logging.getLogger(__name__)

EVENTS = ("pull_request", "nightly")  # `push` is subscribed to with pull_request


_PAUSE_SECONDS = 2  # between attempts while none was ever read, so that waiting requests do not queue up


class AllowlistError(Exception):
    """The allowlist as a whole cannot be read or understood."""


@dataclass(frozen=True)
class Entry:
    """One participant."""

    repository: str
    level: str
    device: str | None = None
    oncalls: tuple[str, ...] = ()
    events: tuple[str, ...] = EVENTS


@dataclass(frozen=True)
class Allowlist:
    """All participants, by lower-case name, and what was wrong with entries that were left out."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def find(self, repository: str) -> Entry | None:
        """The entry of a repository. GitHub names are case-insensitive."""
        return self.entries.get(repository.lower())

    def subscribed(self, event_type: str) -> list[Entry]:
        """Who gets a dispatch of this event, in the file's order."""
        wanted = "pull_request" if event_type == "push" else event_type
        return [entry for entry in self.entries.values() if wanted in entry.events]


def parse_allowlist(text: str) -> Allowlist:
    """Read the file's text. Raises AllowlistError when it is not a mapping of levels at all."""
    try:
        levels = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise AllowlistError(f"the allowlist is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(levels, dict) or not any(level in levels for level in words.LEVELS):
        raise AllowlistError(f"the allowlist holds {show(levels)}; allowed is a mapping of L1, L2, L3, L4")
    problems = [f"{show(key)}: no such level" for key in levels if key not in words.LEVELS]
    entries: dict[str, Entry] = {}
    for level in words.LEVELS:  # ascending: of a duplicate the lower level, the lesser authority, stays
        for where, name, device, metadata in _walk(level, levels.get(level), problems):
            try:
                entry = _entry(name, level, device, metadata)
            except ValueError as error:
                problems.append(f"{where}: {error}")
                continue
            kept = entries.setdefault(entry.repository.lower(), entry)
            if kept is not entry:
                problems.append(
                    f"{where}: {entry.repository} is listed already, at {kept.level}, which stays"
                )
    return Allowlist(entries, tuple(problems))


_Found = tuple[str, Any, "str | None", Any]


def _walk(level: str, value: Any, problems: list[str]) -> Iterator[_Found]:
    """Every (where, name, device, metadata) of one level."""
    if value is None:
        return
    if level == "L3":
        if not isinstance(value, dict):
            problems.append(f"L3: found {show(value)}; allowed is a mapping of devices")
            return
        for device, members in value.items():
            if not isinstance(members, dict):
                problems.append(f"L3.{device}: found {show(members)}; allowed is a mapping of owner/repo")
                continue
            for name, metadata in members.items():
                yield f"L3.{device}", name, str(device), metadata
        return
    if not isinstance(value, list):
        problems.append(f"{level}: found {show(value)}; allowed is a list")
        return
    for index, item in enumerate(value):
        if isinstance(item, dict) and len(item) == 1:
            ((name, metadata),) = item.items()
            yield f"{level}[{index}]", name, None, metadata
        else:
            yield f"{level}[{index}]", item, None, None


def _entry(name: Any, level: str, device: str | None, metadata: Any) -> Entry:
    if not isinstance(name, str) or not re.fullmatch(words.REPOSITORY_PATTERN, name):
        raise ValueError(f"found {show(name)}; allowed is {words.REPOSITORY_EXPECTS}")
    oncalls, events = metadata, list(EVENTS)
    if isinstance(metadata, dict):
        oncalls, events = metadata.get("oncalls"), metadata.get("events", events)
    if not isinstance(events, list) or not events or not all(event in EVENTS for event in events):
        raise ValueError(f"events of {name}: found {show(events)}; allowed is a list of {', '.join(EVENTS)}")
    return Entry(name, level, device, _oncalls(oncalls), tuple(events))


def _oncalls(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(str(name).strip().lstrip("@") for name in names)


class AllowlistCache:
    """The current allowlist, read again when it is older than `lifetime` seconds; the last good one is kept."""

    def __init__(
        self, read: Callable[[], str], lifetime: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._lifetime = lifetime
        self._clock = clock
        self._lock = threading.Lock()
        self._current: Allowlist | None = None
        self._read_at = self._failed_at = float("-inf")
        self.last_error = ""

    def current(self) -> Allowlist:
        """The allowlist. Raises AllowlistError only while none was ever read."""
        known = self._current
        if known is not None and self._clock() - self._read_at < self._lifetime:
            return known
        # While one thread reads, the others go on with what is known.
        if not self._lock.acquire(blocking=known is None):
            assert known is not None
            return known
        try:
            if self._current is not known:  # another thread was faster while we waited
                return self._current or Allowlist()
            if self._clock() - self._failed_at < _PAUSE_SECONDS:
                raise AllowlistError(self.last_error)
            return self._refresh(known)
        finally:
            self._lock.release()

    def _refresh(self, known: Allowlist | None) -> Allowlist:
        try:
            fresh = parse_allowlist(self._read())
        except AllowlistError as error:
            self.last_error = str(error)
            log.warning("allowlist not refreshed: %s", error)
            if known is None:
                self._failed_at = self._clock()
                raise
            fresh = known
        else:
            self.last_error = ""
            for problem in fresh.problems:
                log.warning("allowlist entry left out: %s", problem)
        self._current, self._read_at = fresh, self._clock()
        return fresh
