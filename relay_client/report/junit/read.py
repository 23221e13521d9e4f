"""Find JUnit files by pattern, and read them in the order in which they were made."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from relay_client.report.junit.merge import MAX_TESTS, Merge, Outcomes, TooManyTests
from relay_client.report.junit.scan import scan

MAX_FILES = 10_000
_HEAD_BYTES = 4_096

# Artifact and folder names carry the attempt: `crcr-evidence-test-1-attempt-2`.
_ATTEMPT = re.compile(r"[-_.]?attempt[-_.]?([0-9]{1,6})")
_TIMESTAMP = re.compile(rb'<testsuite\b[^>]*?\stimestamp="([0-9T:.+Z-]{10,40})"')


@dataclass(frozen=True)
class Reports:
    """All reports of a row. `broken` says of each file that is not whole why; `shards` are their folders."""

    files: int
    cases: int
    shards: tuple[str, ...]
    outcomes: Outcomes
    ids: frozenset[str]
    broken: tuple[str, ...]


@dataclass(frozen=True)
class _File:
    attempt: int
    shard: str
    timestamp: str
    name: str
    path: Path


def read_reports(
    folder: Path, patterns: Sequence[str], limit: int, progress: Callable[[str], None] = lambda _: None
) -> Reports:
    """The reports below a folder that match a glob pattern (`**` goes down). `limit` bounds the failures told."""
    found = _find(folder, patterns)
    broken = (
        [f"more than {MAX_FILES} JUnit files match; the rest was not read"] if len(found) > MAX_FILES else []
    )
    files = sorted(
        (_file(folder, name) for name in found[:MAX_FILES]),
        key=lambda file: (file.attempt, file.shard, file.timestamp, file.name),
    )
    # What a re-run made good is history, and so is what broke there.
    last = {file.shard: file.attempt for file in files}
    merge, cases, shards = Merge(), 0, []
    for number, file in enumerate(files, 1):
        merge.begin_file(file.shard)
        try:
            result = scan(file.path, merge.take)
        except TooManyTests:
            broken.append(f"{file.name}: the reports name more than {MAX_TESTS} tests")
            break
        cases += result.cases
        if result.cases:
            shards.append(file.shard)
        if result.broken and file.attempt == last[file.shard]:
            broken.append(f"{file.name}: {result.broken}"[:500])
        if number % 500 == 0:
            progress(f"{number} of {len(files)} JUnit files read")
    return Reports(
        len(files),
        cases,
        tuple(dict.fromkeys(shards)),
        merge.outcomes(limit),
        frozenset(merge.ids()),
        tuple(broken),
    )


def _find(folder: Path, patterns: Sequence[str]) -> list[str]:
    """Paths below the folder. A pattern cannot leave it, nor can a link on the way."""
    root = folder.resolve()
    names: set[str] = set()
    for pattern in patterns:
        parts = [part for part in pattern.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if parts and folder.is_dir():
            for path in folder.glob("/".join(parts)):
                if not path.is_dir() and root in (path.parent.resolve() / path.name).parents:
                    names.add(str(path.relative_to(folder)))
    return sorted(names)


def _file(folder: Path, name: str) -> _File:
    path = folder / name
    parent = str(Path(name).parent)
    attempts = [int(number) for number in _ATTEMPT.findall(parent)]
    return _File(max(attempts, default=1), _ATTEMPT.sub("", parent), _timestamp(path), name, path)


def _timestamp(path: Path) -> str:
    """When the first suite of a file began, as it says: only files of one folder are compared by it."""
    if path.is_symlink() or not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            match = _TIMESTAMP.search(file.read(_HEAD_BYTES))
    except OSError:
        return ""
    return match[1].decode() if match else ""
