"""How long tests took before: from the journals that earlier runs left."""

from __future__ import annotations

from pathlib import Path

from relay_client.documents import journal as journals

_MOST_FILES = 1_000


def seconds_of_before(folder: Path) -> dict[str, float]:
    """Seconds per test, of the newest journal that has it. Empty where there is none."""
    found = sorted(folder.rglob("journal*.jsonl"), key=lambda path: path.stat().st_mtime)[-_MOST_FILES:]
    return {
        line.test: line.seconds
        for path in found
        for line in journals.read_journal(path)
        if line.outcome is not None
    }
