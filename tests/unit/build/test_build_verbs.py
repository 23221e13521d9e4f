"""`crcr build-pytorch` and `crcr build-backend` with a PyTorch of a few lines, real pip and no network."""

from __future__ import annotations

from pathlib import Path

import pytest
from build_job import Job
from small_torch import make_wheel, torch_wheel

from backend_ci.build import backend as backend_verb
from backend_ci.build import pytorch
from relay_client.documents.build import Build
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import load


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_the_wheel_provider_takes_a_wheel_of_the_commit(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.checked_out(job.commit)
    assert job.build_pytorch("--provider=wheel", wheel=str(job.wheels / "torch-*.whl")) == 0
    build = load(Build, job.run_dir)
    assert (build.provider, build.commit, build.torch.git_version) == ("wheel", job.commit, job.commit)
    assert (build.wheel.file, build.overlay, build.backends) == (job.wheel.name, None, ())
    assert build.interpreter == str(job.python)
    said = capsys.readouterr().out.splitlines()
    assert {f"python={job.python}", "torch-version=2.0"} <= set(said)
    assert {"provider=wheel", "reused=false"} <= set(said)
    assert set(pytorch.OUTPUTS) == {"python", "torch-version", "provider", "reused"}


def test_the_wheel_provider_refuses_a_wheel_of_another_commit(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    job.checked_out(job.commit)
    torch_wheel(job.wheels, "0b" * 20)
    assert job.build_pytorch("--provider=wheel", wheel="torch==2.0") == 42
    said = capsys.readouterr().out
    assert f"torch.version.git_version is {'0b' * 20}, dispatched is {job.commit}" in said
    assert not (job.run_dir / Build.FILE).exists()


def test_the_overlay_makes_torch_the_commit_whatever_an_earlier_run_left(job: Job) -> None:
    """The interpreter outlives the run: it holds the torch of a run before, with that commit's files."""
    site = job.with_torch()
    (site / "torch" / "random.py").write_text("SEED = 'of the run before'\n")
    (site / "torch" / "added.py").write_text("")
    commit = job.torch.commit({"torchgen/__init__.py": b"x = 1\n", "torch/new.py": b""})
    job.checked_out(commit)
    assert job.build_pytorch() == 0
    build = load(Build, job.run_dir)
    assert build.torch.git_version == commit
    assert build.overlay is not None
    assert build.overlay.base_git_version == job.commit
    assert build.overlay.laid == ("torch/new.py", "torchgen/__init__.py")
    assert job.ask("import torch.random as r, torch.new, torchgen; print(r.SEED, torchgen.x)") == "1 1"
    assert job.ask("import importlib.util as u; print(u.find_spec('torch.added'))") == "None"


def test_a_wheel_that_is_not_there_is_pips_answer(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.checked_out(job.commit)
    assert job.build_pytorch(wheel="torch==99") == 47
    said = capsys.readouterr().out
    assert "pip download failed: No set of packages" in said
    assert "No matching distribution found for torch==99" in said


def test_without_a_checkout_the_stage_before_is_named(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.build_pytorch() == 9
    assert f"{Checkout.FILE} is missing." in capsys.readouterr().out


def test_a_backend_is_built_against_the_torch_of_the_run_and_not_loaded_meanwhile(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    job.with_torch()
    job.write_backend()
    assert job.build_backend() == 0
    (backend,) = load(Build, job.run_dir).backends
    assert backend.source == str(job.workspace)
    assert backend.wheel is not None
    assert backend.wheel.file == "torch_small-1.0-py3-none-any.whl"
    assert f"python={job.python}" in capsys.readouterr().out.splitlines()
    assert set(backend_verb.OUTPUTS) == {"python"}
    assert job.ask("import torch_small as t; print(t.GIT, t.AUTOLOAD)") == f"{job.commit} 0"


@pytest.mark.parametrize(
    ("command", "exit_code", "said"),
    [
        ("{python} -c 'import torch'; echo 1 > done", 0, "torch is still {commit}"),
        ("echo 'error: no compiler'\nfalse\necho done", 40, "exit code 1: error: no compiler"),
        ("sed -i s/{commit}/{other}/ {site}/torch/version.py", 42, "it must not install another torch"),
        ("rm -r {site}/torch", 42, "The installed torch cannot be imported."),
    ],
)
def test_a_backend_command_may_do_anything_but_change_torch(
    job: Job, command: str, exit_code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"python": '"$PYTHON"', "site": job.with_torch(), "commit": job.commit, "other": "0b" * 20}
    assert job.build_backend("--backend-command", command.format(**words)) == exit_code
    assert said.format(**words) in capsys.readouterr().out
    assert (job.workspace / "done").exists() == (exit_code == 0)
    assert len(load(Build, job.run_dir).backends) == (exit_code == 0)


def test_a_backend_that_cannot_be_built_says_so(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.with_torch()
    (job.workspace / "pyproject.toml").write_text("[project\n")
    assert job.build_backend() == 40
    assert "pip wheel failed." in capsys.readouterr().out
    assert load(Build, job.run_dir).backends == ()


def test_a_folder_that_is_not_there_is_named(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.with_torch()
    assert job.build_backend("--backend", "sources/nowhere") == 2
    assert f"no folder {job.workspace / 'sources' / 'nowhere'}" in capsys.readouterr().out


def test_a_new_environment_holds_only_what_was_asked_for(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    job.checked_out(job.commit)
    make_wheel(job.wheels, "expect", "1.0", {"expect.py": "VALUE = 3\n"})
    given = ["--provider=wheel", "--torch-wheel=torch==2.0", "--requirements=expect"]
    assert job.crcr("build-pytorch", *given) == 0
    job.python = Path(load(Build, job.run_dir).interpreter)
    assert job.python == job.run_dir / "environment" / "bin" / "python"
    assert (
        job.ask("import expect, sys; print(expect.VALUE, sys.prefix)") == f"3 {job.run_dir / 'environment'}"
    )
    names = "import importlib.metadata as m; print(sorted({d.metadata['Name'] for d in m.distributions()}))"
    assert {"expect", "torch"} <= set(eval(job.ask(names))) <= {"expect", "torch", "pip", "setuptools"}
    assert "torch 2.0 at" in capsys.readouterr().out


def test_what_a_backend_needs_and_does_not_have_is_told_and_torch_is_left_alone(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    job.with_torch()
    job.write_backend()
    requires = ["torch~=2.13.0", "no-such-package>=3", "pip>=1", "torchvision==0.28.0"]
    builder = job.workspace / "builder.py"
    builder.write_text(
        builder.read_text().replace('{"torch_small.py": seen}', f'{{"torch_small.py": seen}}, {requires}')
    )
    assert job.build_backend() == 0
    said = capsys.readouterr().out
    assert "asks for torch~=2.13.0; under test is torch 2.0." in said
    assert "requirements: add a line `no-such-package`" in said
    assert "requirements: add a line `torchvision`" in said
    assert "pip>=1" not in said
    assert "add a line `pip`" not in said
    assert job.ask("import torch; print(torch.__version__)") == "2.0"
