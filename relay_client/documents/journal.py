"""`journal.jsonl`: one line as each test starts and ends, written while it happens.

JUnit is written when a session ends; a process that dies takes it along. The journal survives, and
says which test was running.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from relay_client.protocol.shape import ShapeError, member, parse

FILE = "journal.jsonl"
OUTCOMES = ("passed", "failed", "skipped", "xfailed")


@dataclass(frozen=True)
class JournalLine:
    """One line: a test started (`outcome` null), or ended."""

    test: str = member("Node id")
    outcome: Optional[str] = member("Null at its start", one_of=OUTCOMES, default=None)
    seconds: float = member("Of the whole test", default=0.0, minimum=0)
    message: str = member("First line of a failure or the reason of a skip", default="")
    trace: str = member("The end of a failure's traceback", default="")


def read_journal(path: Path) -> Iterator[JournalLine]:
    """The lines of a journal that can be read; a torn or foreign line is passed over.

    What it held is not lost by that: a test without an end counts as crashed or lost.
    """
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                yield parse(JournalLine, json.loads(text))
            except (ShapeError, ValueError, RecursionError):
                continue
