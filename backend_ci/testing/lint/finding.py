"""One finding of the linter."""

from __future__ import annotations

from dataclasses import dataclass

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """`rule` is the name in brackets that upstream's linter uses; lines and columns count from 1, 0 is unknown."""

    file: str
    line: int
    column: int
    severity: str
    rule: str
    what: str
    fix: str = ""
