"""The runner's decisions, without act: who gets a token, how the copy is written, how a log is read."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dispatch_lab.errors import LabError
from dispatch_lab.runner.act_log import ARRIVED, Masks, conclusion, gave_up, job_results, parsed_line
from dispatch_lab.runner.workflow_copy import edited, find_uses, grants_id_token, listens_to, read_workflow

FILE = ".github/workflows/x.yml"
WORKFLOW = """
on: {repository_dispatch: {types: [pull_request, push]}}
permissions: {contents: read}
env: &shared {A: yes, B: 0o12}
jobs:
  one: &job
    permissions: {id-token: write}
    env: *shared
    runs-on: [self-hosted, gpu]
    strategy: {matrix: {shard: [a, b], zone: [1], include: [{shard: c}]}}
    steps:
      - run: |
          echo "${{ matrix.shard }}"
            indented
      - {id: up, uses: actions/upload-artifact@abc, with: {name: n}}
  two: *job
"""


@pytest.mark.parametrize(
    ("permissions", "granted"),
    [
        (None, False),
        ({}, False),
        ({"id-token": "write"}, True),
        ({"id-token": "none", "contents": "write"}, False),
        ("write-all", True),
        ("read-all", False),
    ],
)
def test_who_may_ask_for_a_token(permissions: object, granted: bool) -> None:
    assert grants_id_token(permissions) is granted


def test_the_copy_differs_in_environment_label_and_uses_only() -> None:
    copy = edited(WORKFLOW, {"one": {"TOKEN": "t: 1"}}, lambda uses: uses.replace("abc", "def"))
    assert copy.lstrip().startswith("on:")
    assert "A: yes, B: 0o12" in copy
    before, after = yaml.safe_load(WORKFLOW), yaml.safe_load(copy)
    assert after["jobs"]["one"]["env"] == {"A": True, "B": "0o12", "TOKEN": "t: 1"}
    assert after["jobs"]["two"]["env"] == {"A": True, "B": "0o12"}  # not along the alias
    assert after["env"] == before["env"]
    for job in ("one", "two"):
        assert after["jobs"][job].pop("runs-on") == "dispatch-lab"
        assert after["jobs"][job]["steps"][1].pop("uses") == "actions/upload-artifact@def"
        after["jobs"][job].pop("env")
    for job in before["jobs"].values():  # one object, because of the alias
        for key in ("runs-on", "env"):
            job.pop(key, None)
        job["steps"][1].pop("uses", None)
    assert after == before


def test_uses_lines_are_found_with_their_lines() -> None:
    (first, second) = find_uses(WORKFLOW, FILE)
    assert first.place == f"{FILE}:15: uses: actions/upload-artifact@abc"
    assert second.inputs == {"name": "n"}


@pytest.mark.parametrize(
    ("triggers", "heard"),
    [
        ("on: repository_dispatch", True),
        ("on: [push, repository_dispatch]", True),
        ("on: {repository_dispatch: }", True),
        ("on: {repository_dispatch: {types: push}}", True),
        ("on: {repository_dispatch: {types: [pull_request]}}", False),
        ("on: push", False),
    ],
)
def test_types_of_a_dispatch_are_heeded(triggers: str, heard: bool) -> None:
    assert listens_to(triggers, FILE, "repository_dispatch", "push") is heard


@pytest.mark.parametrize(
    "key", ["uses: o/r/.github/workflows/x.yml@v1", "container: debian", "services: {a: {}}"]
)
def test_what_the_lab_cannot_run_is_refused(key: str) -> None:
    with pytest.raises(LabError) as refused:
        read_workflow(f"jobs:\n  a:\n    {key}\n", FILE)
    assert f"jobs.a.{key.split(':')[0]}" in refused.value.seen


def line(second: float, job: str, **fields: Any) -> dict[str, Any]:
    return {"jobID": job, "job": f"{FILE}/{job}-1", "time": "2026-12-01T00:00:00Z", ARRIVED: second, **fields}


def leg(second: float, shard: str, *, fails: bool) -> list[dict[str, Any]]:
    matrix = {"shard": shard, "zone": 1}
    step = {"matrix": matrix, "step": "echo", "stepID": ["0"], "stage": "Main"}
    events = [line(second, "one", matrix=matrix, step="Set up job")]
    outcome = "failure" if fails else "success"
    events.append(line(second + 1, "one", stepResult=outcome, executionTime=5 * 10**8, **step))
    if fails:
        events.append(line(second + 1, "one", level="error", msg="exit status 1", **step))
    # act says "failure" of every leg that ends after a failed one
    events.append(line(second + 2, "one", matrix=matrix, jobResult="failure"))
    return events


def test_each_leg_of_a_matrix_has_its_own_result() -> None:
    workflow = read_workflow(WORKFLOW, FILE)
    jobs = job_results(leg(1, "a", fails=True) + leg(2, "b", fails=False), workflow, None)
    assert {key: job.result for key, job in jobs.items()} == {
        "one (a, 1)": "failure",
        "one (b, 1)": "success",
        "two": "skipped",
    }
    job = jobs["one (a, 1)"]
    assert (job.job, job.name, job.seconds, job.started_at) == (
        "one",
        "one (a, 1)",
        2.0,
        "2026-12-01T00:00:00Z",
    )
    assert [(step.outcome, step.seconds) for step in job.steps] == [("failure", 0.5), ("skipped", 0.0)]


def test_what_ends_after_an_interrupt_is_cancelled() -> None:
    workflow = read_workflow(WORKFLOW, FILE)
    jobs = job_results(leg(1, "a", fails=False) + leg(9, "b", fails=False), workflow, interrupted_at=5)
    assert [job.result for job in jobs.values()] == ["success", "cancelled", "cancelled"]
    assert conclusion(jobs, interrupted=True) == "cancelled"


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (("success", "skipped"), "success"),
        (("success", "failure", "cancelled"), "failure"),
        (("success", "cancelled"), "cancelled"),
        (("skipped",), "skipped"),
    ],
)
def test_the_worst_job_decides(results: tuple[str, ...], expected: str) -> None:
    workflow = read_workflow(WORKFLOW, FILE)
    template = job_results([], workflow, None)["one"]
    jobs = {str(i): type(template)("j", "j", r, 0.0, "", ()) for i, r in enumerate(results)}
    assert conclusion(jobs, interrupted=False) == expected


def test_secrets_are_masked_in_every_field() -> None:
    masks = Masks(["given"])
    announced = masks.applied(
        {"command": "add-mask", "arg": "later", "raw": "::add-mask::later", "msg": "***"}
    )
    assert "later" not in str(announced)
    assert masks.applied({"msg": "given later", "kv": {"a": ["later"]}}) == {
        "msg": "*** ***",
        "kv": {"a": ["***"]},
    }


def test_acts_last_words_tell_a_failed_job_from_a_broken_run() -> None:
    assert gave_up([parsed_line("Error: Job 'one' failed\n", 1.0)]) == ""
    words = [
        parsed_line(text, 1.0)
        for text in ("Error: Line: 8 Column 3: Failed to match\n", "Unknown Property\n")
    ]
    assert gave_up(words) == "Error: Line: 8 Column 3: Failed to match\nUnknown Property"
