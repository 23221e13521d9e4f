"""From test cases of many files to one status per test. Pure.

| where a test stands twice                         | what counts                                     |
|---------------------------------------------------|-------------------------------------------------|
| in one file (reruns), or two files of one folder  | the last one                                    |
| in two attempts of one shard                      | the last attempt                                |
| subtests of a test, in one file                   | the worst of them                               |
| in two shards                                     | the worst of them                               |
| skipped after it failed                           | it failed: only a pass heals a failure          |

More than one try with a pass at the end is flaky.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from relay_client.protocol.callback import FailedTest
from relay_client.report.junit.scan import Case

# One test costs a few hundred bytes of memory; a million is more than PyTorch has.
MAX_TESTS = 1_000_000
_MAX_DETAILS = 2_000

# The higher, the worse.
_RANKS = {"passed": 0, "skipped": 1, "xfailed": 2, "failed": 3}
_OUTCOMES = tuple(_RANKS)
_PASSED, _FAILED = 0, 3


class TooManyTests(Exception):
    """The reports name more tests than there are."""


@dataclass(frozen=True)
class Outcomes:
    """What became of every test. `flaky` are ids that passed after more than one try."""

    numbers: dict[str, int]
    failures: tuple[FailedTest, ...]
    flaky: tuple[str, ...]


class Merge:
    """Takes cases in the order in which they were made: attempt by attempt, file by file."""

    def __init__(self) -> None:
        # Shard to test id to (tries << 2 | rank): small, because a row may have a million tests.
        self._shards: dict[str, dict[str, int]] = {}
        self._details: dict[str, FailedTest] = {}
        self._shard: dict[str, int] = {}
        self._parts: set[str] = set()
        self._count = 0

    def begin_file(self, shard: str) -> None:
        """The cases that follow are of another file."""
        self._shard = self._shards.setdefault(shard, {})
        self._parts = set()

    def take(self, case: Case) -> None:
        """Count one case. Raises TooManyTests."""
        key, rank = case.test.key, _RANKS[case.outcome]
        before = self._shard.get(key)
        tries = 1 + case.again
        if before is None:
            self._count += 1
            if self._count > MAX_TESTS:
                raise TooManyTests
        else:
            old = before & 3
            if case.test.part and key in self._parts:
                tries = before >> 2
                rank = max(rank, old)
            else:
                tries += before >> 2
                rank = _FAILED if old == _FAILED and rank != _PASSED else rank
        if case.test.part:
            self._parts.add(key)
        self._shard[key] = min(tries, 1_000) << 2 | rank
        if case.outcome == "failed" and (key in self._details or len(self._details) < _MAX_DETAILS):
            self._details[key] = _detail(case)

    def outcomes(self, limit: int) -> Outcomes:
        """The result over all shards, with at most `limit` failed tests in detail."""
        numbers = dict.fromkeys(_OUTCOMES, 0)
        failed: list[str] = []
        flaky: list[str] = []
        for key, rank, tries in self._worst():
            numbers[_OUTCOMES[rank]] += 1
            if rank == _FAILED:
                failed.append(key)
            elif rank == _PASSED and tries > 1:
                flaky.append(key)
        details = tuple(self._details.get(key) or _bare(key) for key in failed[:limit])
        return Outcomes(numbers, details, tuple(flaky))

    def ids(self) -> set[str]:
        """The ids of all tests that stand in a report."""
        return {key for tests in self._shards.values() for key in tests}

    def _worst(self) -> Iterator[tuple[str, int, int]]:
        seen: Optional[set[str]] = set() if len(self._shards) > 1 else None
        for tests in self._shards.values():
            for key, packed in tests.items():
                if seen is None:
                    yield key, packed & 3, packed >> 2
                elif key not in seen:
                    seen.add(key)
                    found = [other[key] for other in self._shards.values() if key in other]
                    yield key, max(item & 3 for item in found), max(item >> 2 for item in found)


def _detail(case: Case) -> FailedTest:
    return FailedTest(case.test.name, case.test.classname, case.message, case.trace, case.seconds)


def _bare(key: str) -> FailedTest:
    classname, _, name = key.rpartition("::")
    return FailedTest(name, classname)
