"""What a verdict takes as options. Apart from the code that obeys them: a first report needs none of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from relay_client.runner.options import StageOptions, option

DEFAULT_LIMIT_MINUTES = 360.0  # GitHub's own


@dataclass(frozen=True)
class GatherOptions(StageOptions):
    needs: Optional[str] = option(
        "Results of the jobs before, as toJSON(needs) gives them; needed when completed", default=None
    )
    evidence: Optional[Path] = option(
        "Folder below which the evidence of all shards lies (default: the run folder)",
        default=None,
        shell_only=True,
    )
    commit: Optional[str] = option(
        "Upstream commit that was tested, as receive-dispatch chose it (default: the event's own)",
        default=None,
    )
    row: str = option("Name of the dashboard row, the same for both reports", default="test")
    junit: tuple[str, ...] = option(
        "Patterns of JUnit reports below the evidence, one a line, for a test command of your own (`**/*.xml`); "
        "read when no evidence.json is there",
        default=(),
    )
    torch_git_version: Optional[str] = option(
        "What torch.version.git_version said where the tests ran; only with junit and without a build.json",
        default=None,
    )
    expected_shards: Optional[str] = option("How many shards must have left evidence", default=None)
    expected_tests: Optional[str] = option("How many tests must have a result, at least", default=None)
    may_be_skipped: tuple[str, ...] = option(
        "Ids of jobs whose being skipped makes the row skipped, not failed", default=(), words=True
    )
    job_timeout_minutes: float = option(
        "The timeout-minutes of the jobs before: one that was cancelled after that long is timed_out",
        default=DEFAULT_LIMIT_MINUTES,
    )
    baseline: Optional[Path] = option(
        "File or folder with the evidence of an earlier run of landed code, to tell new failures from known ones",
        default=None,
    )
    conclude_on: str = option(
        "Whether failures that the baseline knows count",
        default="all-failures",
        one_of=("all-failures", "new-failures"),
    )
