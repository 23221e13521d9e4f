"""Hostile, broken and huge reports: refused or said to be broken, what was read counts, memory stays flat."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from relay_client.report.junit import scan as scanning
from relay_client.report.junit.scan import Case, scan


def read(tmp_path: Path, data: bytes) -> tuple[list[Case], str]:
    path = tmp_path / "report.xml"
    path.write_bytes(data)
    cases: list[Case] = []
    found = scan(path, cases.append)
    assert found.cases == len(cases)
    return cases, found.broken


ONE = b'<testcase classname="a.B" name="test_c"/>'


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b'<!DOCTYPE a [<!ENTITY b "c">]><testsuite/>', "document type or entities"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuite/>', "document type or entities"),
        (
            b'<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><testsuite>&b;</testsuite>',
            "document type or entities",
        ),
        (b"<testsuite>&unknown;</testsuite>", "undefined entity"),
        (b"<html><body>404</body></html>", "not a JUnit report"),
        (b"", "no element found"),
        (b"PK\x03\x04", "not whole XML"),
        (b"\xff\xfe<\x00t\x00", "UTF-16"),
        (b"<testsuite>" + b"<x>" * 100, "nests deeper"),
        (b"<testsuite " + b" ".join(b'a%d=""' % n for n in range(100)) + b"/>", "attributes"),
        (b"<testsuite>" + b"<a" + b" " * 5_000_000, "one tag of it"),
        (b'<testsuite><testcase name="' + b"x" * 5_000_000, "one tag of it"),
        (b"<testsuite><!--" + b"x" * 5_000_000, "one tag of it"),
        (b"<testsuite></testsuite><testsuite/>", "junk after"),
        (b"<testsuite><testcase/></testsuite>", "has no name"),
        (b'<testsuite failures="2" errors="1">' + ONE + b"</testsuite>", "announces 3 failures"),
    ],
    ids=lambda value: value[:24].decode(errors="replace") if isinstance(value, bytes) else "",
)
def test_what_is_no_report_is_said_to_be_broken(tmp_path: Path, data: bytes, word: str) -> None:
    _, broken = read(tmp_path, data)
    assert word in broken
    assert len(broken) < 500


@pytest.mark.parametrize("cut", [b"", b"<testcase name=", b'<testcase name="x"><failure>half', b"\xe2\x82"])
def test_what_a_torn_report_held_counts_and_the_file_is_broken(tmp_path: Path, cut: bytes) -> None:
    cases, broken = read(tmp_path, b"<testsuites><testsuite>" + ONE * 3 + cut)
    assert [case.test.key for case in cases] == ["a.B::test_c"] * 3
    assert "not whole XML" in broken


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[31m", "?[31m"),
        (b"\x00", "?"),
        (b"&#x1b;&#0;&#31;&#xD800;&#xFFFF;", "?????"),
        (b"&#10;&#x41;&#128165;", "\nA💥"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\xef\xbf\xbe", "?"),
        ("ü€💥".encode(), "ü€💥"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("shift", range(8))
def test_characters_that_xml_forbids_do_not_break_a_report(
    tmp_path: Path, raw: bytes, shown: str, shift: int
) -> None:
    """Wherever the boundary of two reads falls into them."""
    head = b"<testsuite><!--"
    padding = b"x" * (64 * 1024 - len(head) - len(b'--><testcase name="t"><failure>') - shift)
    data = head + padding + b'--><testcase name="t"><failure>' + raw + b"</failure></testcase></testsuite>"
    cases, broken = read(tmp_path, data)
    assert (broken, [case.trace for case in cases]) == ("", [shown])


def test_a_file_that_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "real.xml").write_bytes(b"<testsuite>" + ONE + b"</testsuite>")
    (tmp_path / "link").symlink_to(tmp_path / "real.xml")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "nothing"):
        assert scan(tmp_path / name, lambda _: pytest.fail("read")).broken


def test_a_file_above_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "MAX_FILE_BYTES", 10)
    assert "the limit is 10" in read(tmp_path, b"<testsuite>" + ONE + b"</testsuite>")[1]


def peak_bytes(path: Path) -> int:
    tracemalloc.start()
    try:
        assert scan(path, lambda _: None).broken == ""
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_ten_times_the_size_takes_no_more_memory(tmp_path: Path) -> None:
    case = (
        b'<testcase classname="a.B" name="test_%d" time="0.1"><failure message="m">'
        + b"trace &lt;line&gt;\n" * 400
        + b"</failure><system-out>"
        + b"printed\n" * 300
        + b"</system-out></testcase>\n"
    )
    peaks = []
    for number in (100, 1_000):
        path = tmp_path / f"{number}.xml"
        with path.open("wb") as file:
            file.write(b"<testsuites><testsuite>")
            for index in range(number):
                file.write(case % index)
            file.write(b"</testsuite></testsuites>")
        peaks.append(peak_bytes(path))
    assert path.stat().st_size > 9_000_000
    assert peaks[1] < peaks[0] + 200_000
    assert peaks[1] < 2_000_000
