"""From plan and journal to counts: every planned test is accounted for, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Optional

import pytest

from backend_ci.testing.evidence import account
from relay_client.documents.journal import JournalLine, read_journal
from relay_client.protocol.vocabulary import MAX_FAILED_TESTS

A, B, C = "t.py::T::test_a", "t.py::T::test_b", "t.py::T::test_c"


def start(test: str) -> JournalLine:
    return JournalLine(test)


def end(test: str, outcome: str, message: str = "") -> JournalLine:
    return JournalLine(test, outcome, 1.5, message, f"trace of {message}")


@pytest.mark.parametrize(
    ("planned", "journal", "expected"),
    [
        ([], [], {}),
        ([], [start(A), end(A, "passed")], {}),
        ([A], [], {"lost": 1}),
        ([A], [start(A)], {"crashed": 1}),
        ([A], [start(A), end(A, "passed")], {"passed": 1}),
        ([A], [start(A), end(A, "failed")], {"failed": 1}),
        ([A], [start(A), end(A, "skipped")], {"skipped": 1}),
        ([A], [start(A), end(A, "xfailed")], {"xfailed": 1}),
        ([A], [end(A, "passed")], {"passed": 1}),
        ([A, B, C], [start(A), end(A, "passed"), start(B)], {"passed": 1, "crashed": 1, "lost": 1}),
        # The last end counts: a later session of the same run ran it again.
        ([A], [end(A, "passed"), end(A, "failed")], {"failed": 1}),
        ([A], [end(A, "failed"), end(A, "passed")], {"passed": 1}),
        ([A], [end(A, "passed")] * 5, {"passed": 1}),
        ([A], [start(A)] * 5, {"crashed": 1}),
        # Whoever writes the journal cannot add to the plan, or take from it.
        ([A], [start("x"), end("x", "passed"), end("", "passed")], {"lost": 1}),
        ([A, B], [end(B, "passed"), end(C, "failed")], {"lost": 1, "passed": 1}),
        # Interleaved, as parallel runners leave it.
        ([A, B], [start(A), start(B), end(B, "passed"), end(A, "failed")], {"passed": 1, "failed": 1}),
    ],
)
def test_every_planned_test_is_counted_once(
    planned: Sequence[str], journal: Sequence[JournalLine], expected: dict[str, int]
) -> None:
    accounts = account(planned, journal, "killed by SIGSEGV")
    counts = vars(accounts.counts)
    assert counts == {**dict.fromkeys(counts, 0), "planned": len(planned), **expected}
    assert accounts.counts.add_up()
    bad = sum(expected.get(name, 0) for name in ("failed", "crashed", "lost"))
    assert len(accounts.failures) == bad
    assert len(accounts.crashed) == expected.get("crashed", 0)
    assert len(accounts.not_started) == expected.get("lost", 0)


def test_counts_that_miss_a_test_do_not_add_up() -> None:
    counts = account([A], [end(A, "passed")], "").counts
    assert not type(counts)(**{**vars(counts), "planned": 2}).add_up()


@pytest.mark.parametrize(
    ("test", "classname", "name"),
    [
        (A, "t.py::T", "test_a"),
        ("d/t.py::test_f", "d/t.py", "test_f"),
        ("t.py::T::test_a[x::y]", "t.py::T::test_a[x", "y]"),
        ("no file", "no file", "no file"),
        ("", "", ""),
    ],
)
def test_a_failure_is_named_by_its_class_and_its_own_name(test: str, classname: str, name: str) -> None:
    (failure,) = account([test], [end(test, "failed", "it broke")], "").failures
    assert (failure.classname, failure.name) == (classname, name)
    assert (failure.message, failure.stacktrace, failure.duration) == ("it broke", "trace of it broke", 1.5)


def test_a_crash_says_how_the_process_died() -> None:
    (crashed, lost) = account([A, B], [start(A)], "killed by SIGSEGV").failures
    assert crashed.message == "the process died while this test ran: killed by SIGSEGV"
    assert lost.message == "never started"


def test_a_thousand_failures_are_shown_and_all_are_counted() -> None:
    planned = [f"t.py::test_{number}" for number in range(MAX_FAILED_TESTS + 5)]
    accounts = account(planned, [], "")
    assert accounts.counts.lost == MAX_FAILED_TESTS + 5
    assert len(accounts.failures) == MAX_FAILED_TESTS


def test_a_hostile_message_is_cut() -> None:
    (failure,) = account([A], [JournalLine(A, "failed", 0.0, "x" * 10**6, "y" * 10**6 + "end")], "").failures
    assert len(failure.message or "") == 1_024
    assert len(failure.stacktrace or "") == 4_096
    assert (failure.stacktrace or "").endswith("end")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"test": "a"}', None),
        ('{"test": "a", "outcome": "passed"}', "passed"),
        ('{"test": "a", "outcome": "passed", "more": 1}', "passed"),
        ('{"test": "a", "outcome": "pas', ""),
        ('{"test": "a", "outcome": "great"}', ""),
        ('{"test": "a", "outcome": "passed", "seconds": -1}', ""),
        ('{"test": "a", "outcome": "passed", "seconds": "fast"}', ""),
        ('{"test": ["a"], "outcome": "passed"}', ""),
        ('{"outcome": "passed"}', ""),
        ("[]", ""),
        ("null", ""),
        ("", ""),
        ("[" * 100_000, ""),
        ("\x00\x01", ""),
        ('{"test": "a"}{"test": "b"}', ""),
    ],
)
def test_a_line_that_is_torn_or_foreign_is_passed_over(
    tmp_path: Path, line: str, expected: Optional[str]
) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(line + '\n{"test": "z", "outcome": "passed"}\n')
    found = [(entry.test, entry.outcome) for entry in read_journal(path)]
    assert found == ([("a", expected)] if expected != "" else []) + [("z", "passed")]


def test_bytes_that_are_no_text_cost_only_their_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'\xff\xfe\n{"test": "a\xff"}\n{"test": "z"}\n')
    assert [entry.test for entry in read_journal(path)] == ["a\ufffd", "z"]


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path / "journal.jsonl")) == []
