"""What is wrong with a list: parts that cannot be read, entries that match nothing, are over, or repeat another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Optional

from backend_ci.testing.ids import TestId
from backend_ci.testing.skips.entry import Entry, SkipList
from backend_ci.testing.skips.match import KnownTest, SkipIndex

KINDS = {
    "malformed": "cannot be read",
    "expired": "no longer apply",
    "redundant": "only repeat another",
    "stale": "match no test",
}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. `kind` is a key of KINDS."""

    kind: str
    where: str
    what: str


def check(skips: SkipList, tests: Optional[Sequence[KnownTest]], today: date) -> list[Finding]:
    """All findings, in the order of KINDS. Without tests, whether an entry matches one is not asked."""
    findings = [Finding("malformed", problem.where, problem.what) for problem in skips.problems]
    findings += [
        Finding("expired", entry.where, f"{entry.describe()}: expired on {entry.expires}")
        for entry in skips.entries
        if entry.expired(today)
    ]
    findings += _redundant(skips.entries, today)
    if tests is not None:
        findings += _stale(skips.entries, tests, today)
    return findings


def _redundant(entries: Sequence[Entry], today: date) -> list[Finding]:
    """Entries whose every test another entry treats the same way. Of two that repeat each other, the later one."""
    everything = SkipIndex(entries, today=today, everything=True)
    order = {id(entry): number for number, entry in enumerate(entries)}
    gone: set[int] = set()
    findings = []
    # Backwards: what is found to repeat another is no reason to drop the other.
    for entry in reversed(entries):
        if entry.expired(today):
            continue
        covers = [_cover(entry, each, everything, gone, order, today) for each in _parts(entry)]
        if all(cover is not None for cover in covers):
            gone.add(id(entry))
            cover = covers[0]
            assert cover is not None
            findings.append(
                Finding("redundant", entry.where, f"{entry.describe()}: {cover.where} says the same")
            )
    return findings[::-1]


def _parts(entry: Entry) -> list[KnownTest]:
    """The entry as tests of its own: one for each device and dtype."""
    return [
        KnownTest(
            TestId(entry.cls, entry.method, entry.file, device=device, dtypes=(dtype,) if dtype else ()),
            operator=entry.operator,
        )
        for device in entry.devices
        for dtype in entry.dtypes or ("",)
    ]


def _cover(
    entry: Entry,
    part: KnownTest,
    everything: SkipIndex,
    gone: set[int],
    order: dict[int, int],
    today: date,
) -> Optional[Entry]:
    """Another entry that also decides for this part, in the same way. One that lies between and decides
    otherwise keeps the entry from being redundant.
    """
    for other in everything.matching(part):
        if other is entry or id(other) in gone or other.expired(today):
            continue
        if order[id(other)] > order[id(entry)] and _same_reach(entry, other):
            continue  # of two equal ones the later is the one that repeats
        if other.on and other.on != entry.on:
            continue
        if other.file and not entry.file:
            continue
        if other.mode != entry.mode or (other.expires or date.max) < (entry.expires or date.max):
            return None
        return other
    return None


def _same_reach(one: Entry, other: Entry) -> bool:
    return _reach(one) == _reach(other)


def _reach(entry: Entry) -> tuple[object, ...]:
    """Which tests an entry means."""
    return entry.file, entry.cls, entry.method, entry.operator, entry.device, frozenset(entry.dtypes)


def _stale(entries: Iterable[Entry], tests: Sequence[KnownTest], today: date) -> list[Finding]:
    entries = list(entries)
    everything = SkipIndex(entries, today=today, everything=True)
    used = {id(entry) for test in tests for entry in everything.matching(test)}
    return [
        Finding("stale", entry.where, f"{entry.describe()}: matches none of {len(tests)} tests")
        for entry in entries
        if id(entry) not in used
    ]
