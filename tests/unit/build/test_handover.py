"""One job builds, others install: the same wheels, the same commit, and nothing compiled twice."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import pytest
from build_job import Job
from samples import DOCUMENTS

from relay_client.documents.build import Build
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import load, save
from relay_client.documents.plan import Plan


class BuiltJob(Job):
    """A run folder with a build, and a second one for the job that tests."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.second = folder / "second"
        self.second.mkdir()

    def build(self) -> Path:
        """Build by overlay of one changed file, with a backend; return the hand-over."""
        changed = self.torch.commit({"torch/random.py": b"SEED = 2\n"})
        self.checked_out(changed)
        assert self.build_pytorch() == 0
        self.write_backend()
        assert self.build_backend() == 0
        (plan,) = [document for document in DOCUMENTS if isinstance(document, Plan)]
        save(plan, self.run_dir)
        assert self.crcr("hand-over") == 0
        return Path(
            shutil.copytree(self.run_dir / "handover", self.second / "downloaded" / "crcr-build-attempt-1")
        )

    def install(self, place: Path) -> int:
        """Install as the other job does: no wheel of the first job can be found any more."""
        first, self.run_dir = self.run_dir, self.second
        try:
            return self.crcr("install", "--check-backend", "false", "--handover", str(place))
        finally:
            self.run_dir = first


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[BuiltJob, Path]:
    job = BuiltJob(tmp_path_factory.mktemp("built"))
    return job, job.build()


@pytest.fixture
def job(template: tuple[BuiltJob, Path], tmp_path: Path) -> BuiltJob:
    """The built job with a second run folder of one's own, and the hand-over downloaded into it."""
    mine = copy.copy(template[0])
    mine.second = tmp_path
    return mine


@pytest.fixture
def place(template: tuple[BuiltJob, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(template[1], tmp_path / "downloaded" / "crcr-build-attempt-1"))


def test_the_other_job_has_the_same_torch_and_backend(job: BuiltJob, place: Path) -> None:
    assert not [path for path in place.rglob("*") if path.is_symlink()]
    assert job.install(place.parent) == 0
    first, second = load(Build, job.run_dir), load(Build, job.second)
    assert second.interpreter == str(job.second / "environment" / "bin" / "python")
    assert (second.commit, second.torch.git_version) == (first.commit, first.commit)
    job.python = Path(second.interpreter)
    assert job.ask("import torch.random, torch_small; print(torch.random.SEED)") == "2"
    for document in (Checkout, Plan):
        assert (job.second / document.FILE).read_bytes() == (job.run_dir / document.FILE).read_bytes()


@pytest.mark.parametrize("damage", ["another wheel", "no wheel", "a link"])
def test_a_wheel_that_is_not_the_one_that_was_built_is_refused(
    job: BuiltJob, place: Path, damage: str
) -> None:
    (wheel,) = (place / "wheels").glob("torch_small-*.whl")
    data = wheel.read_bytes()
    wheel.unlink()
    if damage == "another wheel":
        wheel.write_bytes(data + b"x")
    elif damage == "a link":
        (place / "elsewhere.whl").write_bytes(data)
        wheel.symlink_to(place / "elsewhere.whl")
    assert job.install(place.parent) == 41
    assert not (job.second / Build.FILE).exists()


def test_files_laid_over_another_commit_are_refused(job: BuiltJob, place: Path) -> None:
    value = json.loads((place / Build.FILE).read_text())
    value["torch"]["version"] = "9.9"
    (place / Build.FILE).write_text(json.dumps(value))
    assert job.install(place.parent) == 48


def test_the_newest_attempt_that_built_is_taken(job: BuiltJob, place: Path) -> None:
    older = place.parent / "crcr-build-attempt-2"
    newest = place.parent / "crcr-build-attempt-10"
    shutil.copytree(place, newest)
    shutil.copytree(place, older)
    for stale in (place, older):
        next((stale / "wheels").glob("torch_small-*.whl")).unlink()
    assert job.install(place.parent) == 0


def test_without_a_build_the_job_says_which_job_is_missing(
    job: BuiltJob, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.install(job.second / "nowhere") == 2
    assert "stage: build" in capsys.readouterr().out


def test_a_backend_that_its_own_command_installed_cannot_be_handed_over(tmp_path: Path) -> None:
    job = BuiltJob(tmp_path)
    job.checked_out(job.commit)
    assert job.build_pytorch() == 0
    assert job.build_backend("--backend-command", "true") == 0
    assert job.crcr("hand-over") == 41
