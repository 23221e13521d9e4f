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
_READ_BYTES = 1 << 20


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

    What it held is not lost by that: a test without an end counts as crashed or lost. A journal that the tests
    made something else of (a pipe would block) says nothing.
    """
    if not path.is_file() or path.is_symlink():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            line = _line(text)
            if line is not None:
                yield line


class JournalReader:
    """Reads a journal while it is written: each call gives the whole lines that came since the last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size if path.is_file() else 0

    def new_lines(self) -> list[JournalLine]:
        if not self._path.is_file() or self._path.is_symlink():
            return []
        if self._path.stat().st_size <= self._offset:
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(_READ_BYTES)
        whole = data.rpartition(b"\n")[0]
        if not whole and len(data) < _READ_BYTES:
            return []
        # A line that is longer than any of ours is passed over in pieces.
        self._offset += len(whole) + 1 if whole else len(data)
        lines = (_line(text) for text in whole.decode("utf-8", errors="replace").split("\n"))
        return [line for line in lines if line is not None]


def _line(text: str) -> Optional[JournalLine]:
    try:
        return parse(JournalLine, json.loads(text))
    except (ShapeError, ValueError, RecursionError):
        return None
