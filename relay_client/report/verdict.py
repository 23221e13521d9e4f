"""From evidence and job results to a conclusion. Pure. Success needs positive proof.

`RULES` is the whole decision, first match wins; docs/verdict.md shows it with examples, and a test holds the two
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Callable, Optional

from relay_client.documents.evidence import Evidence
from relay_client.documents.failure import Failure
from relay_client.documents.report import Verdict
from relay_client.protocol.callback import FailedTest, TestResults
from relay_client.protocol.vocabulary import MAX_FAILED_TESTS, MAX_MESSAGE_CHARACTERS

# What a job can come to: GitHub's words in `needs`, and one that only the jobs API can tell (jobs.py).
JOB_RESULTS = ("success", "failure", "cancelled", "skipped", "timed_out")
_TESTS_FAILED = 1  # pytest's exit code


@dataclass(frozen=True)
class Expected:
    """What a row owes, as far as somebody said so before it ran. None: nobody did."""

    shards: Optional[int] = None
    tests: Optional[int] = None


@dataclass(frozen=True)
class Facts:
    """All that a verdict may look at.

    `commit` is the dispatched one; `jobs` maps job ids to results (JOB_RESULTS); `faults` are reasons found while the
    evidence was read; `excused` says that every failed test is known from the baseline, and that this is to count.
    """

    commit: str
    jobs: Mapping[str, str]
    evidence: Sequence[Evidence]
    faults: Sequence[str] = ()
    expected: Expected = field(default_factory=Expected)
    may_be_skipped: Sequence[str] = ()
    excused: bool = False

    def ended(self, result: str) -> list[str]:
        return sorted(job for job, found in self.jobs.items() if found == result)


@dataclass(frozen=True)
class Rule:
    """One row of the decision: the reasons it finds, and what they lead to."""

    when: str
    conclusion: str
    reasons: Callable[[Facts], list[str]]


def _timed_out(facts: Facts) -> list[str]:
    return [f"job {job} hit its time limit" for job in facts.ended("timed_out")]


def _cancelled(facts: Facts) -> list[str]:
    return [f"job {job} was cancelled" for job in facts.ended("cancelled")]


def _skipped(facts: Facts) -> list[str]:
    skipped = facts.ended("skipped")
    allowed = all(job in facts.may_be_skipped for job in skipped)
    if not allowed or facts.evidence or facts.faults or facts.ended("failure"):
        return []
    return [f"job {job} was skipped, as `may-be-skipped` allows" for job in skipped]


def _faults(facts: Facts) -> list[str]:
    return list(facts.faults)


def _jobs(facts: Facts) -> list[str]:
    # A job that ran tests fails when one of them fails: that is no second reason when the tests are excused.
    accepted = {"success"} | ({"failure"} if facts.excused else set())
    bad = {job: result for job, result in sorted(facts.jobs.items()) if result not in accepted}
    return [f"job {job}: {result}" for job, result in bad.items()]


def _shards(facts: Facts) -> list[str]:
    if not facts.evidence:
        return ["no evidence arrived: no job left an evidence.json or a JUnit report that could be read"]
    expected = max(item.shards for item in facts.evidence)
    found = sorted(item.shard for item in facts.evidence)
    reasons = [f"shard {n} of {expected} left no evidence" for n in range(1, expected + 1) if n not in found]
    return reasons + [f"shard {n} left evidence twice" for n in sorted(set(found)) if found.count(n) > 1]


def _owed(facts: Facts) -> list[str]:
    shards = len({item.shard for item in facts.evidence})
    tests = sum(item.counts.planned - item.counts.lost for item in facts.evidence)
    reasons = []
    if facts.expected.shards is not None and shards < facts.expected.shards:
        reasons.append(f"{shards} of {facts.expected.shards} expected shards left evidence")
    if facts.expected.tests is not None and tests < facts.expected.tests:
        reasons.append(f"{tests} test(s) have a result, at least {facts.expected.tests} were expected")
    return reasons


def _commits(facts: Facts) -> list[str]:
    reasons, commit = [], facts.commit
    for item in facts.evidence:
        if item.commit != commit:
            reasons.append(f"{_where(item)}the evidence is of commit {item.commit}, dispatched was {commit}")
        if item.torch_git_version != commit:
            reasons.append(
                f"{_where(item)}the tested torch is commit {item.torch_git_version}, dispatched was {commit}"
            )
    return reasons


def _sums(facts: Facts) -> list[str]:
    reasons = []
    for item in facts.evidence:
        if not item.counts.add_up():
            reasons.append(
                f"{_where(item)}the counts do not add up to the {item.counts.planned} planned tests"
            )
        if item.broken_files:
            reasons.append(f"{_where(item)}{len(item.broken_files)} test file(s) could not be collected")
    return reasons


def _tests(facts: Facts) -> list[str]:
    if facts.excused:
        return []
    reasons = []
    for item in facts.evidence:
        counts = item.counts
        bad = {"failed": counts.failed, "crashed": counts.crashed, "were lost": counts.lost}
        for word, number in bad.items():
            if number:
                reasons.append(f"{_where(item)}{number} test{'s' * (number != 1)} {word}")
    return reasons


def _exits(facts: Facts) -> list[str]:
    good = {0, _TESTS_FAILED} if facts.excused else {0}
    return [
        f"{_where(item)}the test process ended with {item.exit_code}"
        for item in facts.evidence
        if item.exit_code not in good
        # Failed tests have said it already; a signal or a deadline they have not.
        and not (item.exit_code == _TESTS_FAILED and item.counts.failed)
    ]


def _nothing_passed(facts: Facts) -> list[str]:
    passed = sum(item.counts.passed for item in facts.evidence)
    return ["no test passed, so nothing is proven"] if facts.evidence and not passed else []


RULES = (
    Rule("a job hit its time limit", "timed_out", _timed_out),
    Rule("a job was cancelled", "cancelled", _cancelled),
    Rule(
        "only jobs that `may-be-skipped` names were skipped, nothing failed, nothing ran", "skipped", _skipped
    ),
    Rule("a stage failed, or a file of the evidence is broken", "failure", _faults),
    Rule("a job did not succeed", "failure", _jobs),
    Rule("no evidence, or a shard is missing or there twice", "failure", _shards),
    Rule("fewer shards or tests than expected", "failure", _owed),
    Rule("evidence of another commit, or the tested torch was not that commit", "failure", _commits),
    Rule("counts that do not add up, or a test file that was not collected", "failure", _sums),
    Rule("a test failed, crashed or was lost", "failure", _tests),
    Rule("the test process did not end with 0", "failure", _exits),
    Rule("no test passed", "failure", _nothing_passed),
    Rule("none of these", "success", lambda _: []),
)


def conclude(
    commit: str,
    jobs: Mapping[str, str],
    evidence: Sequence[Evidence],
    faults: Sequence[str] = (),
    expected: Optional[Expected] = None,
    may_be_skipped: Sequence[str] = (),
) -> Verdict:
    """The verdict on a row, without a baseline. `judge` is the whole."""
    return judge(Facts(commit, jobs, evidence, faults, expected or Expected(), may_be_skipped))


def judge(facts: Facts) -> Verdict:
    """The verdict on a row: the conclusion of the first rule that matches, and every reason for that conclusion."""
    results = add_results(facts.evidence)
    found = [(rule.conclusion, rule.reasons(facts)) for rule in RULES]
    conclusion = next((word for word, reasons in found if reasons), "success")
    reasons = [reason for word, reasons in found if word == conclusion for reason in reasons]
    return Verdict(conclusion, tuple(reasons), results)


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


def _where(item: Evidence) -> str:
    return f"shard {item.shard}: " if item.shards > 1 else ""
