"""One test in many records: reruns, files, attempts, shards, subtests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relay_client.report.junit import merge as merging
from relay_client.report.junit import read as reading
from relay_client.report.junit.names import MAX_NAME_CHARACTERS, of_junit, of_node, of_parts
from relay_client.report.junit.read import Reports, read_reports

# An outcome of test_c, or of a test with another name.
Record = Any

CHILD = {
    "pass": "",
    "fail": "<failure message='f'/>",
    "error": "<error message='e'/>",
    "skip": "<skipped/>",
    "xfail": "<skipped type='pytest.xfail'/>",
    "rerun": "<rerun message='PyTorch writes it'/>",
    "healed": "<flakyFailure/>",
}


def write(folder: Path, name: str, *records: Record, timestamp: str = "") -> None:
    cases = ""
    for record in records:
        outcome, test = record if isinstance(record, tuple) else (record, "test_c")
        cases += f"<testcase classname='a.B' name='{test}'>{CHILD[outcome]}</testcase>"
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<testsuite timestamp="{timestamp}">{cases}</testsuite>', encoding="utf-8")


def read(folder: Path) -> Reports:
    return read_reports(folder, ["**/*.xml"], 10)


def status(folder: Path) -> str:
    """The status of the one test."""
    outcomes = read(folder).outcomes
    (name,) = [name for name, number in outcomes.numbers.items() if number]
    assert sum(outcomes.numbers.values()) == 1
    return "flaky" if outcomes.flaky else name


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (["pass"], "passed"),
        (["fail", "pass"], "flaky"),
        (["pass", "pass"], "flaky"),
        (["fail", "fail"], "failed"),
        (["pass", "fail"], "failed"),
        (["fail", "error"], "failed"),
        (["fail", "skip"], "failed"),
        (["error", "xfail"], "failed"),
        (["skip", "pass"], "flaky"),
        (["rerun"], "flaky"),
        (["healed"], "flaky"),
        (["xfail"], "xfailed"),
        ([("fail", "test_c (i=1)"), ("skip", "test_c (i=2)")], "failed"),
        ([("skip", "test_c (i=1)"), ("fail", "test_c [m] (i=2)")], "failed"),
    ],
    ids=str,
)
def test_records_of_one_file(tmp_path: Path, records: list[Record], expected: str) -> None:
    write(tmp_path, "a.xml", *records)
    assert status(tmp_path) == expected


def test_two_files_of_a_folder_count_in_the_order_of_their_time_not_of_their_names(tmp_path: Path) -> None:
    write(tmp_path, "a.xml", "pass", timestamp="2026-12-01T10:00:02")
    write(tmp_path, "b.xml", "fail", timestamp="2026-12-01T10:00:01")
    assert status(tmp_path) == "flaky"
    write(tmp_path, "b.xml", "fail", timestamp="2026-12-01T10:00:03")
    assert status(tmp_path) == "failed"


def test_the_last_attempt_of_a_shard_counts(tmp_path: Path) -> None:
    write(tmp_path, "crcr-evidence-test-1-attempt-9/a.xml", "fail")
    write(tmp_path, "crcr-evidence-test-1-attempt-10/a.xml", "pass")
    assert status(tmp_path) == "flaky"


def test_a_shard_that_was_not_run_again_keeps_what_it_said(tmp_path: Path) -> None:
    write(tmp_path, "evidence-1-attempt-1/a.xml", "fail")
    write(tmp_path, "evidence-2-attempt-1/a.xml", "fail")
    write(tmp_path, "evidence-2-attempt-2/a.xml", "pass")
    assert status(tmp_path) == "failed"


def test_a_test_that_fails_in_one_of_two_shards_failed(tmp_path: Path) -> None:
    for order in ("1", "3"):
        write(tmp_path, f"shard-{order}/a.xml", "fail")
        write(tmp_path, "shard-2/a.xml", "pass")
        assert status(tmp_path) == "failed"
        (tmp_path / f"shard-{order}/a.xml").unlink()


def test_a_file_that_broke_in_an_attempt_that_was_repeated_is_history(tmp_path: Path) -> None:
    write(tmp_path, "x-attempt-1/a.xml", "pass")
    (tmp_path / "x-attempt-1/b.xml").write_text("<testsuite>", encoding="utf-8")
    assert read(tmp_path).broken
    write(tmp_path, "x-attempt-2/a.xml", "pass")
    assert read(tmp_path).broken == ()


def test_patterns_do_not_leave_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "outside", "a.xml", "pass")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "way").symlink_to(tmp_path / "outside")
    for pattern in ("../outside/*.xml", str(tmp_path / "outside" / "*.xml"), "way/*.xml", "**/*.xml"):
        assert read_reports(inside, [pattern], 10).files == 0


def test_more_than_can_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        write(tmp_path, f"{name}.xml", ("pass", name))
    monkeypatch.setattr(reading, "MAX_FILES", 2)
    assert "more than 2 JUnit files" in read(tmp_path).broken[0]
    monkeypatch.setattr(merging, "MAX_TESTS", 1)
    assert any("tests" in text for text in read(tmp_path).broken)


def test_every_writer_s_spelling_of_a_test_is_one_name() -> None:
    key = "test.test_a.TestX::test_b[a::b/c.py]"
    assert of_junit("test.test_a.TestX", "test_b[a::b/c.py]").key == key
    assert of_node("test/test_a.py::TestX::test_b[a::b/c.py]").key == key
    assert of_parts("test/test_a.py::TestX", "test_b[a::b/c.py]").key == key


def test_long_names_stay_different() -> None:
    names = {of_junit("c" * 5_000 + end, "n" * 5_000 + end).key for end in "ab"}
    assert len(names) == 2
    assert max(map(len, names)) <= 2 * MAX_NAME_CHARACTERS + 2
