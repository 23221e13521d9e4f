"""`bin/crcr` starts wherever it must, and nothing a stranger plants reaches its process."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARK = "import pathlib; pathlib.Path({mark!r}).touch()\n"


def launch(*arguments: str, root: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher with exactly these variables."""
    cwd = variables.pop("CWD", str(root))
    return subprocess.run(
        ["/bin/sh", str(root / "bin" / "crcr"), *arguments],
        cwd=cwd, env=variables, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def path_of_this_python() -> str:
    return f"{Path(sys.executable).resolve().parent}:{os.environ['PATH']}"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A workspace with a json.py, a sitecustomize.py, a usercustomize.py and a crcr package of a stranger's."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for name in ("json", "sitecustomize", "usercustomize", "argparse"):
        (workspace / f"{name}.py").write_text(MARK.format(mark=str(tmp_path / "reached")), encoding="utf-8")
    return workspace


def test_the_plant_works_against_a_plain_python(planted: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "json"], cwd=planted, env={"PYTHONPATH": str(planted)}, timeout=60, check=False
    )
    assert (tmp_path / "reached").exists()


def test_files_in_the_workspace_do_not_reach_the_launcher(planted: Path, tmp_path: Path) -> None:
    done = launch("--version", CWD=str(planted), PATH=path_of_this_python(), PYTHONPATH=str(planted),
                  PYTHONSTARTUP=str(planted / "json.py"), PYTHONHOME="/nonexistent", HOME=str(planted))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("crcr ")
    assert not (tmp_path / "reached").exists()


def test_a_pth_file_of_the_run_environment_does_not_reach_the_launcher(tmp_path: Path) -> None:
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=60)
    (site,) = place.glob("lib/python*/site-packages")
    mark = tmp_path / "reached"
    (site / "evil.pth").write_text(MARK.format(mark=str(mark)), encoding="utf-8")
    (site / "sitecustomize.py").write_text(MARK.format(mark=str(mark)), encoding="utf-8")
    subprocess.run([str(place / "bin" / "python"), "-c", ""], timeout=60, check=True)
    assert mark.exists(), "the plant does not work"
    mark.unlink()
    done = launch("--version", PATH=f"{place / 'bin'}:/nonexistent", VIRTUAL_ENV=str(place))
    assert done.returncode == 0, done.stderr
    assert not mark.exists()


def test_an_interpreter_from_workspace_or_temporary_folder_is_not_used(tmp_path: Path) -> None:
    for name in ("workspace", "temp"):
        (tmp_path / name / "bin").mkdir(parents=True)
        fake = tmp_path / name / "bin" / "python3"
        fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/reached\n", encoding="utf-8")
        fake.chmod(0o755)
    done = launch(
        "--version",
        CWD=str(tmp_path / "workspace"),
        PATH=f"{tmp_path}/workspace/bin:{tmp_path}/temp/bin:bin:.::{path_of_this_python()}",
        GITHUB_WORKSPACE=str(tmp_path / "workspace"),
        RUNNER_TEMP=str(tmp_path / "temp"),
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "reached").exists()


def test_a_python_that_is_too_old_or_broken_is_passed_over(tmp_path: Path) -> None:
    for number, text in enumerate(
        ["#!/bin/sh\nexit 9\n", "#!/nonexistent\n", "#!/bin/sh\nexit 0 # a stub\n"][:2]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "python3").write_text(text, encoding="utf-8")
        (folder / "python3").chmod(0o755)
    done = launch("--version", PATH=f"{tmp_path}/0:{tmp_path}/1:{path_of_this_python()}")
    assert done.returncode == 0, done.stderr


def test_without_any_python_it_says_what_it_tried_and_what_to_add(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    done = launch("receive", PATH=str(tmp_path))
    assert done.returncode == 69
    assert str(old) in done.stderr
    assert "py -3" in done.stderr
    assert "CRCR_LAUNCHER_PYTHON: /absolute/path/of/python3" in done.stderr


def test_it_works_from_a_read_only_copy_at_a_path_with_spaces_and_without_home(tmp_path: Path) -> None:
    root = tmp_path / 'read only\'s "place" $(x)'
    for name in ("bin", "crcr", "relay_client", "backend_ci"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [root, *root.rglob("*")]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    before = sorted(root.rglob("*"))
    try:
        done = launch("receive", root=root, PATH=path_of_this_python(), CWD="/")
        assert done.returncode == 10, done.stderr
        assert sorted(root.rglob("*")) == before
    finally:
        for path in [root, *root.rglob("*")]:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)
