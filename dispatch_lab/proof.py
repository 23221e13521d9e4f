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

from dispatch_lab.runner import WorkflowRun
from dispatch_lab.scenarios import Step
from relay_client.documents import journal
from relay_client.documents.build import Build
from relay_client.documents.document import load_file
from relay_client.documents.evidence import Evidence
from relay_client.documents.plan import Plan


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
    evidence, build, plan = (_one(cls, run.artifacts) for cls in (Evidence, Build, Plan))
    found = [
        f"the {name} torch is {version}, dispatched was {step.commit}"
        for name, version in (("built", build.torch.git_version), ("tested", evidence.torch_git_version))
        if version != step.commit
    ]
    shown = {kind: row[kind] for kind in ("passed", "failed", "skipped")}
    # A process that dies takes its JUnit along. The journal has what it held, and JUnit only the rest.
    expected = journal_counts(run.artifacts) if step.crashed else junit_counts(run.artifacts)
    if shown != expected:
        found.append(f"the row counts {shown}, {'the journal' if step.crashed else 'JUnit'} {expected}")
    if sum(expected.values()) != len(plan.tests) or not expected["passed"]:
        found.append(f"{len(plan.tests)} tests were planned, {sum(expected.values())} are accounted for")
    if (evidence.counts.crashed, evidence.counts.lost) != (step.crashed, 0):
        found.append(
            f"{evidence.counts.crashed} tests crashed and {evidence.counts.lost} were lost, expected {step.crashed} and 0"
        )
    return found


def journal_counts(folder: Path) -> dict[str, int]:
    """Passed, failed (with those that never ended) and skipped tests in the journal below a folder."""
    (path,) = folder.rglob(journal.FILE)
    ends: dict[str, str | None] = {}
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


def _one(cls: Any, folder: Path) -> Any:
    (path,) = folder.rglob(cls.FILE)
    return load_file(cls, path)
