"""The workflow files we hand out: authority apart from foreign code, limits everywhere, names that we own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from manifests import ROOT, WORKFLOWS, load, name

from crcr.home import HOME, RELEASE_COMMIT

workflows = pytest.mark.parametrize("path", WORKFLOWS, ids=name)
# Actions that start a stranger's code.
_FOREIGN = ("", "actions/checkout-pytorch", "actions/build-pytorch", "actions/build-backend",
            "actions/run-classified-tests")  # fmt: skip
# GitHub's own, and a placeholder that nobody can register.
_OWNERS = {"actions", HOME.partition("/")[0]}


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = load(path)["jobs"]
    return found


def uses(job: dict[str, Any]) -> list[str]:
    return [step["uses"] for step in job["steps"] if "uses" in step]


def ours(used: str) -> str | None:
    """The folder of an action of this project, or None for another's."""
    match = re.fullmatch(rf"{re.escape(HOME)}(?:/([^@]+))?@.*", used)
    return (match[1] or "") if match else None


def test_there_is_something_to_check() -> None:
    assert len(WORKFLOWS) >= 2


@workflows
def test_nothing_is_granted_to_the_whole_workflow(path: Path) -> None:
    assert load(path)["permissions"] == {}


@workflows
def test_every_job_has_a_limit_a_name_and_its_own_permissions(path: Path) -> None:
    for job in jobs(path).values():
        assert job["timeout-minutes"] <= 360
        assert job["name"]
        assert isinstance(job["permissions"], dict)


@workflows
def test_the_job_that_runs_foreign_code_cannot_ask_for_a_token(path: Path) -> None:
    for job in jobs(path).values():
        foreign = [used for used in uses(job) if ours(used) in _FOREIGN]
        runs = [step for step in job["steps"] if "run" in step]
        if job["permissions"].get("id-token") == "write":
            assert not foreign
            assert not runs
            assert not any(used.startswith("actions/checkout@") for used in uses(job))
        else:
            assert set(job["permissions"].values()) <= {"read"}


@workflows
def test_the_report_is_sent_whatever_happened(path: Path) -> None:
    found = jobs(path)
    (key,) = [key for key, job in found.items() if "always()" in str(job.get("if"))]
    job = found.pop(key)
    assert set(job["needs"]) == set(found)
    assert any(step.get("with", {}).get("needs") == "${{ toJSON(needs) }}" for step in job["steps"])


@workflows
def test_every_input_that_is_set_exists(path: Path) -> None:
    for job in jobs(path).values():
        for step in job["steps"]:
            folder = ours(step.get("uses", ""))
            if folder is not None:
                assert set(step.get("with", {})) <= set(load(ROOT / folder / "action.yml")["inputs"])


@workflows
def test_actions_are_pinned_to_a_commit_and_ours_to_the_release(path: Path) -> None:
    for job in jobs(path).values():
        for used in uses(job):
            assert re.fullmatch(r"[^@]+@[0-9a-f]{40}", used)
            assert ours(used) is None or used.endswith(f"@{RELEASE_COMMIT}")


@workflows
def test_no_text_of_the_event_is_pasted_into_a_command(path: Path) -> None:
    for job in jobs(path).values():
        assert not [step for step in job["steps"] if "${{" in str(step.get("run", ""))]


@workflows
def test_events_of_one_pull_request_replace_each_other(path: Path) -> None:
    concurrency = load(path)["concurrency"]
    assert concurrency["cancel-in-progress"] is True
    assert "client_payload.payload.number" in concurrency["group"]


def test_templates_have_github_s_metadata() -> None:
    for path in ROOT.glob("workflow-templates/*.yml"):
        metadata = json.loads(path.with_suffix(".properties.json").read_text(encoding="utf-8"))
        assert {"name", "description"} <= set(metadata)
        assert set(metadata) <= {"name", "description", "iconName", "categories", "filePatterns"}


@pytest.mark.parametrize(
    "path",
    [*WORKFLOWS, *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md")],
    ids=name,
)
def test_no_text_uses_an_action_of_an_owner_we_do_not_control(path: Path) -> None:
    found = re.findall(r"uses:\s*([A-Za-z0-9-]+)/", path.read_text(encoding="utf-8"))
    assert set(found) <= _OWNERS


def test_the_one_workflow_file_is_short() -> None:
    (path,) = ROOT.glob("workflow-templates/hardware-job.yml")
    code = [line for line in path.read_text(encoding="utf-8").splitlines() if line.split("#")[0].strip()]
    assert len(code) <= 80
