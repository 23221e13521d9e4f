"""`crcr test`: run the planned tests, and leave `evidence.json`. Evidence first, failure after."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

from backend_ci.testing.evidence import Accounts, account
from backend_ci.testing.plan import COMMON_ARGUMENTS, PlanOptions, session_place
from backend_ci.testing.session import Session, SessionPlace, run_session
from relay_client.documents import journal as journals
from relay_client.documents.build import Build
from relay_client.documents.document import load, save
from relay_client.documents.evidence import Evidence
from relay_client.documents.plan import Plan
from relay_client.errors import TestRunBroken, TestsFailed
from relay_client.runner.commands import Commands, markdown_text
from relay_client.runner.context import RunContext
from relay_client.runner.options import option


@dataclass(frozen=True)
class TestOptions(PlanOptions):
    __test__ = False  # not a pytest class

    row: str = option("Name of the dashboard row these results belong to", default="test")


OPTIONS = (TestOptions,)

OUTPUTS = {
    "passed": "Tests that passed",
    "failed": "Tests that failed, crashed or were lost",
    "skipped": "Tests that were skipped or failed as expected",
}


def run(options: TestOptions, context: RunContext, commands: Commands) -> None:
    """Raises TestsFailed or TestRunBroken after the evidence is saved; DocumentError before."""
    folder = context.run_folder(options.run_dir)
    build, plan = load(Build, folder), load(Plan, folder)
    _remove_old_results(folder)
    started_at = _now()
    with commands.group(f"Run {len(plan.tests)} tests"):
        outcome = _run_all(session_place(options, context, commands), build, plan)
    evidence = Evidence(
        row=options.row,
        run_attempt=context.run_attempt,
        commit=plan.commit,
        torch_git_version=outcome.torch_git_version,
        shard=1,
        shards=plan.shards,
        counts=outcome.accounts.counts,
        broken_files=plan.broken_files,
        failures=outcome.accounts.failures,
        exit_code=outcome.exit_code,
        started_at=started_at,
        completed_at=_now(),
        junit=outcome.junit,
    )
    save(evidence, folder)
    _show(evidence, commands)
    _require_success(evidence)


@dataclass(frozen=True)
class _Outcome:
    accounts: Accounts
    torch_git_version: Optional[str]
    exit_code: Optional[int]
    junit: tuple[str, ...]


def _run_all(place: SessionPlace, build: Build, plan: Plan) -> _Outcome:
    """Run the plan; after a crash go on with the tests that have not started, in a new process.

    Ends when all have started, or a session made no progress. Each crash costs one test, never the rest.
    """
    journal = place.folder / journals.FILE
    end = time.monotonic() + place.deadline_seconds
    remaining: Sequence[str] = plan.tests
    accounts = account(plan.tests, (), "")
    reports: list[str] = []
    deaths: dict[str, str] = {}
    seen_versions: set[Optional[str]] = set()
    while True:
        left = max(end - time.monotonic(), 1.0)
        session = _one_session(place, build, plan, remaining, journal, len(reports) + 1, left)
        reports.append(f"junit-{len(reports) + 1}.xml")
        seen_versions.add(session.torch.git_version if session.torch else None)
        death = session.completed.describe()
        accounts = account(plan.tests, _lines(journal), death, deaths)
        deaths = {**dict.fromkeys(accounts.crashed, death), **deaths}
        progressed = len(accounts.not_started) < len(remaining)
        timed_out = session.completed.exit_code is None or time.monotonic() >= end
        # Whatever the exit code says: a test that calls os._exit(0) ends the process as a success.
        if timed_out or not progressed or not accounts.not_started:
            break
        remaining = accounts.not_started
        place.commands.warning(
            f"{death} during {accounts.crashed[-1] if accounts.crashed else 'the session'}; "
            f"{len(remaining)} tests go on in a new process"
        )
    version = seen_versions.pop() if len(seen_versions) == 1 else None
    junit = tuple(name for name in reports if (place.folder / name).is_file())
    return _Outcome(accounts, version, session.completed.exit_code, junit)


def _lines(journal: Path) -> Iterable[journals.JournalLine]:
    """What the tests wrote. A journal that they made something else of (a pipe would block) says nothing."""
    plain = journal.is_file() and not journal.is_symlink()
    return journals.read_journal(journal) if plain else ()


def _one_session(
    place: SessionPlace,
    build: Build,
    plan: Plan,
    tests: Sequence[str],
    journal: Path,
    number: int,
    deadline_seconds: float,
) -> Session:
    arguments = [*COMMON_ARGUMENTS, "-v", f"--junitxml={place.folder / f'junit-{number}.xml'}"]
    if plan.broken_files:
        arguments.append("--continue-on-collection-errors")
    timed = SessionPlace(place.folder, place.workspace, place.environment, place.commands, deadline_seconds)
    return run_session(
        timed,
        build,
        plan.selection,
        [*arguments, *plan.paths],
        planned=list(tests),
        skips=plan.skips,
        tolerances=plan.tolerances,
        journal=journal,
    )


def _require_success(evidence: Evidence) -> None:
    counts = evidence.counts
    bad = counts.failed + counts.crashed + counts.lost
    if bad or evidence.broken_files:
        names = [f"{failure.classname}::{failure.name}" for failure in evidence.failures[:10]]
        raise TestsFailed(
            f"{bad} of {counts.planned} tests did not pass, {len(evidence.broken_files)} file(s) were not collected.",
            seen="; ".join([*names, *evidence.broken_files[:3]])[:2_000],
            fix="the log above and evidence.json have each failure",
        )
    if evidence.exit_code != 0 or not counts.passed:
        raise TestRunBroken(
            "The test session did not end as a success must.",
            seen=f"exit code {evidence.exit_code}, {counts.passed} tests passed of {counts.planned}",
            fix="the end of the log above says what pytest was missing",
        )


def _show(evidence: Evidence, commands: Commands) -> None:
    counts = evidence.counts
    failed = counts.failed + counts.crashed + counts.lost + len(evidence.broken_files)
    for name, number in (
        ("passed", counts.passed),
        ("failed", failed),
        ("skipped", counts.skipped + counts.xfailed),
    ):
        commands.output(name, str(number))
    text = (
        f"{counts.planned} planned = {counts.passed} passed + {counts.failed} failed + {counts.skipped} skipped "
        f"+ {counts.xfailed} xfailed + {counts.crashed} crashed + {counts.lost} lost"
    )
    commands.line(text)
    commands.summary(f"### {'❌' if failed or not counts.passed else '✅'} Tests\n\n{markdown_text(text)}\n")


def _remove_old_results(folder: Path) -> None:
    """What an earlier attempt left would be read as this one's."""
    for path in [*folder.glob("junit-*.xml"), folder / journals.FILE, folder / Evidence.FILE]:
        path.unlink(missing_ok=True)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
