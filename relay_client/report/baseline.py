"""The baseline: what failed before this change. Each failure is then new, known, or flaky."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relay_client.documents.document import load_file
from relay_client.documents.evidence import Evidence
from relay_client.errors import BadBaseline, DocumentError
from relay_client.protocol.callback import FailedTest
from relay_client.report.evidence import read_evidence
from relay_client.report.junit.names import of_parts
from relay_client.report.junit.read import read_reports

MAX_KNOWN = 100_000
_FIX = "name with `baseline` a file or folder with evidence.json or JUnit reports of a run of landed code"


@dataclass(frozen=True)
class Baseline:
    """Ids of tests, as junit/names.py spells them."""

    failed: frozenset[str]
    flaky: frozenset[str]


@dataclass(frozen=True)
class Triage:
    """The failures of a row, divided. `unnamed` is the number of failures that no evidence names: they are new."""

    new: tuple[FailedTest, ...]
    known: tuple[FailedTest, ...]
    flaky: tuple[FailedTest, ...]
    unnamed: int = 0

    @property
    def nothing_new(self) -> bool:
        return not self.new and not self.unnamed

    def ordered(self) -> tuple[FailedTest, ...]:
        """New failures first: a limit cuts off what is known."""
        return (*self.new, *self.flaky, *self.known)

    def sentence(self) -> str:
        new = len(self.new) + self.unnamed
        return f"against the baseline: {new} new, {len(self.known)} known, {len(self.flaky)} flaky"


def read_baseline(path: Path, row: str) -> Baseline:
    """The baseline in a file (evidence.json, a JUnit report) or below a folder. Raises BadBaseline."""
    if path.is_file() and path.suffix == ".json":
        try:
            return _of_evidence([load_file(Evidence, path)])
        except DocumentError as error:
            raise BadBaseline("The baseline cannot be used.", seen=error.seen, fix=_FIX) from error
    if not path.exists():
        raise BadBaseline("The baseline is not there.", seen=f"no file or folder {path}", fix=_FIX)
    if path.is_dir():
        found = read_evidence(path, row)
        if found.evidence:
            return _of_evidence(found.evidence)
    folder, pattern = (path, "**/*.xml") if path.is_dir() else (path.parent, path.name)
    reports = read_reports(folder, [pattern], MAX_KNOWN)
    if not reports.cases:
        seen = (
            reports.broken[0]
            if reports.broken
            else f"no result of row {row} and no JUnit report below {path}"
        )
        raise BadBaseline("The baseline holds no results.", seen=seen, fix=_FIX)
    return Baseline(_ids(reports.outcomes.failures), frozenset(reports.outcomes.flaky))


def triage(evidence: Sequence[Evidence], baseline: Baseline) -> Triage:
    """Divide the failures of a row. Pure. What the baseline does not name is new."""
    kinds: dict[str, list[FailedTest]] = {"new": [], "known": [], "flaky": []}
    unnamed = 0
    for item in evidence:
        counts = item.counts
        unnamed += max(counts.failed + counts.crashed + counts.lost - len(item.failures), 0)
        unnamed += len(item.broken_files)
        for test in item.failures:
            key = of_parts(test.classname, test.name).key
            kind = "known" if key in baseline.failed else "flaky" if key in baseline.flaky else "new"
            kinds[kind].append(test)
    return Triage(tuple(kinds["new"]), tuple(kinds["known"]), tuple(kinds["flaky"]), unnamed)


def _of_evidence(evidence: Sequence[Evidence]) -> Baseline:
    failed = [test for item in evidence for test in item.failures]
    return Baseline(_ids(failed), frozenset(name for item in evidence for name in item.flaky))


def _ids(tests: Sequence[FailedTest]) -> frozenset[str]:
    return frozenset(of_parts(test.classname, test.name).key for test in tests)
