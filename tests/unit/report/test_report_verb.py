"""`crcr report` and `crcr resend` as whole processes, against a relay that may misbehave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bad_relay import BadRelay
from samples import EVIDENCE
from step import HEAD, Ended, Step, event

from relay_client.documents.document import save

GREEN = json.dumps({"receive": {"result": "success"}, "test": {"result": "success"}})


@pytest.fixture
def relay() -> Iterator[BadRelay]:
    with BadRelay() as running:
        yield running


@pytest.fixture
def job(step: Step, relay: BadRelay) -> Step:
    step.arrive(event())
    step.environment |= {
        "CRCR_RELAY_URL": relay.address,
        "CRCR_NEEDS": GREEN,
        "CRCR_EVIDENCE": str(step.temporary / "evidence"),
        "ACTIONS_ID_TOKEN_REQUEST_URL": relay.url + "/token",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request-secret",
    }
    save(replace(EVIDENCE, commit=HEAD, torch_git_version=HEAD), step.temporary / "evidence" / "a")
    return step


def outbox(ended: Ended) -> list[Path]:
    return sorted(Path(ended.outputs["outbox"]).iterdir())


def bodies(relay: BadRelay) -> list[Any]:
    return [request.json for request in relay.requests if request.method == "POST"]


def test_two_reports_make_one_row(job: Step, relay: BadRelay) -> None:
    assert job.run("report", CRCR_STATUS="in_progress").exit_code == 0
    ended = job.run("report")
    assert (ended.exit_code, ended.outputs["conclusion"], ended.outputs["delivery"]) == (
        0,
        "success",
        "delivered",
    )
    first, last = (body["workflow"] for body in bodies(relay))
    assert first["check_run_id"] == last["check_run_id"]
    assert (last["conclusion"], last["test_results"]["passed"]) == ("success", 3)
    assert relay.taken == ["in_progress", "completed"]


def test_no_token_is_in_what_the_step_leaves(job: Step, relay: BadRelay) -> None:
    relay.faults = ["403", "403"]
    ended = job.run("report")
    secrets = {token.partition(" ")[2] for token in relay.tokens} | {"request-secret"}
    masked = {command.data for command in ended.commands if command.name == "add-mask"}
    assert secrets - {"request-secret"} <= masked
    left = "".join(path.read_text(encoding="utf-8") for path in job.temporary.rglob("*") if path.is_file())
    shown = "\n".join(line for line in ended.everything.splitlines() if not line.startswith("::add-mask::"))
    assert not [secret for secret in secrets if secret in left + shown]


def test_a_second_attempt_reports_its_start_although_the_receive_job_did_not_run_again(
    job: Step, relay: BadRelay
) -> None:
    assert job.run("report", GITHUB_RUN_ATTEMPT="2").exit_code == 0
    assert [body["workflow"]["status"] for body in bodies(relay)] == ["in_progress", "completed"]
    assert relay.taken == ["in_progress", "completed"]
    assert {body["workflow"]["run_attempt"] for body in bodies(relay)} == {2}


@pytest.mark.parametrize(("if_rejected", "code"), [("warn", 0), ("fail", 61)])
def test_a_refused_report_is_loud_and_kept(job: Step, relay: BadRelay, if_rejected: str, code: int) -> None:
    relay.faults = ["403"]
    ended = job.run("report", CRCR_IF_REJECTED=if_rejected)
    assert (ended.exit_code, ended.outputs["delivery"]) == (code, "refused")
    assert any(
        "register" in command.data for command in ended.commands if command.name in ("warning", "error")
    )
    assert "**refused**" in ended.summary
    (letter,) = outbox(ended)
    assert json.loads(letter.read_text(encoding="utf-8"))["body"]["workflow"]["conclusion"] == "success"


def test_what_waits_in_the_outbox_is_delivered_once(job: Step, relay: BadRelay) -> None:
    relay.faults = ["429 for an hour"]
    ended = job.run("report")
    assert (ended.exit_code, ended.outputs["delivery"], relay.taken) == (0, "undelivered", [])
    folder = ended.outputs["outbox"]
    again = job.run("resend", folder)
    assert (again.exit_code, again.outputs["delivered"]) == (0, "1")
    assert relay.taken == ["in_progress", "completed"]
    third = job.run("resend", folder)
    assert third.exit_code == 64
    assert "empty" in third.stdout
    assert relay.taken == ["in_progress", "completed"]


def test_a_letter_that_is_refused_again_stays(job: Step, relay: BadRelay) -> None:
    relay.faults = ["403", "403"]
    folder = job.run("report").outputs["outbox"]
    assert job.run("resend", folder).exit_code == 61
    assert job.run("resend", folder).exit_code == 0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"url": "https://evil.example/github/callback"}, "another relay"),
        ({"audience": "another"}, "another relay"),
        ({"body": {}}, "not what"),
        ({"body": None}, "not what"),
        ({"start": []}, "not what"),
        ({"url": None}, "another relay"),
    ],
)
def test_a_letter_that_somebody_changed_gets_no_token(
    job: Step, relay: BadRelay, change: dict[str, Any], word: str
) -> None:
    """Every job of a run can write artifacts, also one that ran a stranger's code."""
    relay.faults = ["403"]
    (path,) = outbox(job.run("report"))
    asked = len(relay.requests)
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    ended = job.run("resend", str(path.parent))
    assert ended.exit_code == 64
    assert word in ended.stdout
    assert len(relay.requests) == asked


@pytest.mark.parametrize("arguments", [[], ["a", "b"]])
def test_resend_wants_one_folder(job: Step, arguments: list[str]) -> None:
    ended = job.run("resend", *arguments)
    assert (ended.exit_code, "crcr resend FOLDER" in ended.stdout) == (2, True)


def test_a_command_of_the_user_s_own_is_reported_from_its_junit(job: Step, relay: BadRelay) -> None:
    evidence = job.temporary / "evidence"
    (evidence / "a" / EVIDENCE.FILE).unlink()
    report = evidence / "a" / "report.xml"
    report.write_text(
        "<testsuite><testcase name='good'/><testcase name='bad'><failure/></testcase></testsuite>"
    )
    variables = {"CRCR_JUNIT": "**/*.xml", "CRCR_TORCH_GIT_VERSION": HEAD}
    ended = job.run("report", **variables)
    assert (ended.exit_code, ended.outputs["conclusion"]) == (62, "failure")
    workflow = bodies(relay)[-1]["workflow"]
    assert workflow["test_results"] == {"passed": 1, "failed": 1, "skipped": 0, "total": 2}
    assert [test["name"] for test in workflow["failed_tests_detail"]] == ["bad"]


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "9" * 20])
@pytest.mark.parametrize("name", ["expected-shards", "expected-tests"])
def test_expectations_are_whole_numbers(job: Step, relay: BadRelay, name: str, value: str) -> None:
    ended = job.run("report", f"--{name}={value}")
    assert ended.exit_code == 2
    assert f"{name}: a whole number above 0" in ended.stdout.replace("%0A", "\n")
    assert bodies(relay) == []


def test_a_time_limit_is_told_from_a_cancellation(job: Step, relay: BadRelay) -> None:
    needs = json.dumps({"test": {"result": "cancelled"}})
    ended = job.run("report", CRCR_NEEDS=needs, GITHUB_API_URL=relay.url, CRCR_GITHUB_TOKEN="t")
    assert (ended.exit_code, ended.outputs["conclusion"]) == (62, "cancelled")
    assert "whether a time limit cancelled it is not known" in ended.summary.replace("&#45;", "-")
