"""The verdict, row by row: success needs everything, anything missing has its reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from samples import COMMIT, EVIDENCE

from relay_client.documents.evidence import Counts, Evidence
from relay_client.documents.failure import Failure
from relay_client.protocol.callback import FailedTest
from relay_client.report.verdict import add_results, conclude, failed_tests

GOOD = {"receive": "success", "test": "success"}


def counts(**changed: int) -> Counts:
    """Five planned tests, three passed, and whatever is changed."""
    values = {"planned": 5, "passed": 3, "failed": 0, "skipped": 1, "xfailed": 1, "crashed": 0, "lost": 0}
    return Counts(**{**values, **changed})


def evidence(**changed: Any) -> Evidence:
    return replace(EVIDENCE, **changed)


def test_success_has_no_reasons() -> None:
    verdict = conclude(COMMIT, GOOD, [evidence()])
    assert (verdict.conclusion, verdict.reasons) == ("success", ())
    assert verdict.results is not None
    assert (verdict.results.passed, verdict.results.failed, verdict.results.skipped) == (3, 0, 2)


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ([], "no evidence arrived"),
        ([evidence(counts=counts(passed=2, failed=1))], "1 test failed"),
        ([evidence(counts=counts(passed=2, crashed=1))], "1 test crashed"),
        ([evidence(counts=counts(passed=1, lost=2))], "2 tests were lost"),
        ([evidence(counts=counts(planned=0, passed=0, skipped=0, xfailed=0))], "no test passed"),
        ([evidence(counts=counts(passed=0, skipped=4))], "no test passed"),
        ([evidence(counts=counts(planned=6))], "do not add up"),
        ([evidence(torch_git_version="e" * 40)], "the tested torch is commit eeee"),
        ([evidence(torch_git_version=None)], "the tested torch is commit None"),
        ([evidence(commit="e" * 40, torch_git_version="e" * 40)], "the evidence is of commit eeee"),
        ([evidence(broken_files=("tests/test_x.py: SyntaxError",))], "could not be collected"),
        ([evidence(exit_code=3)], "ended with 3"),
        ([evidence(exit_code=-11)], "ended with -11"),
        ([evidence(exit_code=None)], "ended with None"),
        ([evidence(shards=2)], "shard 2 of 2 left no evidence"),
        ([evidence(), evidence()], "left evidence twice"),
        (
            [evidence(shard=1, shards=2), evidence(shard=2, shards=2, counts=counts(passed=2, failed=1))],
            "shard 2",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_a_failure_with_its_reason(found: list[Evidence], word: str) -> None:
    verdict = conclude(COMMIT, GOOD, found)
    assert verdict.conclusion == "failure"
    assert word in "; ".join(verdict.reasons)


@pytest.mark.parametrize("result", ["failure", "skipped"])
@pytest.mark.parametrize("job", sorted(GOOD))
def test_a_job_that_did_not_succeed_is_a_failure_whatever_the_evidence(job: str, result: str) -> None:
    verdict = conclude(COMMIT, {**GOOD, job: result}, [evidence()])
    assert verdict.conclusion == "failure"
    assert f"job {job}: {result}" in verdict.reasons


@pytest.mark.parametrize("found", [[], [evidence()], [evidence(counts=counts(passed=2, failed=1))]])
def test_cancelled_stays_cancelled(found: list[Evidence]) -> None:
    assert conclude(COMMIT, {**GOOD, "test": "cancelled"}, found).conclusion == "cancelled"


def test_a_fault_comes_first_among_the_reasons() -> None:
    verdict = conclude(COMMIT, {**GOOD, "test": "failure"}, [], ["build-backend: it does not compile"])
    assert verdict.reasons[0] == "build-backend: it does not compile"


def test_crashed_and_lost_count_as_failed_and_every_test_is_counted() -> None:
    results = add_results(
        [evidence(counts=counts(passed=1, crashed=1, lost=1)), evidence(broken_files=("a",))]
    )
    assert results is not None
    assert (results.passed, results.failed, results.skipped, results.total) == (4, 3, 4, 11)
    assert add_results([]) is None


def test_a_failed_stage_stands_among_the_failed_tests() -> None:
    failure = Failure(
        "test", 1, "build-backend", "CommandFailed", "It does not compile.", "a.cc:3: no", "look"
    )
    test = FailedTest("test_a")
    found = failed_tests([evidence(failures=(test,))], [failure])
    assert [(item.classname, item.name) for item in found] == [("crcr", "build-backend"), ("", "test_a")]
    assert "a.cc:3: no" in found[0].message
    assert len(failed_tests([evidence(failures=(test,) * 1_000)], [failure])) == 1_000
