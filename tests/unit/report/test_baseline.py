"""The baseline: from whatever an earlier run left, new failures from known ones; what is unusable is an error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from samples import EVIDENCE

from relay_client.documents.document import save
from relay_client.documents.evidence import Counts
from relay_client.errors import BadBaseline
from relay_client.protocol.callback import FailedTest
from relay_client.report.baseline import Baseline, read_baseline, triage
from relay_client.report.verdict import failed_tests

OLD = FailedTest("test_old[a::b]", "tests/test_a.py::A")
NEW = FailedTest("test_new", "tests/test_a.py::A")
SHAKY = FailedTest("test_shaky", "tests/test_a.py::A")
JUNIT = (
    "<testsuite><testcase classname='tests.test_a.A' name='test_old[a::b]'><failure/></testcase>"
    "<testcase classname='tests.test_a.A' name='test_shaky'/><testcase classname='tests.test_a.A' name='test_shaky'/>"
    "</testsuite>"
)


def left(kind: str, folder: Path) -> Path:
    """A baseline as an evidence file, a folder of evidence, a JUnit file, or a folder of those."""
    item = replace(EVIDENCE, failures=(OLD,), flaky=("tests.test_a.A::test_shaky",))
    if kind.startswith("evidence"):
        path = save(item, folder / "crcr-evidence-test-1-attempt-1")
        return path if kind.endswith("file") else folder
    path = folder / "deep" / "report.xml"
    path.parent.mkdir(parents=True)
    path.write_text(JUNIT, encoding="utf-8")
    return path if kind.endswith("file") else folder


@pytest.mark.parametrize("kind", ["evidence file", "evidence folder", "junit file", "junit folder"])
def test_failures_are_new_known_or_flaky_whatever_the_baseline_is_made_of(kind: str, tmp_path: Path) -> None:
    baseline = read_baseline(left(kind, tmp_path), "test")
    counts = Counts(planned=5, passed=1, failed=3, skipped=1, xfailed=0, crashed=0, lost=0)
    found = triage([replace(EVIDENCE, counts=counts, failures=(OLD, SHAKY, NEW))], baseline)
    assert (found.new, found.known, found.flaky, found.unnamed) == ((NEW,), (OLD,), (SHAKY,), 0)
    assert found.sentence() == "against the baseline: 1 new, 1 known, 1 flaky"
    assert not found.nothing_new


def test_new_failures_come_first_so_that_the_limit_cuts_off_known_ones() -> None:
    known = tuple(FailedTest(f"test_{n}", "t") for n in range(1_000))
    baseline = Baseline(frozenset(f"t::test_{n}" for n in range(1_000)), frozenset())
    found = triage([replace(EVIDENCE, failures=(*known[:999], NEW))], baseline)
    detail = failed_tests([replace(EVIDENCE, failures=(*found.ordered(), known[999]))])
    assert detail[0] == NEW
    assert len(detail) == 1_000


def test_what_no_evidence_names_is_new() -> None:
    counts = Counts(planned=5, passed=0, failed=2, skipped=0, xfailed=0, crashed=1, lost=2)
    found = triage(
        [replace(EVIDENCE, counts=counts, failures=(OLD,), broken_files=("a.py",))],
        Baseline(frozenset({"tests.test_a.A::test_old[a::b]"}), frozenset()),
    )
    assert (found.unnamed, found.nothing_new) == (5, False)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("", "", "not there"),
        ("evidence.json", "{", "cannot be used"),
        ("report.xml", "<html/>", "no results"),
        ("report.xml", "<testsuite/>", "no results"),
    ],
)
def test_a_baseline_that_is_none_is_an_error_with_its_reason(
    tmp_path: Path, name: str, content: str, word: str
) -> None:
    path = tmp_path / (name or "nothing")
    if name:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(BadBaseline) as caught:
        read_baseline(path, "test")
    assert word in caught.value.what
    assert caught.value.seen
    assert "`baseline`" in caught.value.fix
    assert caught.value.exit_code == 63
