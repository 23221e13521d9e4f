"""`crcr plan`: collect the tests that fit the hardware, and fix them in `plan.json` before any runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from backend_ci.job import JobOptions, prepared
from backend_ci.testing.capabilities.state import NOTHING, Stated, state
from backend_ci.testing.history import seconds_of_before
from backend_ci.testing.session import COMMON_ARGUMENTS, Session, SessionPlace, read_environment, run_session
from backend_ci.testing.shards import divide
from backend_ci.testing.skips.apply import ListsForRun, lists_for_run, warn
from backend_ci.testing.skips.read import Python
from relay_client.documents.build import Build
from relay_client.documents.document import load, save
from relay_client.documents.plan import UNCLASSIFIED_POLICIES, Plan, Selection
from relay_client.errors import NothingSelected, TestRunBroken, TorchChanged, UsageError
from relay_client.protocol import vocabulary as words
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option

_NOTHING_COLLECTED = 5  # pytest's exit code


@dataclass(frozen=True)
class PlanOptions(JobOptions):
    tests: tuple[str, ...] = option("Test files or folders, one a line", default=("tests",))
    hw_classification: tuple[str, ...] = option(
        "Hardware classifications to run",
        default=("GENERIC", "ACCELERATOR"),
        one_of=(*words.HARDWARE_CLASSIFICATIONS, *words.HARDWARE_CLASSIFICATION_ALIASES),
        words=True,
    )
    unclassified: str = option(
        "What happens to test classes that declare no classification",
        default="skip",
        one_of=UNCLASSIFIED_POLICIES,
    )
    skips: tuple[str, ...] = option("Skip lists, files in the repository, one a line", default=())
    skips_on: tuple[str, ...] = option(
        "Names of this place, such as a chip's; entries for other places do not apply", default=(), words=True
    )
    capabilities: str = option(
        "File that states what the backend can do: dtypes, operators, features", default=""
    )
    shards: int = option("Among how many jobs the tests are divided", default=1)
    history: Optional[Path] = option(
        "Folder with evidence of earlier runs: how long each test took, to divide them evenly", default=None
    )
    test_environment: tuple[str, ...] = option(
        "Variables for the test process, NAME=VALUE, one a line", default=()
    )
    test_timeout_minutes: float = option(
        "How long the tests may take; keep it below the job's timeout-minutes", default=50.0
    )


OPTIONS = (PlanOptions,)

OUTPUTS = {"selected": "How many tests the plan owes"}


def run(options: PlanOptions, context: RunContext, commands: Commands) -> None:
    """Raises NothingSelected, TestRunBroken, UsageError, DocumentError."""
    context = prepared(options, context, commands)
    folder = context.run_folder(options.run_dir)
    build = load(Build, folder)
    names = tuple(words.HARDWARE_CLASSIFICATION_ALIASES.get(name, name) for name in options.hw_classification)
    selection = Selection(tuple(sorted(set(names))), options.unclassified)
    place = session_place(options, context, commands)
    python = Python(build.interpreter, place.environment)
    lists = lists_for_run((context.workspace / path for path in options.skips), options.skips_on, python)
    stated = (
        state(context.workspace / options.capabilities, place, python) if options.capabilities else NOTHING
    )
    paths = tuple(
        os.path.relpath(_existing(context.workspace, path), context.workspace) for path in options.tests
    )
    with commands.group(f"Collect {', '.join(selection.hw_classification)} tests of {', '.join(paths)}"):
        session = run_session(
            place, build, selection, ["--collect-only", "-q", *COMMON_ARGUMENTS, *paths], quiet=True
        )
        _require_same_torch(session, build)
        plan = _with_skips(_plan_of(session, build, selection, paths), lists, stated, commands)
        plan = _divided(plan, options)
        for line in describe(plan):
            commands.line(line)
    save(plan, folder)
    commands.output("selected", str(len(plan.tests)))
    if plan.selection.unclassified == "fail" and plan.unclassified_classes:
        raise NothingSelected(
            "Test classes declare no hardware classification.",
            seen=", ".join(plan.unclassified_classes[:10]),
            fix="declare `hw_classification` in them, or set `unclassified: skip`",
        )
    if not plan.tests and not plan.broken_files:
        raise NothingSelected(
            "No test fits the selection, so a run would prove nothing.",
            seen=f"{plan.collected.mismatched} tests of other classifications, "
            f"{plan.collected.unclassified} unclassified, {plan.collected.without_class} plain functions",
            fix="hw-classification: the classes your tests declare; or `unclassified: run`",
        )


def _divided(plan: Plan, options: PlanOptions) -> Plan:
    seconds = seconds_of_before(options.history) if options.history is not None else {}
    skipped = {test for skip in plan.skips if skip.mode == "skip" for test in skip.tests}
    parts = divide(plan.tests, options.shards, seconds, skipped)
    if plan.tests and not all(parts):
        raise UsageError(
            "There are more shards than tests.",
            seen=f"{options.shards} shards, {len(plan.tests)} tests",
            fix=f'shards: "{max(1, min(len(plan.tests), options.shards - 1))}", here and in the matrix',
        )
    if options.shards == 1:
        return plan
    tests = tuple(test for part in parts for test in part)
    return replace(plan, tests=tests, shards=options.shards, sizes=tuple(map(len, parts)))


def session_place(options: PlanOptions, context: RunContext, commands: Commands) -> SessionPlace:
    """Where the sessions of a plan run."""
    environment = {**context.environment, **read_environment(options.test_environment)}
    folder = context.run_folder(options.run_dir)
    return SessionPlace(folder, context.workspace, environment, commands, options.test_timeout_minutes * 60)


def describe(plan: Plan) -> list[str]:
    """The plan in words."""
    counts = plan.collected
    divided = (
        f"{counts.selected} tests selected; left out: {counts.mismatched} of other classifications, "
        f"{counts.unclassified} unclassified, {counts.without_class} plain functions"
    )
    return [
        divided,
        *(f"{len(skip.tests)} of them: {skip.mode}, {skip.reason}" for skip in plan.skips[:20]),
        *(f"unclassified, left out: {name}" for name in plan.unclassified_classes if counts.unclassified),
        *(f"cannot be collected: {name}" for name in plan.broken_files),
    ]


def _plan_of(session: Session, build: Build, selection: Selection, paths: tuple[str, ...]) -> Plan:
    report, completed = session.report, session.completed
    # A session with broken files ends with 2; what it could collect is the plan all the same.
    if report is None or (completed.exit_code not in (0, 2, _NOTHING_COLLECTED)):
        lines = [line for line in completed.tail if line.strip()]
        raise TestRunBroken(
            "The tests could not be collected.",
            seen=f"{completed.describe()}: {' | '.join(lines[-3:])[:800]}",
            fix="run the same tests by hand with the interpreter that build.json names",
        )
    collected = replace(report.collected, selected=len(report.tests), broken=len(report.broken_files))
    return Plan(
        commit=build.commit,
        selection=selection,
        collected=collected,
        paths=paths,
        tests=report.tests,
        unclassified_classes=report.unclassified_classes,
        origins=report.origins,
        device=report.device,
        broken_files=report.broken_files,
    )


def _require_same_torch(session: Session, build: Build) -> None:
    """Raises TorchChanged: a requirement, or a step in between, may have brought another torch."""
    found = session.torch.git_version if session.torch is not None else build.torch.git_version
    if found != build.torch.git_version:
        raise TorchChanged(
            "The torch under the backend is no longer the one that was built.",
            seen=f"torch.version.git_version is {found}, built was {build.torch.git_version}",
            fix="whatever was installed after build-pytorch must be installed with --no-deps",
        )


def _with_skips(plan: Plan, lists: ListsForRun, stated: Stated, commands: Commands) -> Plan:
    """The plan with what the skip lists say. Decided once: every shard and every re-run does the same."""
    skips = lists.read(plan.device)
    warn(skips, lists.today, commands)
    entries = (*skips.entries, *stated.skips)
    planned = lists.planned(entries, plan.tests, plan.origins, plan.device)
    return replace(plan, skips=planned, tolerances=stated.tolerances)


def _existing(workspace: Path, path: str) -> Path:
    found = (workspace / path).absolute()
    if not found.exists():
        raise UsageError("tests names nothing.", seen=f"no {found}", fix="tests: paths in the repository")
    return found
