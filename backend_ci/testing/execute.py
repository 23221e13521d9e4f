"""`crcr test`: run the planned tests, and leave `evidence.json`. Evidence first, failure after."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

from backend_ci.job import prepared
from backend_ci.testing.evidence import Accounts, account
from backend_ci.testing.harness.batch import Assignment
from backend_ci.testing.harness.watchdog import Limits
from backend_ci.testing.harness.workers import Workers, run_workers
from backend_ci.testing.plan import PlanOptions, session_place
from backend_ci.testing.session import SessionPlace
from relay_client.documents import journal as journals
from relay_client.documents.build import Build
from relay_client.documents.document import load, save
from relay_client.documents.evidence import Evidence
from relay_client.documents.plan import Plan
from relay_client.errors import TestRunBroken, TestsFailed, UsageError
from relay_client.runner.commands import Commands, markdown_text
from relay_client.runner.context import RunContext
from relay_client.runner.options import option


@dataclass(frozen=True)
class TestOptions(PlanOptions):
    __test__ = False  # not a pytest class

    row: str = option("Name of the dashboard row these results belong to", default="test")
    shard: int = option("Which part of the plan to run, counted from 1", default=1)
    per_test_timeout_minutes: float = option(
        "How long one test may run: then it counts as crashed, and the others go on", default=15.0
    )
    stall_timeout_minutes: float = option(
        "How long nothing may be written outside of tests (imports, set-up) before the process is ended",
        default=10.0,
    )
    workers: int = option("How many test processes run at a time", default=1)
    devices: tuple[str, ...] = option(
        "Devices for the workers: values of device-variable, in turn", default=(), words=True
    )
    device_variable: Optional[str] = option(
        "Variable that shows a process its device alone, such as ASCEND_RT_VISIBLE_DEVICES", default=None
    )
    device_probe: Optional[str] = option(
        "Asked after each failed test: a shell command ($PYTHON has torch), or module:function in the test's own "
        "process. If it fails, the tests go on in a new process",
        default=None,
    )


OPTIONS = (TestOptions,)

OUTPUTS = {
    "passed": "Tests that passed",
    "failed": "Tests that failed, crashed or were lost",
    "skipped": "Tests that were skipped or failed as expected",
}


def run(options: TestOptions, context: RunContext, commands: Commands) -> None:
    """Raises TestsFailed or TestRunBroken after the evidence is saved; DocumentError before."""
    context = prepared(options, context, commands)
    folder = context.run_folder(options.run_dir)
    build, plan = load(Build, folder), load(Plan, folder)
    if options.shard > plan.shards:
        raise UsageError(
            "The plan has no such shard.",
            seen=f"shard {options.shard} of {plan.shards}",
            fix="shards: the same number for the plan and the matrix, counted from 1",
        )
    tests = plan.of_shard(options.shard)
    _remove_old_results(folder)
    started_at = _now()
    with commands.group(f"Run {len(tests)} tests{_part(options, plan)}"):
        outcome = _run_all(options, session_place(options, context, commands), build, plan, tests)
    evidence = Evidence(
        row=options.row,
        run_attempt=context.run_attempt,
        commit=plan.commit,
        torch_git_version=outcome.torch_git_version,
        shard=options.shard,
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


def _run_all(
    options: TestOptions, place: SessionPlace, build: Build, plan: Plan, tests: tuple[str, ...]
) -> _Outcome:
    assignment = Assignment(
        build,
        plan,
        Limits(options.per_test_timeout_minutes * 60, options.stall_timeout_minutes * 60),
        options.device_probe or "",
        time.monotonic() + place.deadline_seconds,
    )
    done = run_workers(place, assignment, tests, _workers(options))
    lines = (line for batch, _ in done for line in journals.read_journal(batch.journal))
    deaths = {test: death for _, result in done for test, death in result.deaths.items()}
    versions = {version for _, result in done for version in result.torch_versions}
    bad_ends = [result.exit_code for _, result in done if result.exit_code != 0]
    return _Outcome(
        account(tests, lines, "", deaths),
        versions.pop() if len(versions) == 1 else None,
        bad_ends[0] if bad_ends else 0,
        tuple(name for _, result in done for name in result.junit),
    )


def _part(options: TestOptions, plan: Plan) -> str:
    return f" (shard {options.shard} of {plan.shards})" if plan.shards > 1 else ""


def _workers(options: TestOptions) -> Workers:
    if bool(options.devices) != bool(options.device_variable):
        raise UsageError(
            "devices and device-variable belong together.",
            seen=f"devices: {' '.join(options.devices) or 'none'}; device-variable: {options.device_variable or 'none'}",
            fix="devices: 0 1, and device-variable: the variable that your runtime reads, such as CUDA_VISIBLE_DEVICES",
        )
    return Workers(options.workers, options.device_variable or "", options.devices)


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
    for path in [*folder.glob("junit-*.xml"), *folder.glob("journal*.jsonl"), folder / Evidence.FILE]:
        path.unlink(missing_ok=True)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
