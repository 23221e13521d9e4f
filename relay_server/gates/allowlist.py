"""Gate 2: may this repository report. Level L2 and up may; the others are answered `ignored`, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from relay_server.allowlist import Allowlist, Entry

_REPORTING_LEVELS = ("L2", "L3", "L4")


@dataclass(frozen=True)
class Ignored:
    """The callback is dropped, and that is not an error of the caller."""

    detail: str


def check(repository: str, allowlist: Allowlist) -> Entry | Ignored:
    """The caller's entry, or why its result is dropped."""
    entry = allowlist.find(repository)
    if entry is None:
        return Ignored(
            f"{repository} is not on the allowlist, so the result was dropped. Fix: ask for level L2 in upstream's"
            " allowlist.yml, or take the report step out of the workflow."
        )
    if entry.level not in _REPORTING_LEVELS:
        return Ignored(
            f"{entry.repository} is at level {entry.level}, which receives dispatches but has no row on the"
            " dashboard, so the result was dropped. Fix: ask for level L2 in upstream's allowlist.yml."
        )
    return entry
