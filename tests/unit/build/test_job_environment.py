"""`setup`, `unset-environment`, several backends, extra wheels: what the user changes about the job."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from build_job import Job
from small_torch import make_wheel

from backend_ci.job import JobOptions, prepared
from relay_client.documents.build import Build
from relay_client.documents.document import load
from relay_client.errors import CommandFailed, UsageError
from relay_client.runner.commands import Commands
from relay_client.runner.context import read_context


def after(folder: Path, setup: str, unset: tuple[str, ...] = (), **environment: str) -> Any:
    given = {"PATH": "/usr/bin:/bin", "HOME": "/root", "GITHUB_WORKSPACE": str(folder), **environment}
    context = read_context(given)
    log = io.StringIO()
    options = JobOptions(setup=setup or None, unset_environment=unset)
    return prepared(options, context, Commands(context, log)).environment, log.getvalue()


def test_what_the_script_sets_changes_and_unsets_is_seen_afterwards(tmp_path: Path) -> None:
    (tmp_path / "set_env.sh").write_text('export VENDOR_HOME="/opt/a b"\nexport LINES_="1\n2"\n')
    setup = ". ./set_env.sh\nexport PATH=/opt/bin:$PATH\nunset CI\necho hello"
    environment, log = after(tmp_path, setup, CI="true", KEPT="yes")
    assert environment["VENDOR_HOME"] == "/opt/a b"
    assert environment["LINES_"] == "1\n2"
    assert environment["PATH"].startswith("/opt/bin:")
    assert environment["KEPT"] == "yes"
    assert "CI" not in environment
    assert "hello" in log


def test_the_script_sees_no_credentials_and_the_runner_s_variables_stay(tmp_path: Path) -> None:
    setup = (
        'export SEEN="${ACTIONS_ID_TOKEN_REQUEST_TOKEN:-none} ${CRCR_GIT_TOKEN:-none} ${GITHUB_OUTPUT:-none}"'
    )
    environment, _ = after(
        tmp_path,
        setup,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN="secret",
        CRCR_GIT_TOKEN="secret",
        GITHUB_OUTPUT="/out",
    )
    assert environment["SEEN"] == "none none none"
    assert environment["GITHUB_OUTPUT"] == "/out"


def test_variables_can_be_taken_away(tmp_path: Path) -> None:
    environment, _ = after(tmp_path, "", ("CI", "NOT_THERE"), CI="true")
    assert "CI" not in environment
    with pytest.raises(UsageError):
        after(tmp_path, "", ("CI=1",))


@pytest.mark.parametrize(
    "setup", ["false", "exit 3", "source /nowhere/set_env.sh", "exit 0", "syntax ( error"]
)
def test_a_setup_that_fails_or_ends_the_shell_is_an_error(tmp_path: Path, setup: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        after(tmp_path, setup)
    assert caught.value.what == "setup failed."
    assert caught.value.fix


@pytest.fixture
def job(tmp_path: Path) -> Job:
    job = Job(tmp_path)
    job.with_torch()
    return job


def test_several_backends_are_built_in_order_after_extra_wheels(job: Job) -> None:
    for name in ("first", "second"):
        folder = job.workspace / name
        folder.mkdir()
        job.write_backend()
        for file in ("builder.py", "pyproject.toml"):
            text = (job.workspace / file).read_text()
            (folder / file).write_text(
                text.replace("torch_small", f"torch_{name}").replace("torch-small", f"torch-{name}")
            )
    make_wheel(job.wheels, "torchvision", "1.0", {"torchvision/__init__.py": "V = 1\n"})
    assert job.build_backend("--backend", "first\nsecond", "--extra-wheels", "torchvision==1.0") == 0
    backends = load(Build, job.run_dir).backends
    assert [Path(backend.source).name for backend in backends] == ["torchvision==1.0", "first", "second"]
    assert job.ask("import torchvision, torch_first, torch_second; print(torchvision.V)") == "1"
    kept = {path.name for path in (job.run_dir / "handover" / "wheels").iterdir()}
    assert kept == {f"{name}-1.0-py3-none-any.whl" for name in ("torchvision", "torch_first", "torch_second")}


def test_an_extra_wheel_that_is_nowhere(job: Job) -> None:
    job.write_backend()
    assert job.build_backend("--extra-wheels", "no-such-wheel==1") == 47


def test_setup_reaches_the_build(job: Job, tmp_path: Path) -> None:
    job.write_backend()
    command = f'echo "$VENDOR" > {tmp_path}/seen'
    assert job.build_backend("--setup", "export VENDOR=npu", "--backend-command", command) == 0
    assert (tmp_path / "seen").read_text() == "npu\n"
