"""The proof of a dispatch that must run nothing: it holds for one run, and for none that differs in one thing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dispatch_lab.events import pull_request_delivery
from dispatch_lab.proof import problems
from dispatch_lab.runner.act_log import JobResult
from dispatch_lab.runner.run import WorkflowRun
from dispatch_lab.scenarios import Step

SUMMARY = "### ⏭️ Not run: pull request 7\n\nthe label &#34;ciflow&#47;crcr&#34;\n"
STEP = Step(
    "pull request 7 opened",
    pull_request_delivery(number=7, head_sha="a" * 40, base_sha="b" * 40),
    "a" * 40,
    not_run=("Not run", '"ciflow/crcr"'),
)


@pytest.fixture
def run(tmp_path: Path) -> WorkflowRun:
    summaries = tmp_path / "summaries"
    summaries.mkdir()
    (summaries / "receive.md").write_text(SUMMARY, encoding="utf-8")
    jobs = {name: job(name, "skipped") for name in ("test", "report")}
    nowhere = tmp_path / "none"
    return WorkflowRun(
        "vendor/backend", 1, 1, "CRCR", tmp_path, {"receive": job("receive", "success"), **jobs}, "success", 1.0,
        nowhere, nowhere, nowhere, summaries,
    )  # fmt: skip


def job(name: str, result: str) -> JobResult:
    return JobResult(name, name, result, 1.0, "", ())


def with_job(run: WorkflowRun, name: str, result: str) -> WorkflowRun:
    return replace(run, jobs={**run.jobs, name: job(name, result)})


def test_it_holds(run: WorkflowRun) -> None:
    assert problems(STEP, {}, run) == []


@pytest.mark.parametrize("result", ["success", "failure", "cancelled"])
def test_a_job_on_the_hardware_is_no_proof(run: WorkflowRun, result: str) -> None:
    assert problems(STEP, {}, with_job(run, "test", result)) == ["jobs ran that must not: test"]


def test_a_report_is_no_proof(run: WorkflowRun) -> None:
    assert problems(STEP, {}, with_job(run, "report", "success")) == ["jobs ran that must not: report"]
    row = {"status": "completed", "conclusion": "success"}
    assert problems(STEP, row, run) == ["a row says completed/success"]


@pytest.mark.parametrize("result", ["failure", "skipped"])
def test_a_receive_job_that_did_not_decide_is_no_proof(run: WorkflowRun, result: str) -> None:
    assert f"the receive job is {result}" in " ".join(problems(STEP, {}, with_job(run, "receive", result)))


@pytest.mark.parametrize("missing", ["Not run", "ciflow&#47;crcr"])
def test_a_summary_that_does_not_help_is_no_proof(run: WorkflowRun, missing: str) -> None:
    text = SUMMARY.replace(missing, "")
    (run.summaries / "receive.md").write_text(text, encoding="utf-8")
    assert "does not say" in " ".join(problems(STEP, {}, run))
    (run.summaries / "receive.md").unlink()
    assert "does not say" in " ".join(problems(STEP, {}, run))
