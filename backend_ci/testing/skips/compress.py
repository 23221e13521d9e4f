"""Fold entries of single dtypes into rules, and prove that the same tests are matched as before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Optional

from backend_ci.testing.ids import DTYPES
from backend_ci.testing.skips.entry import Entry
from backend_ci.testing.skips.match import KnownTest, SkipIndex
from relay_client.errors import BadSkipList

_ORDER = {dtype: number for number, dtype in enumerate(DTYPES)}


def compress(entries: Sequence[Entry], tests: Sequence[KnownTest]) -> list[Entry]:
    """Fewer entries that mean the same.

    Entries that differ in their dtypes only become one; and where that one names every dtype the tests have,
    one for all dtypes.
    """
    folded = _fold(entries)
    present: dict[tuple[str, str, str], set[str]] = {}
    for test in tests:
        cls, stem, device, dtype = test.id.key
        for method in {stem, test.id.method, test.source} - {""}:
            present.setdefault((cls, method, device), set()).add(dtype)
    return _fold([_widened(entry, present) for entry in folded])


def prove(before: Sequence[Entry], after: Sequence[Entry], tests: Sequence[KnownTest]) -> None:
    """Look every test up in both lists, in every place they name. Raises BadSkipList at the first difference."""
    places = [frozenset({place}) for place in sorted({place for entry in before for place in entry.on})]
    for conditions in (frozenset[str](), *places):
        # No entry is over yet: the lists must agree on every day.
        old = SkipIndex(before, today=date.min, conditions=conditions)
        new = SkipIndex(after, today=date.min, conditions=conditions)
        for test in tests:
            was, now = old.find(test), new.find(test)
            if _decision(was) != _decision(now):
                raise BadSkipList(
                    "The folded list would not match the same tests, so it was not written.",
                    seen=f"{test.id}: {_words(was)} before, {_words(now)} after",
                    fix="report this with the list; the list as it is goes on working",
                )


def _fold(entries: Iterable[Entry]) -> list[Entry]:
    """One entry for those that differ in their dtypes only. Where the first of them stood."""
    groups: dict[Entry, tuple[Entry, list[str]]] = {}
    decided: set[tuple[object, ...]] = set()
    for entry in entries:
        what = (entry.file, entry.cls, entry.method, entry.operator, entry.device, entry.spelled, entry.on)
        # Of equals the first holds: a later one must not be folded into a place before it.
        dtypes = [dtype for dtype in entry.dtypes or ("",) if (*what, dtype) not in decided]
        if not entry.expires:
            decided.update((*what, dtype) for dtype in dtypes)
        if dtypes:
            like = replace(entry, dtypes=(), where="", mode=_group(entry))
            groups.setdefault(like, (entry, []))[1].extend(dtypes)
    return [replace(first, dtypes=_sorted(dtypes)) for first, dtypes in groups.values()]


def _group(entry: Entry) -> str:
    """An entry for all dtypes never joins those of some: another one between them may decide otherwise."""
    return f"{entry.mode} {'some' if entry.dtypes else 'all'}"


def _sorted(dtypes: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(dtypes) - {""}, key=lambda dtype: (_ORDER.get(dtype, len(_ORDER)), dtype)))


def _widened(entry: Entry, present: dict[tuple[str, str, str], set[str]]) -> Entry:
    if not entry.dtypes or not entry.method or entry.operator:
        return entry
    there = [present.get((entry.cls, entry.method, device), set()) for device in entry.devices]
    found = set().union(*there)
    return replace(entry, dtypes=()) if found and found <= set(entry.dtypes) else entry


def _decision(entry: Optional[Entry]) -> tuple[object, ...]:
    return (entry.mode, entry.reason, entry.issue, entry.expires) if entry else ()


def _words(entry: Optional[Entry]) -> str:
    return f"{entry.mode} by {entry.where}" if entry else "runs"
