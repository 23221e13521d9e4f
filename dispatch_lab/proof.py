"""What must hold after a step of a scenario, checked from the outside: dashboard, documents and JUnit.

Each proof reads a different witness: the dashboard's JSON says what was reported, pytest's JUnit what was run,
build.json and evidence.json which torch it was.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dispatch_lab.runner import WorkflowRun
from dispatch_lab.scenarios import Step
from relay_client.documents.build import Build
from relay_client.documents.document import load_file
from relay_client.documents.evidence import Evidence
from relay_client.documents.plan import Plan


def problems(step: Step, row: dict[str, Any], run: WorkflowRun) -> list[str]:
    """What is wrong with a step's result; empty when everything holds."""
    found = [
        f"the row is {row['status']}/{row['conclusion']}, expected completed/{step.conclusion}"
        for _ in range((row["status"], row["conclusion"]) != ("completed", step.conclusion))
    ]
    if row["commit"] != step.commit:
        found.append(f"the row is about {row['commit']}, dispatched was {step.commit}")
    evidence, build, plan = (_one(cls, run.artifacts) for cls in (Evidence, Build, Plan))
    for name, version in (("built", build.torch.git_version), ("tested", evidence.torch_git_version)):
        if version != step.commit:
            found.append(f"the {name} torch is {version}, dispatched was {step.commit}")
    junit = junit_counts(run.artifacts)
    shown = {kind: row[kind] for kind in ("passed", "failed", "skipped")}
    if shown != junit:
        found.append(f"the row counts {shown}, pytest's JUnit {junit}")
    if sum(junit.values()) != len(plan.tests) or not junit["passed"]:
        found.append(f"{len(plan.tests)} tests were planned, JUnit has {sum(junit.values())}")
    return found + _failing(step, row)


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
