"""From plan, journal and exit codes to counts. Pure: every planned test is accounted for by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from relay_client.documents.evidence import Counts
from relay_client.documents.journal import JournalLine
from relay_client.protocol.callback import FailedTest
from relay_client.protocol.vocabulary import (
    MAX_FAILED_TESTS,
    MAX_MESSAGE_CHARACTERS,
    MAX_STACKTRACE_CHARACTERS,
)


@dataclass(frozen=True)
class Accounts:
    """What became of the planned tests."""

    counts: Counts
    failures: tuple[FailedTest, ...]
    crashed: tuple[str, ...]
    not_started: tuple[str, ...]


def account(
    planned: Sequence[str],
    journal: Iterable[JournalLine],
    death: str,
    earlier: Optional[Mapping[str, str]] = None,
) -> Accounts:
    """Divide the planned tests by how they ended.

    A test with no end crashed with its process: `death` says how the last one ended, `earlier` how the one of a
    test did that crashed before. A test with no line was never started: lost.
    A test that is not planned counts for nothing: whoever wrote the journal cannot add to it.
    """
    ends: dict[str, JournalLine] = {}
    started: set[str] = set()
    for line in journal:
        started.add(line.test)
        if line.outcome is not None:
            ends[line.test] = line
    numbers = dict.fromkeys(("passed", "failed", "skipped", "xfailed"), 0)
    crashed, lost, failures = [], [], []
    for test in planned:
        end = ends.get(test)
        if end is not None and end.outcome is not None:
            numbers[end.outcome] += 1
            if end.outcome == "failed":
                failures.append(_failure(test, end.message, end.trace, end.seconds))
        elif test in started:
            crashed.append(test)
            how = (earlier or {}).get(test, death)
            failures.append(_failure(test, f"the process died while this test ran: {how}"))
        else:
            lost.append(test)
            failures.append(_failure(test, "never started"))
    counts = Counts(len(planned), **numbers, crashed=len(crashed), lost=len(lost))
    return Accounts(counts, tuple(failures[:MAX_FAILED_TESTS]), tuple(crashed), tuple(lost))


def _failure(test: str, message: str, trace: str = "", seconds: float = 0.0) -> FailedTest:
    path, _, rest = test.partition("::")
    owner, _, name = rest.rpartition("::")
    classname = f"{path}::{owner}" if owner else path
    return FailedTest(
        name=name or test,
        classname=classname,
        message=message[:MAX_MESSAGE_CHARACTERS],
        stacktrace=trace[-MAX_STACKTRACE_CHARACTERS:],
        duration=seconds,
    )
