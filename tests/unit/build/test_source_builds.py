"""Building PyTorch from source: exact, once, and whole or not at all. PyTorch is a few lines with a real PEP 517 backend."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from build_job import Job
from small_torch import make_wheel, torch_wheel

from backend_ci.build import source, store
from relay_client.documents.build import Build
from relay_client.documents.document import load
from relay_client.documents.manifest import Manifest
from relay_client.documents.receive import TRUST

ROOT = Path(__file__).resolve().parents[3]
# Builds a wheel that knows its commit, notes that it did, and does first what the file `mischief` says.
BUILDER = """
import os, pathlib, subprocess, sys, time
sys.path.insert(0, {helpers!r})
from small_torch import torch_wheel

def build_wheel(folder, config_settings=None, metadata_directory=None):
    with open({log!r}, "a") as file:
        file.write(f"{{os.getpid()}} jobs={{os.environ['MAX_JOBS']}} "
                   f"cmake={{os.environ['CMAKE_BUILD_PARALLEL_LEVEL']}} {{sys.prefix}}\\n")
    mischief = pathlib.Path({mischief!r})
    if mischief.exists():
        exec(mischief.read_text())
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    return torch_wheel(pathlib.Path(folder), commit, version="2.15.0a0").name
"""
PYPROJECT = """
[build-system]
requires = []
build-backend = "builder"
backend-path = ["."]
[project]
name = "torch"
version = "2.15.0a0"
"""


class SourceJob(Job):
    """A job whose checkout can be built. `builds` says how often it was."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.log, self.mischief_file = folder / "builds", folder / "mischief"
        builder = BUILDER.format(
            helpers=str(ROOT / "tests"), log=str(self.log), mischief=str(self.mischief_file)
        )
        self.commit = self.torch.commit(
            {"pyproject.toml": PYPROJECT.encode(), "builder.py": builder.encode()}
        )
        self.checked_out(self.commit)

    @property
    def builds(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def mischief(self, code: str) -> None:
        self.mischief_file.write_text(code)

    def build(self, *arguments: str) -> int:
        return self.build_pytorch("--provider", "source", "--build-disk-gigabytes", "0.001", *arguments)

    def end_builder(self) -> None:
        """End the build that outlived the `crcr` that started it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(self.builds[0].split()[0]), signal.SIGKILL)

    @property
    def document(self) -> Build:
        return load(Build, self.run_dir)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The same as a process of its own, with a run folder of its own."""
        run_dir = self.run_dir.parent / f"run-{time.monotonic_ns()}"
        run_dir.mkdir()
        (run_dir / "checkout.json").write_bytes((self.run_dir / "checkout.json").read_bytes())
        environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}
        return subprocess.Popen(
            [
                sys.executable, "-m", "crcr.cli", "build-pytorch", "--provider", "source", "--build-disk-gigabytes",
                "0.001", "--run-dir", str(run_dir), *arguments,
            ],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip


@pytest.fixture
def job(tmp_path: Path) -> SourceJob:
    return SourceJob(tmp_path)


def test_a_build_is_the_commit_and_its_manifest_says_of_what(job: SourceJob) -> None:
    assert job.build() == 0
    build = job.document
    assert (build.provider, build.reused, build.torch.git_version) == ("source", False, job.commit)
    assert build.manifest is not None
    assert build.manifest.recipe.commit == job.commit
    assert build.manifest.sha256 == build.wheel.sha256
    assert "build-environment" in job.builds[0]  # not the environment that the tests get
    assert not (job.run_dir / "build-environment").exists()
    assert job.ask("import torch; print(torch.version.git_version)") == job.commit


def test_the_same_commit_again_starts_no_build(job: SourceJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.build() == 0
    assert job.build() == 0
    assert len(job.builds) == 1
    assert job.document.reused
    assert "Reusing torch-2.15.0a0-py3-none-any.whl" in capsys.readouterr().out


def test_another_flag_is_another_build_and_the_log_says_which(
    job: SourceJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.build() == 0
    job.environment["USE_CUDA"] = "0"
    job.environment["MAX_JOBS"] = "3"  # changes how fast, not what
    assert job.build() == 0
    assert len(job.builds) == 2
    assert "flags USE_CUDA: absent, now 0" in capsys.readouterr().out
    job.environment["MAX_JOBS"] = "1"
    assert job.build() == 0
    assert len(job.builds) == 2


def test_other_build_requirements_are_another_build(
    job: SourceJob, capsys: pytest.CaptureFixture[str]
) -> None:
    make_wheel(job.wheels, "buildtool", "1.0", {"buildtool.py": ""})
    assert job.build() == 0
    assert job.build("--build-requirements", "buildtool") == 0
    assert len(job.builds) == 2
    assert "requirements buildtool: absent, now there" in capsys.readouterr().out


def test_the_interpreter_that_gets_torch_is_the_one_that_builds_it(job: SourceJob, tmp_path: Path) -> None:
    """Another Python than the tool's: a wheel for the tool's would not install."""
    calls, real = tmp_path / "calls", job.python
    job.python = tmp_path / "another-python"
    job.python.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {real} "$@"\n')
    job.python.chmod(0o755)
    assert job.build() == 0
    said = calls.read_text()
    assert "-m venv" in said
    assert "sys.implementation.cache_tag" in said


@pytest.mark.parametrize("damage", ["wheel", "manifest", "no wheel", "another wheel's name"])
def test_what_is_damaged_is_built_again(job: SourceJob, damage: str) -> None:
    assert job.build() == 0
    (place,) = [path for path in (job.run_dir / "built-wheels").iterdir() if path.is_dir()]
    wheel, manifest = next(place.glob("*.whl")), place / Manifest.FILE
    if damage == "wheel":
        wheel.write_bytes(wheel.read_bytes() + b"x")
    elif damage == "manifest":
        manifest.write_text(manifest.read_text()[:100])
    elif damage == "no wheel":
        wheel.unlink()
    else:
        value = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**value, "file": f"../{place.name}/{wheel.name}"}))
    assert job.build() == 0
    assert len(job.builds) == 2
    assert not job.document.reused


@pytest.mark.parametrize("trust", TRUST)
def test_a_pull_request_s_wheel_reaches_no_other_run(job: SourceJob, tmp_path: Path, trust: str) -> None:
    cache = tmp_path / "cache"
    assert job.build("--trust", trust, "--wheel-cache", str(cache)) == 0
    assert list(cache.rglob("*.whl")) == [] if trust == "pull-request" else list(cache.rglob("*.whl"))


def test_two_runs_at_the_same_time_build_once(job: SourceJob, tmp_path: Path) -> None:
    job.mischief("time.sleep(3)")
    shared = ("--trust", "landed", "--wheel-cache", str(tmp_path / "cache"))
    both = [job.start(*shared) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert len(job.builds) == 1
    assert sum("Reusing" in text for text in said) == 1
    assert sum(f"Waiting for the same wheel, which process {both[0].pid}" in text
               or f"Waiting for the same wheel, which process {both[1].pid}" in text for text in said) == 1  # fmt: skip


def test_a_builder_that_was_killed_leaves_no_half_wheel_and_blocks_nobody(
    job: SourceJob, tmp_path: Path
) -> None:
    job.mischief(
        "pathlib.Path(folder, 'torch-2.15.0a0-py3-none-any.whl').write_bytes(b'half'); time.sleep(600)"
    )
    shared = ("--trust", "landed", "--wheel-cache", str(tmp_path / "cache"))
    first = job.start(*shared)
    deadline = time.monotonic() + 60
    while not job.builds and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=30)
    job.mischief_file.unlink()
    job.end_builder()
    second = job.start(*shared)
    said, _ = second.communicate(timeout=120)
    assert second.returncode == 0, said
    assert len(job.builds) == 2
    assert "Reusing" not in said
    assert len(list((tmp_path / "cache").rglob("*.whl"))) == 1


@pytest.mark.parametrize(("age", "kept"), [(0, 2), (100_000, 1)])
def test_the_folder_of_wheels_keeps_its_size(
    job: SourceJob, tmp_path: Path, age: int, kept: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    shared = ("--trust", "landed", "--wheel-cache", str(cache), "--wheel-cache-gigabytes", "0.000001")
    assert job.build(*shared) == 0
    (old,) = [path for path in cache.iterdir() if path.is_dir()]
    os.utime(old, (time.time() - age, time.time() - age))
    job.environment["USE_CUDA"] = "0"
    assert job.build(*shared) == 0
    assert len(list(cache.rglob("*.whl"))) == kept
    assert old.exists() == (kept == 2)
    assert (f"Removed {old.name}" in capsys.readouterr().out) == (kept == 1)


def test_a_disk_that_fills_up_under_our_own_hands_is_told_and_leaves_no_wheel(
    job: SourceJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_paths: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_sync", full)
    assert job.build() == 46
    assert "The disk ran full." in capsys.readouterr().out
    assert list((job.run_dir / "built-wheels").rglob("*.whl")) == []


def test_waiting_has_an_end(job: SourceJob, tmp_path: Path) -> None:
    job.mischief("time.sleep(600)")
    shared = ("--trust", "landed", "--wheel-cache", str(tmp_path / "cache"))
    first = job.start(*shared)
    deadline = time.monotonic() + 60
    while not job.builds and time.monotonic() < deadline:
        time.sleep(0.05)
    second = job.start(*shared, "--build-timeout-minutes", "0.3")
    said, _ = second.communicate(timeout=120)
    first.kill()
    first.communicate(timeout=30)
    job.end_builder()
    assert second.returncode == 49, said
    assert f"process {first.pid} on" in said


def test_an_out_of_memory_kill_is_tried_once_more_with_half_the_jobs(
    job: SourceJob, capsys: pytest.CaptureFixture[str]
) -> None:
    job.mischief(
        "if os.environ['MAX_JOBS'] != '4':\n    pass\n"
        "else:\n    print('c++: fatal error: Killed signal terminated program cc1plus', flush=True); sys.exit(1)"
    )
    job.environment["MAX_JOBS"] = "8"
    job.mischief(job.mischief_file.read_text().replace("!= '4'", "!= '8'"))
    assert job.build() == 0
    assert ["jobs=8" in job.builds[0], "jobs=4" in job.builds[1]] == [True, True]
    assert "Trying once more with MAX_JOBS=4" in capsys.readouterr().out
    manifest = job.document.manifest
    assert manifest is not None
    assert manifest.jobs == 4


def test_a_build_that_the_kernel_ended_is_out_of_memory_whatever_its_tool_said(
    job: SourceJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`print` stands for a tool that hides the signal; the count of the control group for the kernel."""
    kills = iter((3, 4, 4, 4))
    monkeypatch.setattr(source, "memory_kills", lambda: next(kills))
    job.mischief("if os.environ['MAX_JOBS'] == '8': print('build stopped'); sys.exit(1)")
    job.environment.update(MAX_JOBS="8", CMAKE_BUILD_PARALLEL_LEVEL="16")
    assert job.build() == 0
    assert "jobs=4" in job.builds[1]
    assert "cmake=4" in job.builds[1]
    assert "the kernel ended 1 process(es)" in capsys.readouterr().out


FAULTS = {
    "killed twice": ("os.kill(os.getpid(), 9)", 45),
    "out of memory twice": (
        "print('fatal error: Killed signal terminated program cc1plus'); sys.exit(1)",
        45,
    ),
    "disk full": ("raise OSError(28, 'No space left on device')", 46),
    "does not compile": (
        "print('torch/csrc/x.cpp:3:1: error: no member named y', flush=True); sys.exit(1)",
        40,
    ),
    "makes no wheel": ("return 'torch-2.15.0a0-py3-none-any.whl'", 40),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_way_a_build_ends_has_its_own_code_and_leaves_nothing(
    job: SourceJob, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, expected = FAULTS[name]
    job.mischief(code)
    assert job.build() == expected
    said = capsys.readouterr().out
    assert "Fix: " in said
    assert 'Traceback (most recent call last):\n  File "/work' not in said
    assert list((job.run_dir / "built-wheels").rglob("*.whl")) == []
    job.mischief_file.unlink()
    assert job.build() == 0  # an interrupted build does not stand in the way


def test_a_build_of_another_commit_is_refused(job: SourceJob) -> None:
    """A wheel that says of itself that it is another commit, whoever built it."""
    job.mischief(
        "import small_torch; small_torch.VERSION_FILE = 'git_version = \"' + 'ab' * 20 + '\"\\n__version__ = \"2\"\\n'"
    )
    assert job.build() == 42


def test_a_requirement_that_nobody_can_meet(job: SourceJob) -> None:
    assert job.build("--build-requirements", "no-such-package-anywhere==1") == 47
    assert job.build("--requirements", "no-such-package-anywhere==1") == 47
    assert len(job.builds) == 1


def test_too_little_disk_is_said_before_anything_is_built(
    job: SourceJob, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.build("--build-disk-gigabytes", "900000") == 46
    assert job.builds == []
    assert "900000 GB needed" in capsys.readouterr().out


def test_free_disk_removes_nothing_of_a_machine_that_is_somebody_s(
    job: SourceJob, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.build("--free-disk", "true") == 0
    assert "this is none, nothing was removed" in capsys.readouterr().out


def test_a_command_of_one_s_own_builds_too(job: SourceJob) -> None:
    command = f'PYTHONPATH={ROOT}/tests "$PYTHON" -c "import builder, os; builder.build_wheel(os.environ[\'WHEELS\'])"'
    given = ("--provider", "command", "--build-disk-gigabytes", "0.001", "--build-command", command)
    assert job.build_pytorch(*given) == 0
    assert job.document.manifest is not None
    assert job.document.manifest.recipe.command == command
    assert job.build_pytorch(*given[:-2]) == 2


def test_auto_lays_python_over_a_wheel_and_builds_what_is_more(
    job: SourceJob, capsys: pytest.CaptureFixture[str]
) -> None:
    base = job.commit
    wheel = torch_wheel(job.wheels, base)
    python = job.torch.commit({"torch/random.py": b"SEED = 2\n"})
    job.commit = base
    job.checked_out(python)
    auto = ("--provider", "auto", "--build-disk-gigabytes", "0.001")
    assert job.build_pytorch(*auto, wheel=str(wheel)) == 0
    assert (job.document.provider, job.builds) == ("overlay", [])
    assert "the change is 1 Python file(s)" in capsys.readouterr().out
    native = job.torch.commit({"torch/csrc/x.cpp": b"int x;\n"})
    job.checked_out(native)
    assert job.build_pytorch(*auto, wheel=str(wheel)) == 0
    assert (job.document.provider, len(job.builds)) == ("source", 1)
    assert "torch/csrc/x.cpp" in capsys.readouterr().out


def test_auto_builds_when_the_wheel_is_not_of_the_merge_base(
    job: SourceJob, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = torch_wheel(job.wheels, job.commit, files={"torch/random.py": "SEED = 'another base'\n"})
    change = job.torch.commit({"torchgen/model.py": b"x = 1\n"})
    job.checked_out(change)
    assert job.build_pytorch("--provider", "auto", "--build-disk-gigabytes", "0.001", wheel=str(wheel)) == 0
    assert job.document.provider == "source"
    assert (
        "PyTorch comes by source: The wheel is not a build of this commit's base" in capsys.readouterr().out
    )
