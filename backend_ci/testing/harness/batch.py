"""Run one batch of tests until each has started. A crash or a hang costs one test, never the rest."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Optional

from backend_ci.testing.evidence import account
from backend_ci.testing.harness.batches import files
from backend_ci.testing.harness.watchdog import Limits, Watchdog
from backend_ci.testing.session import COMMON_ARGUMENTS, Session, SessionPlace, run_session
from relay_client.documents.build import Build
from relay_client.documents.journal import read_journal
from relay_client.documents.plan import Plan


@dataclass(frozen=True)
class Assignment:
    """What all batches of a run share. `deadline` is a time of time.monotonic()."""

    build: Build
    plan: Plan
    limits: Limits
    device_probe: str
    deadline: float

    @property
    def seconds_left(self) -> float:
        return max(self.deadline - time.monotonic(), 1.0)


@dataclass(frozen=True)
class Batch:
    """Tests for one process at a time, and the files that their processes leave in the run folder."""

    name: str
    tests: tuple[str, ...]
    journal: Path

    def report(self, number: int) -> str:
        return f"junit-{self.name}{number}.xml"


@dataclass
class BatchResult:
    """How the processes of a batch ended. `deaths` says of each crashed test how its process did."""

    deaths: Mapping[str, str] = field(default_factory=dict)
    exit_code: Optional[int] = None
    torch_versions: frozenset[Optional[str]] = frozenset()
    junit: tuple[str, ...] = ()


def run_batch(
    place: SessionPlace, assignment: Assignment, batch: Batch, say: Callable[[str], None]
) -> BatchResult:
    """Run the tests; after a crash, a hang or a lost device go on with those that have not started.

    Ends when all have started, a process made no progress, or the time is up. `say` takes a line for the user.
    """
    result = BatchResult()
    remaining: Sequence[str] = batch.tests
    number = 0
    while True:
        number += 1
        session = _one_process(place, assignment, batch, number, remaining)
        death = session.completed.describe()
        accounts = account(batch.tests, read_journal(batch.journal), death)
        version = session.torch.git_version if session.torch else None
        report = batch.report(number)
        result = BatchResult(
            {**dict.fromkeys(accounts.crashed, death), **result.deaths},
            session.completed.exit_code,
            result.torch_versions | {version},
            (*result.junit, *([report] if (place.folder / report).is_file() else [])),
        )
        # Whatever the exit code says: a test that calls os._exit(0) ends the process as a success.
        progressed = len(accounts.not_started) < len(remaining)
        out_of_time = time.monotonic() >= assignment.deadline
        if out_of_time or not progressed or not accounts.not_started:
            return result
        remaining = accounts.not_started
        say(f"{_why(session, accounts.crashed)}; {len(remaining)} tests go on in a new process")


def _why(session: Session, crashed: Sequence[str]) -> str:
    if session.lost_device is not None:
        return f"the device does not answer any more after {session.lost_device.test}: {session.lost_device.message}"
    return f"{session.completed.describe()} during {crashed[-1] if crashed else 'the session'}"


def _one_process(
    place: SessionPlace, assignment: Assignment, batch: Batch, number: int, tests: Sequence[str]
) -> Session:
    plan = assignment.plan
    arguments = [*COMMON_ARGUMENTS, "-v", f"--junitxml={place.folder / batch.report(number)}"]
    if plan.broken_files:
        arguments.append("--continue-on-collection-errors")
    whole = len(batch.tests) == len(plan.tests)
    return run_session(
        replace(place, deadline_seconds=assignment.seconds_left),
        assignment.build,
        plan.selection,
        # Files that could not be collected are tried again by whoever runs the whole plan.
        [*arguments, *(plan.paths if whole else files(batch.tests))],
        planned=list(tests),
        skips=plan.skips,
        tolerances=plan.tolerances,
        journal=batch.journal,
        device_probe=assignment.device_probe,
        watch=Watchdog(batch.journal, assignment.limits),
    )
