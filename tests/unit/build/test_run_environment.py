"""The run's own environment: what may reach it, what it is asked, and how an answer is read."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from backend_ci.build.environment import (
    RunEnvironment,
    describe_wheel,
    last_error,
    make_environment,
    require_commit,
    the_wheel,
)
from relay_client.documents.build import Torch
from relay_client.errors import CommandFailed, UsageError, WheelNotFound, WrongTorch
from relay_client.runner.commands import Commands
from relay_client.runner.context import read_context
from relay_client.runner.process import Completed

COMMIT = "5f" * 20
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
CREDENTIALS = {
    "ACTIONS_ID_TOKEN_REQUEST_URL": "hunter2",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "hunter2",
    "ACTIONS_RUNTIME_TOKEN": "hunter2",
    "ACTIONS_CACHE_URL": "hunter2",
    "GITHUB_TOKEN": "hunter2",
    "GH_TOKEN": "hunter2",
    "GITHUB_OUTPUT": "hunter2",
    "GITHUB_ENV": "hunter2",
    "GITHUB_PATH": "hunter2",
    "GITHUB_STATE": "hunter2",
    "GITHUB_STEP_SUMMARY": "hunter2",
    "CRCR_NEEDS": "hunter2",
    "INPUT_TOKEN": "hunter2",
}


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def environment(tmp_path: Path, log: io.StringIO) -> RunEnvironment:
    variables = {
        "PATH": os.environ["PATH"],
        "CC": "gcc-12",
        "PIP_INDEX_URL": "https://mirror.invalid",
        **CREDENTIALS,
    }
    return RunEnvironment(
        Path(sys.executable), tmp_path, variables, Commands(read_context({}), log), deadline_seconds=60
    )


def executable(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("quiet", [True, False])
def test_no_credential_and_no_runner_file_reaches_a_foreign_command(
    environment: RunEnvironment, quiet: bool
) -> None:
    done = environment.run([sys.executable, "-c", SHOW], quiet=quiet, extra={"CFLAGS": "-O1"})
    seen = json.loads(done.tail[-1])
    assert "hunter2" not in seen.values()
    assert (seen["CC"], seen["CFLAGS"]) == ("gcc-12", "-O1")
    assert seen["PIP_INDEX_URL"] == "https://mirror.invalid"
    assert seen["PIP_NO_INPUT"] == "1"


@pytest.fixture(params=["the tool's pip", "its own pip"])
def pip_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    served = request.param == "the tool's pip"
    monkeypatch.setattr("backend_ci.build.environment._tool_pip_serves_others", lambda _: served)


@pytest.mark.usefixtures("pip_of")
def test_pip_gets_no_credential_either(environment: RunEnvironment, tmp_path: Path, log: io.StringIO) -> None:
    python = executable(tmp_path / "python", 'echo "$@"; env')
    replace(environment, interpreter=python).pip("install", "x", extra={"MORE": "1"})
    assert " install x\n" in log.getvalue()
    assert "MORE=1\n" in log.getvalue()
    assert "hunter2" not in log.getvalue()


def test_output_is_shown_and_kept_in_a_log(
    environment: RunEnvironment, tmp_path: Path, log: io.StringIO
) -> None:
    environment.run(["echo", "compiling ..."])
    environment.run(["echo", "in silence"], quiet=True)
    assert log.getvalue() == (tmp_path / "build.log").read_text() == "compiling ...\n"


def test_a_command_runs_away_from_every_checkout(environment: RunEnvironment, tmp_path: Path) -> None:
    assert environment.run(["pwd"], quiet=True).tail == (str(tmp_path),)
    assert environment.run(["pwd"], quiet=True, cwd=Path("/")).tail == ("/",)


@pytest.mark.usefixtures("pip_of")
def test_a_failed_pip_says_its_last_error(environment: RunEnvironment, tmp_path: Path) -> None:
    text = 'echo "ERROR: torch-99.whl is not a valid wheel filename"; echo "[notice] a new pip"; exit 1'
    python = executable(tmp_path / "python", text)
    with pytest.raises(CommandFailed, match="pip install failed") as caught:
        replace(environment, interpreter=python).pip("install", "torch==99")
    assert caught.value.seen == "exit code 1: ERROR: torch-99.whl is not a valid wheel filename"


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ((), "no output"),
        (("", "  "), "no output"),
        (("first", "last"), "last"),
        (("a.cpp:3: error: no type named X", "ninja: stopped", ""), "a.cpp:3: error: no type named X"),
        (("ERROR: one", "Error: two", "done"), "Error: two"),
        (("error " + "x" * 999,), "error " + "x" * 494),
    ],
)
def test_the_last_line_that_speaks_of_an_error_explains_a_failure(
    tail: tuple[str, ...], expected: str
) -> None:
    assert last_error(Completed(1, 0.0, tail)) == expected


def test_torch_is_asked_by_itself_and_without_the_backend(
    environment: RunEnvironment, tmp_path: Path
) -> None:
    answer = json.dumps({"version": "2.0", "git_version": COMMIT, "location": "/site/torch"})
    python = executable(
        tmp_path / "python",
        f"echo \"$1 $TORCH_DEVICE_BACKEND_AUTOLOAD\" > asked; echo a banner; echo '{answer}'",
    )
    assert replace(environment, interpreter=python).torch() == Torch("2.0", COMMIT, "/site/torch")
    assert (tmp_path / "asked").read_text() == "-I 0\n"


@pytest.mark.parametrize(
    "script",
    [
        "exit 1",
        "true",
        "echo nonsense",
        "echo '[]'",
        """echo '{"version": "2.0", "location": "/x"}'""",
        """echo '{"version": "2.0", "git_version": "x", "location": "/x"}'; exit 1""",
        "echo 'ImportError: libcudart.so.12: cannot open shared object file'; exit 1",
    ],
)
def test_a_torch_that_gives_no_sound_answer_is_refused(
    environment: RunEnvironment, tmp_path: Path, script: str
) -> None:
    python = executable(tmp_path / "python", script)
    with pytest.raises(WrongTorch, match="cannot be imported"):
        replace(environment, interpreter=python).torch()


def test_the_interpreter_of_this_test_has_no_torch(environment: RunEnvironment) -> None:
    with pytest.raises(WrongTorch) as caught:
        environment.torch()
    assert "No module named 'torch'" in caught.value.seen


def test_an_interpreter_that_does_not_run_is_named(environment: RunEnvironment, tmp_path: Path) -> None:
    python = executable(tmp_path / "python", "exit 3")
    with pytest.raises(CommandFailed) as caught:
        replace(environment, interpreter=python).platlib()
    assert str(python) in caught.value.seen


@pytest.mark.parametrize("commit", ["0b" * 20, COMMIT[:12], "Unknown", "", COMMIT.upper()])
def test_a_torch_of_another_commit_is_refused_and_both_are_shown(commit: str) -> None:
    with pytest.raises(WrongTorch) as caught:
        require_commit(Torch("2.0", commit, "/x"), COMMIT, "torch-wheel: another")
    assert caught.value.seen == f"torch.version.git_version is {commit}, dispatched is {COMMIT}"
    assert caught.value.fix == "torch-wheel: another"
    assert caught.value.exit_code == 42


def test_a_torch_of_the_commit_is_accepted() -> None:
    require_commit(Torch("2.0", COMMIT, "/x"), COMMIT, "")


@pytest.mark.parametrize(
    ("pattern", "files", "expected"),
    [
        ("torch-*.whl", ("torch-1.whl", "other-1.whl"), "torch-1.whl"),
        ("torch-1.whl", ("torch-1.whl", "torch-2.whl"), "torch-1.whl"),
        ("*/torch-*.whl", ("dist/torch-1.whl",), "dist/torch-1.whl"),
        ("torch-*.whl", (), None),
        ("torch-*.whl", ("torch-1.whl", "torch-2.whl"), None),
        ("other.whl", ("torch-1.whl",), None),
        ("dist/**.whl", ("dist/torch-1.whl",), "dist/torch-1.whl"),
    ],
)
@pytest.mark.parametrize("absolute", [False, True])
def test_a_pattern_must_name_one_wheel(
    tmp_path: Path, pattern: str, files: tuple[str, ...], expected: Optional[str], absolute: bool
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    asked = str(tmp_path / pattern) if absolute else pattern
    if expected is not None:
        assert the_wheel(tmp_path, asked) == tmp_path / expected
        return
    with pytest.raises(WheelNotFound) as caught:
        the_wheel(tmp_path, asked)
    assert asked in caught.value.seen
    assert all(name in caught.value.seen for name in files if "torch" in pattern)
    assert caught.value.exit_code == 41


def test_a_wheel_is_described_by_its_digest(tmp_path: Path) -> None:
    content = os.urandom(3 << 20)
    (tmp_path / "a.whl").write_bytes(content)
    wheel = describe_wheel(tmp_path / "a.whl")
    assert (wheel.file, wheel.sha256) == ("a.whl", hashlib.sha256(content).hexdigest())


def test_an_interpreter_of_the_users_is_taken_as_it_is(tmp_path: Path) -> None:
    commands = Commands(read_context({}), io.StringIO())
    made = make_environment(tmp_path / "run", Path(sys.executable), {}, commands, 60)
    assert made.interpreter == Path(sys.executable)
    assert list((tmp_path / "run").iterdir()) == []


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        make_environment(tmp_path, tmp_path / "python", {}, Commands(read_context({}), io.StringIO()), 60)
    assert str(tmp_path / "python") in caught.value.seen


def test_the_environment_that_runs_this_tool_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "environment"
    (place / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "executable", str(place / "bin" / "python"))
    with pytest.raises(UsageError, match="lies in the environment") as caught:
        make_environment(tmp_path, None, {}, Commands(read_context({})), 60)
    assert "CRCR_LAUNCHER_PYTHON" in caught.value.fix
    assert place.is_dir()
