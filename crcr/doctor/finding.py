"""What the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """One thing to change. An error keeps results from showing or breaks the trust model; a warning may."""

    level: str
    what: str
    seen: str
    fix: str
    line: int = 0


def error(what: str, seen: str, fix: str, line: int = 0) -> Finding:
    return Finding(ERROR, what, seen, fix, line)


def warning(what: str, seen: str, fix: str, line: int = 0) -> Finding:
    return Finding(WARNING, what, seen, fix, line)
