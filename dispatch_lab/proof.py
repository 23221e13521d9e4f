"""What must hold after a step of a scenario, checked from the outside: dashboard, documents and JUnit.

Each proof reads a different witness: the dashboard's JSON says what was reported, pytest's JUnit what was run,
build.json and evidence.json which torch it was.
"""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dispatch_lab.errors import LabError
from dispatch_lab.runner import WorkflowRun
from dispatch_lab.scenarios import Step
from relay_client.documents import journal
from relay_client.documents.build import Build
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import load_file
from relay_client.documents.evidence import Evidence
from relay_client.documents.plan import Plan

# What setuptools says when it compiles the small PyTorch, and how many submodules that has.
_COMPILED = "building 'torch._sum' extension"
_SUBMODULES = 2


def problems(step: Step, row: dict[str, Any], run: WorkflowRun) -> list[str]:
    """What is wrong with a step's result; empty when everything holds. `row` is empty when there is none."""
    if step.not_run:
        return _not_run(step, row, run)
    found = []
    if (row["status"], row["conclusion"]) != ("completed", step.conclusion):
        found.append(f"the row is {row['status']}/{row['conclusion']}, expected completed/{step.conclusion}")
    if row["commit"] != step.commit:
        found.append(f"the row is about {row['commit']}, dispatched was {step.commit}")
    if step.tested:
        found += _tested(step, row, run)
    elif list(run.artifacts.rglob(Evidence.FILE)):
        found.append("tests were run, and must not have been")
    return found + _failing(step, row)


def _not_run(step: Step, row: dict[str, Any], run: WorkflowRun) -> list[str]:
    """The witnesses of a dispatch that must run nothing: jobs, dashboard, and what the summary tells a maintainer."""
    ran = [job.name for name, job in run.jobs.items() if name != "receive" and job.result != "skipped"]
    received = run.jobs["receive"].result if "receive" in run.jobs else "missing"
    page = run.summaries / "receive.md"
    summary = page.read_text(encoding="utf-8") if page.is_file() else ""
    # Markdown's special characters are written as entities.
    shown = html.unescape(summary)
    return [
        *([f"jobs ran that must not: {', '.join(ran)}"] if ran else []),
        *([f"the receive job is {received}, expected success"] if received != "success" else []),
        *([f"a row says {row['status']}/{row['conclusion']}"] if row else []),
        *(
            f"the summary of the receive job does not say {words!r}"
            for words in step.not_run
            if words not in shown
        ),
    ]


def _tested(step: Step, row: dict[str, Any], run: WorkflowRun) -> list[str]:
    """The witnesses of a run whose tests ran."""
    shards = _all(Evidence, run.artifacts)
    builds, plans = _all(Build, run.artifacts), _all(Plan, run.artifacts)
    torches = [("built", build.torch.git_version) for build in builds]
    torches += [("tested", shard.torch_git_version) for shard in shards]
    found = [
        f"the {name} torch is {version}, dispatched was {step.commit}"
        for name, version in torches
        if version != step.commit
    ]
    shown = {kind: row[kind] for kind in ("passed", "failed", "skipped")}
    # A process that dies takes its JUnit along. The journal has what it held, and JUnit only the rest.
    expected = journal_counts(run.artifacts) if step.crashed else junit_counts(run.artifacts)
    if shown != expected:
        found.append(f"the row counts {shown}, {'the journal' if step.crashed else 'JUnit'} {expected}")
    planned = len(plans[0].tests)
    if sum(expected.values()) != planned or not expected["passed"]:
        found.append(f"{planned} tests were planned, {sum(expected.values())} are accounted for")
    if sorted(shard.shard for shard in shards) != list(range(1, plans[0].shards + 1)):
        found.append(f"{len(shards)} shards left evidence, planned were {plans[0].shards}")
    crashed = sum(shard.counts.crashed for shard in shards)
    lost = sum(shard.counts.lost for shard in shards)
    if (crashed, lost) != (step.crashed, 0):
        found.append(f"{crashed} tests crashed and {lost} were lost, expected {step.crashed} and 0")
    return found + (_built(step.built, builds, run) if step.built else [])


def _built(expected: tuple[str, bool], builds: list[Build], run: WorkflowRun) -> list[str]:
    """The witnesses of how PyTorch was got: what build.json says, and what the log shows of compilers."""
    provider, reused = expected
    found = [
        f"PyTorch came by {build.provider}, reused is {build.reused}; expected {provider}, {reused}"
        for build in builds
        if (build.provider, build.reused) != expected
    ]
    compiled = run.log.read_text(encoding="utf-8", errors="replace").count(_COMPILED)
    if compiled != (0 if reused else 1):
        found.append(f"the extension was compiled {compiled} times, expected {0 if reused else 1}")
    checkouts = _all(Checkout, run.artifacts)
    if not all(len(checkout.submodules or ()) == _SUBMODULES for checkout in checkouts):
        found.append("the submodules were not all checked out")
    return found


def journal_counts(folder: Path) -> dict[str, int]:
    """Passed, failed (with those that never ended) and skipped tests in the journal below a folder."""
    ends: dict[str, str | None] = {}
    for path in folder.rglob(journal.FILE):
        for line in journal.read_journal(path):
            ends[line.test] = line.outcome or ends.get(line.test)
    counts = Counter({None: "failed", "xfailed": "skipped"}.get(end, end) for end in ends.values())
    return {kind: counts[kind] for kind in ("passed", "failed", "skipped")}


def junit_counts(folder: Path) -> dict[str, int]:
    """Passed, failed and skipped test cases in pytest's own JUnit reports below a folder."""
    counts = Counter(
        _kind(case)
        for path in folder.rglob("junit-*.xml")
        for case in ElementTree.parse(path).iter("testcase")  # noqa: S314 - the lab's own run wrote it
    )
    return {kind: counts[kind] for kind in ("passed", "failed", "skipped")}


def _kind(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def _failing(step: Step, row: dict[str, Any]) -> list[str]:
    names = [test["name"] for test in row["failed_tests"]]
    missing = [part for part in step.failing if not any(part in name for name in names)]
    others = [name for name in names if not any(part in name for part in step.failing)]
    return [f"{part} is not among the failed tests the page names" for part in missing] + [
        f"{name} failed, which nobody expected" for name in others
    ]


def _all(cls: Any, folder: Path) -> list[Any]:
    """Every document of a kind, each once: jobs of one run hand them on."""
    found = [load_file(cls, path) for path in sorted(folder.rglob(cls.FILE))]
    if not found:
        raise LabError(
            "A run left no document of a stage.", f"no {cls.FILE} below {folder}", "read the run's log"
        )
    return found
