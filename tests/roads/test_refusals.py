"""What must not be green is not, and says why; what is planted in the job does not reach the toolkit.

One lab, one webhook, one workflow run for each story, side by side. PyTorch is a wheel of a few lines here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from small_downstream import downstream, shell_step, toolkit_step
from small_torch import torch_wheel

from dispatch_lab.events import pull_request_delivery
from dispatch_lab.lab import lab
from dispatch_lab.runner import WorkflowRun
from dispatch_lab.upstream import Edit

pytestmark = pytest.mark.road

BASE = "0b" * 20
BACKEND = {"torch_small.py": "DEVICE = 'small'\n"}
_PYTEST = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")

# Says which program loaded it. Named json, it then behaves like the real one.
TRAP = """
import os as _os, sys as _sys
_name = _os.path.join({folder!r}, f"{{_os.getpid()}}-" + {name!r})
open(_name, "w").write("\\0".join(_sys.orig_argv))
if __name__ == "json":
    import importlib.util as _util, sysconfig as _config
    _place = _os.path.join(_config.get_path("stdlib"), "json")
    _spec = _util.spec_from_file_location(
        "json", _os.path.join(_place, "__init__.py"), submodule_search_locations=[_place]
    )
    _sys.modules["json"] = _module = _util.module_from_spec(_spec)
    _spec.loader.exec_module(_module)
"""


@dataclass(frozen=True)
class Story:
    """How one downstream's run ended, and its row on the dashboard."""

    run: WorkflowRun
    row: dict[str, Any]
    commit: str

    @property
    def log(self) -> str:
        return self.run.log.read_text(encoding="utf-8")

    def document(self, name: str) -> Any:
        (path,) = self.run.artifacts.rglob(name)
        return json.loads(path.read_text(encoding="utf-8"))

    def documents(self) -> set[str]:
        return {path.name for path in self.run.artifacts.rglob("*.json*")}


@dataclass(frozen=True)
class Planted:
    """The traps, and what they caught: one text of arguments for each program that loaded one."""

    folder: Path

    def caught(self, name: str) -> list[str]:
        return [path.read_text(encoding="utf-8") for path in self.folder.glob(f"*-{name}")]

    def text(self, name: str) -> str:
        return TRAP.format(folder=str(self.folder), name=name)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(tmp_path_factory.mktemp("traps"))


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Path, planted: Planted) -> dict[str, Story]:
    folder = tmp_path_factory.mktemp("refusals")
    wheels = folder / "wheels"
    wheel = torch_wheel(wheels, BASE)
    for name in _PYTEST:
        (found,) = wheelhouse.glob(f"{name}-*.whl")
        (wheels / found.name).symlink_to(found)

    # The workspace is on the path of every Python that does not refuse it; the environment loads its own.
    python = {"PYTHONPATH": "${{ github.workspace }}", "PYTHONSTARTUP": "json.py"}
    traps = {
        f"{name}.py": planted.text(f"workspace-{name}") for name in ("json", "sitecustomize", "usercustomize")
    }
    in_environment = {
        **BACKEND,
        "planted.pth": f"import sys; exec({planted.text('environment-pth')!r})\n",
        "sitecustomize.py": planted.text("environment-sitecustomize"),
    }
    # The second time even the interpreter is the stranger's: what keeps its site-packages out then is -S.
    their_own = {**python, "CRCR_LAUNCHER_PYTHON": "${{ runner.temp }}/theirs/bin/python"}
    walk_twice = (
        shell_step("python3 -c 'import json'")
        + toolkit_step(python, stage="build")
        + shell_step('cp -r "$RUNNER_TEMP/crcr/environment" "$RUNNER_TEMP/theirs"')
        + toolkit_step(their_own, stage="test")
    )
    downstreams = (
        downstream(folder, "claims", toolkit_step(provider="wheel"), BACKEND),
        downstream(
            folder, "broken", toolkit_step(), BACKEND, **{"pyproject.toml": "[project\n::error::owned"}
        ),
        downstream(folder, "planted", walk_twice, in_environment, **traps),
    )
    with lab(folder / "lab", wheel, wheels, downstreams, lambda _: None) as up:
        commit = up.upstream.pull_request(7, "Another seed", Edit("torch/random.py", "SEED = 1", "SEED = 2"))
        up.send(pull_request_delivery(number=7, head_sha=commit, base_sha=up.upstream.main))
        found = {}
        for run in up.wait_for_runs(len(downstreams), 240):
            (row,) = up.data(f"/crcr/{run.repository}")["rows"]
            found[run.repository.partition("/")[2]] = Story(run, row, commit)
    return found


@pytest.mark.parametrize("name", ["claims", "broken"])
def test_a_build_that_failed_is_a_failed_row_without_counts(stories: dict[str, Story], name: str) -> None:
    story = stories[name]
    assert (story.row["status"], story.row["conclusion"]) == ("completed", "failure")
    assert story.row["commit"] == story.commit
    assert not story.row["passed"]
    assert {job: result.result for job, result in story.run.jobs.items()} == {
        "receive": "success",
        "test": "failure",
        "report": "failure",
    }
    assert "evidence.json" not in story.documents()
    assert "journal.jsonl" not in story.documents()


def test_a_wheel_that_does_not_bear_the_commit_is_not_claimed_to(stories: dict[str, Story]) -> None:
    story = stories["claims"]
    failure = story.document("failure.json")
    assert (failure["stage"], failure["error"]) == ("build-pytorch", "WrongTorch")
    reason = f"torch.version.git_version is {BASE}, dispatched is {story.commit}"
    assert failure["seen"] == reason
    (shown,) = story.row["failed_tests"]
    assert shown["name"] == "build-pytorch"
    assert reason in shown["message"]
    assert "build.json" not in story.documents()


def test_a_backend_that_cannot_be_built_says_so_on_the_row(stories: dict[str, Story]) -> None:
    story = stories["broken"]
    failure = story.document("failure.json")
    assert (failure["stage"], failure["error"]) == ("build-backend", "CommandFailed")
    (shown,) = story.row["failed_tests"]
    assert shown["name"] == "build-backend"
    assert "pip wheel failed." in shown["message"]
    assert story.document("build.json")["torch"]["git_version"] == story.commit
    assert "build.log" in {path.name for path in story.run.artifacts.rglob("*")}


def test_the_traps_are_live(stories: dict[str, Story], planted: Planted) -> None:
    """Every one was loaded by some program of the job; otherwise the next test would prove nothing."""
    assert stories["planted"].run.jobs["test"].result == "success", stories["planted"].log[-3000:]
    for name in ("workspace-json", "workspace-sitecustomize", "environment-pth"):
        assert planted.caught(name), name


def test_nothing_planted_reaches_the_toolkit(stories: dict[str, Story], planted: Planted) -> None:
    caught = [path.read_text(encoding="utf-8") for path in planted.folder.iterdir()]
    assert [arguments for arguments in caught if "crcr.cli" in arguments] == []


def test_the_row_of_the_planted_job_is_a_success_all_the_same(stories: dict[str, Story]) -> None:
    """And its two steps uploaded their documents under two names, and handed the build over under a third."""
    story = stories["planted"]
    assert (story.row["conclusion"], story.row["passed"], story.row["total"]) == ("success", 1, 1)
    assert story.document("evidence.json")["torch_git_version"] == story.commit
    assert sorted(path.name for path in story.run.artifacts.iterdir()) == [
        "crcr-build-attempt-1",
        "crcr-evidence-test-1-attempt-1",
        "crcr-evidence-test-build-attempt-1",
    ]
