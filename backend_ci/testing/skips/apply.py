"""Skip lists at the time of planning: which planned tests they name, and what they must not do unseen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path

from backend_ci.testing.ids import TestNames
from backend_ci.testing.skips.entry import Entry, SkipList
from backend_ci.testing.skips.match import SkipIndex
from backend_ci.testing.skips.read import Python, read_skip_lists
from backend_ci.testing.skips.universe import known_tests
from relay_client.documents.plan import PlannedSkip, TestOrigin
from relay_client.errors import BadSkipList
from relay_client.runner.commands import Commands

# How PyTorch's own lists name the systems.
_SYSTEMS = {"linux": ("linux",), "win32": ("win", "windows"), "darwin": ("mac", "macos")}
_SHOWN = 5


@dataclass(frozen=True)
class ListsForRun:
    """The lists of a run, the day they are read, and what this place is called."""

    paths: tuple[Path, ...]
    conditions: frozenset[str]
    today: date
    python: Python

    def read(self, device: str) -> SkipList:
        """The lists, with the backend's name known. Raises BadSkipList when one of ours has a malformed entry."""
        skips = read_skip_lists(self.paths, (device,), self.python)
        if skips.strict and skips.problems:
            first = skips.problems[:_SHOWN]
            raise BadSkipList(
                f"The skip lists have {len(skips.problems)} malformed entries.",
                seen="; ".join(f"{problem.where}: {problem.what}" for problem in first),
                fix="correct them; `crcr skips check` lists them all",
            )
        return skips

    def planned(
        self, entries: Iterable[Entry], tests: Sequence[str], origins: Iterable[TestOrigin], device: str
    ) -> tuple[PlannedSkip, ...]:
        """Which of the tests the entries name. Entries whose day has passed name none."""
        index = SkipIndex(entries, today=self.today, conditions=self.conditions)
        groups: dict[tuple[str, str], list[str]] = {}
        for test in known_tests(tests, origins, TestNames((device,))):
            entry = index.find(test)
            if entry is not None:
                groups.setdefault((entry.mode, entry.why), []).append(test.text)
        return tuple(PlannedSkip(tuple(named), mode, why) for (mode, why), named in groups.items())


def lists_for_run(paths: Iterable[Path], places: Iterable[str], python: Python) -> ListsForRun:
    """Raises BadSkipList before any test is collected when a list cannot be read."""
    conditions = frozenset((*places, *_SYSTEMS.get(sys.platform, (sys.platform,))))
    lists = ListsForRun(tuple(paths), conditions, datetime.now(timezone.utc).date(), python)
    lists.read("")
    return lists


def warn(skips: SkipList, today: date, commands: Commands) -> None:
    """What does not apply is said, so that nobody believes that it does."""
    if skips.problems:
        first = ", ".join(problem.where for problem in skips.problems[:_SHOWN])
        commands.warning(f"{len(skips.problems)} malformed entries of skip lists do not apply: {first}")
    expired = [entry for entry in skips.entries if entry.expired(today)]
    if expired:
        named = "; ".join(
            f"{entry.where}: {entry.describe()} (until {entry.expires})" for entry in expired[:_SHOWN]
        )
        commands.warning(f"{len(expired)} entries of skip lists have expired; their tests run again: {named}")
