"""`evidence.json`: what one shard proved. The report trusts nothing else from the hardware job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional

from relay_client.protocol import vocabulary as words
from relay_client.protocol.callback import FailedTest
from relay_client.protocol.shape import member

# Whoever writes evidence may be hostile: no number in it makes the report long, or its sums unreadable.
MAX_SHARDS = 1_024
_MAX_TESTS = 10_000_000


@dataclass(frozen=True)
class Counts:
    """planned = passed + failed + skipped + xfailed + crashed + lost, always."""

    planned: int = member("Tests the plan owes", minimum=0, maximum=_MAX_TESTS)
    passed: int = member("", minimum=0, maximum=_MAX_TESTS)
    failed: int = member(
        "Includes errors in set-up and tear-down, and unexpected passes", minimum=0, maximum=_MAX_TESTS
    )
    skipped: int = member("", minimum=0, maximum=_MAX_TESTS)
    xfailed: int = member("Expected failures that failed", minimum=0, maximum=_MAX_TESTS)
    crashed: int = member("Started, and the process died before they ended", minimum=0, maximum=_MAX_TESTS)
    lost: int = member("Never started", minimum=0, maximum=_MAX_TESTS)

    def add_up(self) -> bool:
        done = self.passed + self.failed + self.skipped + self.xfailed + self.crashed + self.lost
        return done == self.planned


@dataclass(frozen=True)
class Evidence:
    """One shard's results."""

    FILE: ClassVar[str] = "evidence.json"
    VERSION: ClassVar[int] = 1
    WRITTEN_BY: ClassVar[str] = "test"

    row: str = member("Dashboard row these results belong to")
    run_attempt: int = member("Attempt of the run that made them", minimum=1)
    commit: str = member("Commit under test", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)
    torch_git_version: Optional[str] = member(
        "torch.version.git_version as the test process itself saw it; null when it never got that far"
    )
    shard: int = member("1-based", minimum=1, maximum=MAX_SHARDS)
    shards: int = member("How many the plan has", minimum=1, maximum=MAX_SHARDS)
    counts: Counts = member("Results by kind")
    broken_files: tuple[str, ...] = member("Files that could not be collected")
    failures: tuple[FailedTest, ...] = member(
        "Failed, crashed and lost tests", max_length=words.MAX_FAILED_TESTS
    )
    exit_code: Optional[int] = member("Of the test process; negative is a signal; null on a deadline")
    started_at: str = member("ISO-8601, UTC")
    completed_at: str = member("ISO-8601, UTC")
    junit: tuple[str, ...] = member(
        "File names of pytest's own JUnit reports beside this document", default=()
    )
    flaky: tuple[str, ...] = member(
        "Tests that passed after more than one try", default=(), max_length=words.MAX_FAILED_TESTS
    )
