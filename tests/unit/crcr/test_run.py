"""`crcr run`: which stages it walks, and what it leaves when one of them ends it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Optional

import pytest
from step import Step

from crcr import run as walk
from crcr.cli import main
from crcr.run import STAGES, artifact_name
from relay_client.documents.document import load, save
from relay_client.documents.evidence import Counts, Evidence
from relay_client.documents.failure import STAGES as NAMED
from relay_client.documents.failure import Failure
from relay_client.errors import CrcrError, TestsFailed, WrongTorch

UNKNOWN = "1234567890abcdef1234567890abcdef12345678"
EVIDENCE = Evidence(
    row="test", run_attempt=1, commit=UNKNOWN, torch_git_version=UNKNOWN, shard=1, shards=1,
    counts=Counts(1, 1, 0, 0, 0, 0, 0), broken_files=(), failures=(), exit_code=0,
    started_at="2026-11-30T10:11:12Z", completed_at="2026-11-30T10:12:12Z",
)  # fmt: skip


class Walked:
    """Stands for the stages: says which ran, and ends one of them."""

    OPTIONS = (walk.RunOptions,)

    def __init__(self, name: str, seen: list[str], error: Any = None) -> None:
        self.name, self.seen, self.error = name, seen, error

    def run(self, options: Any, context: Any, commands: Any) -> None:
        self.seen.append(self.name)
        if self.error:
            self.leave()
            raise self.error

    def leave(self) -> None:
        """What a stage leaves before it fails."""


def walked(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    stage: str = "all",
    ends: str = "",
    error: Optional[CrcrError] = None,
) -> list[str]:
    seen: list[str] = []
    stands_in = {
        key: tuple((name, Walked(name, seen, error if name == ends else None)) for name, _ in stages)
        for key, stages in STAGES.items()
    }
    monkeypatch.setattr(walk, "STAGES", stands_in)
    exit_code = main(["run", "--stage", stage, "--run-dir", str(folder), "--row", "gpu row"], {})
    assert exit_code == (error.exit_code if error else 0)
    return seen


def test_a_failure_can_name_every_stage() -> None:
    assert {name for stages in STAGES.values() for name, _ in stages} == set(NAMED)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("all", ["checkout", "build-pytorch", "build-backend", "plan", "test"]),
        ("build", ["checkout", "build-pytorch", "build-backend", "plan", "hand-over"]),
        ("test", ["install", "test"]),
    ],
)
def test_the_stages_are_walked_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stage: str, expected: list[str]
) -> None:
    assert walked(monkeypatch, tmp_path, stage) == expected
    assert not (tmp_path / Failure.FILE).exists()


def test_a_stage_that_fails_is_the_last_and_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error = WrongTorch("Not this.", seen="::error::seen", fix="That.")
    assert walked(monkeypatch, tmp_path, ends="build-pytorch", error=error) == ["checkout", "build-pytorch"]
    failure = load(Failure, tmp_path)
    assert (failure.row, failure.run_attempt, failure.stage) == ("gpu row", 1, "build-pytorch")
    assert (failure.error, failure.what, failure.seen, failure.fix) == (
        "WrongTorch", "Not this.", "::error::seen", "That.",
    )  # fmt: skip


def test_what_an_earlier_run_left_speaks_for_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    save(EVIDENCE, tmp_path)
    save(Failure("test", 1, "plan", "X", "what", "seen", "fix"), tmp_path)
    walked(monkeypatch, tmp_path, ends="checkout", error=WrongTorch("Not this."))
    assert not (tmp_path / Evidence.FILE).exists()
    assert load(Failure, tmp_path).stage == "checkout"


def test_an_old_failure_is_forgotten_when_all_is_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    save(Failure("test", 1, "plan", "X", "what", "seen", "fix"), tmp_path)
    walked(monkeypatch, tmp_path)
    assert not (tmp_path / Failure.FILE).exists()


def test_failed_tests_are_told_by_the_evidence_and_not_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    error = TestsFailed("1 failed.")
    monkeypatch.setattr(Walked, "leave", lambda _: save(EVIDENCE, tmp_path))
    walked(monkeypatch, tmp_path, ends="test", error=error)
    assert (tmp_path / Evidence.FILE).exists()
    assert not (tmp_path / Failure.FILE).exists()


def test_what_the_upload_needs_is_said_before_anything_can_fail(step: Step) -> None:
    ended = step.run("run", CRCR_COMMIT="main", CRCR_ROW="CUDA 12 / py3")
    assert ended.exit_code == 2
    patterns = ended.outputs["documents"].splitlines()
    assert str(step.run_folder / "*.json") in patterns
    assert ended.outputs["artifact-name"] == "crcr-evidence-CUDA-12-py3-1-attempt-1"
    failure = json.loads((step.run_folder / Failure.FILE).read_text())
    assert (failure["stage"], failure["error"]) == ("checkout", "UsageError")


def test_a_checkout_that_fails_ends_the_run_with_its_own_code(step: Step, tmp_path: Path) -> None:
    remote = tmp_path / "upstream"
    remote.mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    ended = step.run("run", CRCR_COMMIT=UNKNOWN, CRCR_REPOSITORY=remote.as_uri())
    assert ended.exit_code == 31
    assert "The remote does not have the commit." in ended.summary
    assert [command.name for command in ended.commands] == ["group", "endgroup", "error"]


@pytest.mark.parametrize(
    ("row", "part", "attempt", "expected"),
    [
        ("test", "1", 1, "crcr-evidence-test-1-attempt-1"),
        ("test", "1", 2, "crcr-evidence-test-1-attempt-2"),
        ("test", "build", 1, "crcr-evidence-test-build-attempt-1"),
        ('a:b"c/d\\e*f?g<h>i|j\r\nk', "1", 1, "crcr-evidence-a-b-c-d-e-f-g-h-i-j-k-1-attempt-1"),
        ("火", "1", 1, "crcr-evidence-row-1-attempt-1"),
    ],
)
def test_an_artifact_has_a_name_that_github_takes(row: str, part: str, attempt: int, expected: str) -> None:
    assert artifact_name(row, part, attempt) == expected


def test_a_build_job_and_a_test_job_upload_under_different_names(step: Step) -> None:
    names = {step.run("run", "--stage", stage).outputs["artifact-name"] for stage in ("build", "test", "all")}
    assert names == {"crcr-evidence-test-build-attempt-1", "crcr-evidence-test-1-attempt-1"}
