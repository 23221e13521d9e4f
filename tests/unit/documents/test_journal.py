"""The journal: what can be read of it is read, the rest costs nothing but itself."""

from __future__ import annotations

from pathlib import Path

from relay_client.documents.journal import JournalLine, read_journal


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path / "journal.jsonl")) == []


def test_torn_foreign_and_hostile_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(
        b'{"test": "a"}\n'
        b"not json\n"
        b'{"test": 1}\n'
        b'{"test": "a", "outcome": "exploded"}\n'
        b'{"test": "a", "outcome": "passed", "seconds": NaN}\n' + b"[" * 100_000 + b"\n"
        b"\xff\xfe\n"
        b'{"test": "a", "outcome": "passed", "seconds": 0.5, "later": true}\n'
        b'{"test": "b", "outco'
    )
    assert list(read_journal(path)) == [JournalLine("a"), JournalLine("a", "passed", 0.5)]
