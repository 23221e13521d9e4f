"""Tells when a test process no longer gets anywhere. Reads the journal that the process writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from relay_client.documents.journal import JournalReader


@dataclass(frozen=True)
class Limits:
    """How long a test may run, and how long nothing may happen between tests. Both in seconds."""

    test_seconds: float
    stall_seconds: float


class Watchdog:
    """Called a few times a second while a process runs. What it returns is why the process must end.

    A test that runs has its own limit: pytest keeps its output, so its silence means nothing. Outside of tests
    (imports, collection, set-up of a class, tear-down) a process that writes nothing is stuck.
    """

    def __init__(self, journal: Path, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader = JournalReader(journal)
        self._limits = limits
        self._clock = clock
        self._running = ""
        self._since = clock()

    def __call__(self, silent_seconds: float) -> str:
        for line in self._reader.new_lines():
            self._running = line.test if line.outcome is None else ""
            self._since = self._clock()
        passed = self._clock() - self._since
        if self._running:
            limit = self._limits.test_seconds
            return f"no end after {limit:.0f} s" if passed > limit else ""
        limit = self._limits.stall_seconds
        stuck = min(passed, silent_seconds) > limit
        return f"nothing happened for {limit:.0f} s" if stuck else ""
