"""Reports as pytest 9.2, its plugins and xmlrunner 4.0 really wrote them (tests/fixtures/junit)."""

from __future__ import annotations

import pytest
from step import FIXTURES

from relay_client.report.junit.read import Reports, read_reports

JUNIT = FIXTURES / "junit"


def read(*names: str) -> Reports:
    return read_reports(JUNIT, names, 1_000)


PYTEST_FAILED = {
    "t.test_broken": "collection failure",
    "t.test_kinds::test_fail": "AssertionError: illegal #x1B#x00 <&>",
    "t.test_kinds::test_xpass_strict": "[XPASS(strict)]",
    "t.test_kinds::test_setup_error": "failed on setup",
    "t.test_kinds::test_teardown_error": "failed on teardown",
    "t.test_kinds::test_fail_and_teardown_error": "failed on teardown",
    "t.test_kinds::test_never": "assert 0",
    "t.test_kinds::test_subtests": "assert 1 != 1",
    "t.test_kinds.TestU::test_sub": "1 == 1",
    "t.test_kinds.TestU::test_unexpected": "Unexpected success",
    "t.test_kinds.TestSetUp::test_a": "failed on setup",
    "t.test_kinds.TestSetUp::test_b": "failed on setup",
}


@pytest.mark.parametrize(("name", "without"), [("pytest.xml", ""), ("pytest_xunit1.xml", "t.test_broken")])
def test_pytest_with_reruns_and_subtests(name: str, without: str) -> None:
    found = read(name)
    assert found.broken == ()
    failed = {
        f"{test.classname}::{test.name}" if test.classname else test.name: test.message
        for test in found.outcomes.failures
    }
    expected = {key: word for key, word in PYTEST_FAILED.items() if key != without}
    assert failed.keys() == expected.keys()
    assert [key for key, word in expected.items() if word not in failed[key]] == []
    # A rerun is a second record of the test; a test that failed twice is one failure, not two.
    assert found.outcomes.flaky == ("t.test_kinds::test_flaky",)
    assert found.outcomes.numbers == {"passed": 6, "skipped": 1, "xfailed": 2, "failed": len(expected)}
    assert "t.test_kinds::test_param[a::b]" in found.ids


def test_a_worker_of_xdist_that_died_fails_its_test() -> None:
    found = read("pytest_xdist_crash.xml")
    assert found.outcomes.numbers == {"passed": 1, "skipped": 0, "xfailed": 0, "failed": 1}
    assert "worker 'gw0' crashed" in found.outcomes.failures[0].message


def test_xmlrunner_one_file_per_class() -> None:
    found = read("xmlrunner_*.xml")
    assert (found.files, found.broken) == (3, ())
    assert {(test.classname, test.name) for test in found.outcomes.failures} == {
        ("TestU", "test_fail"),
        ("TestU", "test_error"),
        ("TestU", "test_sub"),
        ("TestU", "test_unexpected"),
        ("__main__.TestSetUp", "setUpClass"),
        ("__main__.TestTear", "tearDownClass"),
    }
    assert found.outcomes.numbers == {"passed": 3, "skipped": 1, "xfailed": 1, "failed": 6}
    assert found.outcomes.flaky == ()
