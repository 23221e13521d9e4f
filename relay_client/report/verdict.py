"""From evidence and job results to a conclusion. Pure. Success needs positive proof.

Rows of the decision, first match wins:

| job results and evidence                                        | conclusion |
|-----------------------------------------------------------------|------------|
| a job was cancelled                                             | cancelled  |
| a job did not succeed                                           | failure    |
| no evidence, or a shard is missing, twice there, or unreadable  | failure    |
| evidence of another commit, or torch was not that commit        | failure    |
| counts that do not add up, a test file that was not collected   | failure    |
| a test failed, crashed or was lost                              | failure    |
| the test process did not end with 0                             | failure    |
| no test passed                                                  | failure    |
| none of these                                                   | success    |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

from relay_client.documents.evidence import Evidence
from relay_client.documents.failure import Failure
from relay_client.documents.report import Verdict
from relay_client.protocol.callback import FailedTest, TestResults
from relay_client.protocol.vocabulary import MAX_FAILED_TESTS, MAX_MESSAGE_CHARACTERS


def conclude(
    commit: str, jobs: Mapping[str, str], evidence: Sequence[Evidence], faults: Sequence[str] = ()
) -> Verdict:
    """The verdict on a row.

    `commit` is the dispatched one; `jobs` maps job ids to GitHub's results (success, failure, cancelled,
    skipped); `faults` are reasons found while the evidence was read: a stage that failed, a file that is
    broken.
    """
    results = add_results(evidence)
    cancelled = sorted(job for job, result in jobs.items() if result == "cancelled")
    if cancelled:
        return Verdict("cancelled", tuple(f"job {job} was cancelled" for job in cancelled), results)
    reasons = list(faults)
    reasons += [f"job {job}: {result}" for job, result in sorted(jobs.items()) if result != "success"]
    reasons += _missing(evidence)
    for item in evidence:
        reasons += _reasons_against(item, commit)
    if results is not None and results.passed == 0:
        reasons.append("no test passed, so nothing is proven")
    return Verdict("failure" if reasons else "success", tuple(reasons), results)


def add_results(evidence: Sequence[Evidence]) -> Optional[TestResults]:
    """The counts of a row over its shards; None without evidence.

    The wire knows passed, failed and skipped: crashed and lost tests count as failed, expected failures
    as skipped, and a file that could not be collected as one failure.
    """
    if not evidence:
        return None
    counts = [item.counts for item in evidence]
    passed = sum(item.passed for item in counts)
    failed = sum(item.failed + item.crashed + item.lost for item in counts)
    failed += sum(len(item.broken_files) for item in evidence)
    skipped = sum(item.skipped + item.xfailed for item in counts)
    return TestResults(passed, failed, skipped, passed + failed + skipped)


def failed_tests(evidence: Sequence[Evidence], failures: Sequence[Failure] = ()) -> tuple[FailedTest, ...]:
    """The failed tests of all shards, as many as the wire takes; before them each stage that failed.

    The wire has no place for a reason that is not a test's, so a failed stage stands there as `crcr` / its name.
    """
    stages = [
        FailedTest(
            failure.stage, "crcr", f"{failure.what} {failure.seen}"[:MAX_MESSAGE_CHARACTERS], failure.fix
        )
        for failure in failures
    ]
    return (*stages, *(test for item in evidence for test in item.failures))[:MAX_FAILED_TESTS]


def reason_of(failure: Failure) -> str:
    """A failed stage in a sentence."""
    return f"{failure.stage}: {failure.what} {failure.seen}".strip()


def _missing(evidence: Sequence[Evidence]) -> list[str]:
    if not evidence:
        return ["no evidence arrived: no job left an evidence.json that could be read"]
    expected = max(item.shards for item in evidence)
    found = sorted(item.shard for item in evidence)
    reasons = [f"shard {n} of {expected} left no evidence" for n in range(1, expected + 1) if n not in found]
    return reasons + [f"shard {n} left evidence twice" for n in sorted(set(found)) if found.count(n) > 1]


def _reasons_against(item: Evidence, commit: str) -> list[str]:
    where = f"shard {item.shard}: " if item.shards > 1 else ""
    counts = item.counts
    bad = {"failed": counts.failed, "crashed": counts.crashed, "were lost": counts.lost}
    reasons = [f"{where}{number} test{'s' * (number != 1)} {word}" for word, number in bad.items() if number]
    if item.commit != commit:
        reasons.append(f"{where}the evidence is of commit {item.commit}, dispatched was {commit}")
    if item.torch_git_version != commit:
        reasons.append(f"{where}the tested torch is commit {item.torch_git_version}, dispatched was {commit}")
    if not counts.add_up():
        reasons.append(f"{where}the counts do not add up to the {counts.planned} planned tests")
    if item.broken_files:
        reasons.append(f"{where}{len(item.broken_files)} test file(s) could not be collected")
    if not reasons and item.exit_code != 0:
        reasons.append(f"{where}the test process ended with {item.exit_code}")
    return reasons
