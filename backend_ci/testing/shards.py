"""Divide planned tests among shards so that all end at about the same time. Pure.

Once, in the job that plans: every shard reads the same division from `plan.json`.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from backend_ci.testing.harness.batches import owner

# A shard of its own costs a start of Python and torch; a class that is cut costs its set-up twice.
_PARTS_PER_SHARD = 4
# What a test is taken for that nobody has timed.
_UNKNOWN_SECONDS = 1.0
_SKIPPED_SECONDS = 0.001


@dataclass(frozen=True)
class Unit:
    """Consecutive tests of one class that stay together, with their expected time in seconds."""

    tests: tuple[str, ...]
    seconds: float


def divide(
    tests: Sequence[str], shards: int, seconds: Mapping[str, float], skipped: Collection[str] = ()
) -> tuple[tuple[str, ...], ...]:
    """The tests of each shard: each test in exactly one, in the order of `tests` within it.

    Longest first onto the shard with the least (Graham, 1969), with classes cut where they exceed a part of a
    shard. The same input gives the same division; names of equal time decide by their order. With fewer tests
    than shards the last ones stay empty.
    """
    if shards <= 1:
        return (tuple(tests),)
    place = {test: index for index, test in enumerate(tests)}
    times = {**expected(tests, seconds), **dict.fromkeys(skipped, _SKIPPED_SECONDS)}
    units = _units(tests, times, shards)
    loads = [(0.0, shard) for shard in range(shards)]
    result: list[list[str]] = [[] for _ in range(shards)]
    for unit in sorted(units, key=lambda unit: (-unit.seconds, place[unit.tests[0]])):
        load, shard = heapq.heappop(loads)
        result[shard] += unit.tests
        heapq.heappush(loads, (load + unit.seconds, shard))
    return tuple(tuple(sorted(part, key=place.__getitem__)) for part in result)


def expected(tests: Sequence[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds for each test: its own of before, else the median of its class, else of all, else one."""
    by_owner: dict[str, list[float]] = {}
    for test, value in seconds.items():
        by_owner.setdefault(owner(test), []).append(value)
    medians = {name: statistics.median(values) for name, values in by_owner.items()}
    overall = statistics.median(seconds.values()) if seconds else _UNKNOWN_SECONDS
    return {
        test: max(seconds[test] if test in seconds else medians.get(owner(test), overall), _SKIPPED_SECONDS)
        for test in tests
    }


def _units(tests: Sequence[str], seconds: Mapping[str, float], shards: int) -> list[Unit]:
    """Classes, cut where a part would exceed a quarter of a shard."""
    most = sum(seconds.values()) / (shards * _PARTS_PER_SHARD)
    units: list[Unit] = []
    current: list[str] = []
    load = 0.0
    for test in tests:
        full = load + seconds[test] > most and load > 0
        if current and (full or owner(current[-1]) != owner(test)):
            units.append(Unit(tuple(current), load))
            current, load = [], 0.0
        current.append(test)
        load += seconds[test]
    if current:
        units.append(Unit(tuple(current), load))
    return units
