"""Evidence out of JUnit reports, for users whose own command ran the tests and left nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Callable, Optional

from relay_client.documents.build import Build
from relay_client.documents.document import D, load_file
from relay_client.documents.evidence import Counts, Evidence
from relay_client.documents.plan import Plan
from relay_client.errors import DocumentError
from relay_client.protocol.callback import FailedTest
from relay_client.protocol.vocabulary import MAX_FAILED_TESTS
from relay_client.report.junit.names import of_node
from relay_client.report.junit.read import Reports, read_reports

_MAX_DOCUMENTS = 1_024
_MAX_FLAKY = 1_000
NO_TORCH = (
    "nothing says which torch the JUnit reports are about: no build.json is among the evidence. "
    "Give the report step `torch-git-version`, what torch.version.git_version said where the tests ran"
)


@dataclass(frozen=True)
class FromJunit:
    """The evidence, if any report was there, and why it is not to be trusted, if it is not."""

    evidence: tuple[Evidence, ...]
    faults: tuple[str, ...]
    shards: int


def evidence_from_junit(
    folder: Path,
    patterns: Sequence[str],
    row: str,
    attempt: int,
    commit: str,
    torch: Optional[str],
    progress: Callable[[str], None] = lambda _: None,
) -> FromJunit:
    """Read the reports that match, with the plan and the build documents beside them. `torch` is given, or None."""
    reports = read_reports(folder, patterns, MAX_FAILED_TESTS, progress)
    faults = list(reports.broken)
    if not reports.cases:
        return FromJunit((), (*faults, f"no test result in any file that matches {', '.join(patterns)}"), 0)
    torches = {torch} if torch else {item.torch.git_version for item in _documents(Build, folder)}
    if len(torches) != 1:
        faults.append(NO_TORCH if not torches else "the build.json files name different torches")
    planned = {of_node(test).key for plan in _documents(Plan, folder) for test in plan.tests}
    tested = next(iter(torches)) if len(torches) == 1 else None
    evidence = _evidence(reports, sorted(planned - reports.ids), row, attempt, commit, tested)
    return FromJunit((evidence,), tuple(faults), len(reports.shards))


def _evidence(
    reports: Reports, lost: Sequence[str], row: str, attempt: int, commit: str, torch: Optional[str]
) -> Evidence:
    numbers = reports.outcomes.numbers
    missing = tuple(FailedTest(key, message="planned, and in no JUnit report") for key in lost)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Evidence(
        row=row,
        run_attempt=attempt,
        commit=commit,
        torch_git_version=torch,
        shard=1,
        shards=1,
        counts=Counts(sum(numbers.values()) + len(lost), **numbers, crashed=0, lost=len(lost)),
        broken_files=(),
        failures=(*reports.outcomes.failures, *missing)[:MAX_FAILED_TESTS],
        exit_code=0,  # not known; the result of the job stands in `needs`
        started_at=now,
        completed_at=now,
        flaky=reports.outcomes.flaky[:_MAX_FLAKY],
    )


def _documents(cls: type[D], folder: Path) -> list[D]:
    found: list[D] = []
    for path in sorted(folder.rglob(cls.FILE))[:_MAX_DOCUMENTS]:
        try:
            found.append(load_file(cls, path))
        except DocumentError:
            continue  # it proves nothing then
    return found
