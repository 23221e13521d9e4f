"""A pull request's Python over the wheel of its base: exact afterwards, or refused."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from installed_torch import BASE_FILES, NOT_INSTALLED, VERSION, SmallTorch

from backend_ci.build.overlay import blob_id, lay_over
from relay_client.errors import CheckoutError, NotOverlayable, WrongTorch


@pytest.fixture
def torch(tmp_path: Path) -> SmallTorch:
    return SmallTorch(tmp_path)


@pytest.mark.parametrize("data", [b"", b"x = 1\n", b"\r\n", bytes(range(256)) * 9, "ünï".encode()])
def test_a_blob_id_is_what_git_says(torch: SmallTorch, data: bytes) -> None:
    (torch.repository / "blob").write_bytes(data)
    assert blob_id(data) == torch.git("hash-object", "--no-filters", "blob")


def test_afterwards_every_python_file_equals_the_commit(torch: SmallTorch) -> None:
    commit = torch.commit(
        {
            "torch/random.py": b"SEED = 2\r\n\xff",
            "torch/gone.py": None,
            "torch/new/deep.py": b"new = True\n",
            "torchgen/model.py": b"class Model: ...\n",
            "torch/not_in_the_wheel.py": b"changed too\n",
            "test/test_torch.py": b"changed\n",
        }
    )
    overlay = lay_over(torch.checkout(commit), torch.runner(), torch.site)
    assert overlay.base_git_version == torch.base
    assert overlay.laid == (
        "torch/new/deep.py", "torch/not_in_the_wheel.py", "torch/random.py", "torchgen/model.py",
    )  # fmt: skip
    assert overlay.removed == ("torch/gone.py",)
    tracked = [path.relative_to(torch.repository) for path in torch.repository.rglob("*.py")]
    tracked = [path for path in tracked if str(path) not in ("setup.py", "test/test_torch.py")]
    assert overlay.files_compared == len(tracked) == 6
    for path in tracked:
        assert (torch.site / path).read_bytes() == (torch.repository / path).read_bytes(), path
    assert not (torch.site / "torch" / "gone.py").exists()
    assert not (torch.site / "test").exists()


def test_the_version_names_the_commit_and_nothing_else_of_it_changes(torch: SmallTorch) -> None:
    commit = torch.commit({"torch/random.py": b"SEED = 2\n"})
    lay_over(torch.checkout(commit), torch.runner(), torch.site)
    assert (torch.site / "torch" / "version.py").read_text() == VERSION.format(commit)


def test_a_commit_without_changes_is_compared_and_stamped(torch: SmallTorch) -> None:
    commit = torch.commit({"README.md": b"new\n"})
    overlay = lay_over(torch.checkout(commit), torch.runner(), torch.site)
    assert (overlay.laid, overlay.removed) == ((), ())
    assert overlay.files_compared == len(BASE_FILES) - len(NOT_INSTALLED)
    assert commit in (torch.site / "torch" / "version.py").read_text()


def test_bytecode_of_an_old_file_of_the_same_size_and_time_is_not_used(torch: SmallTorch) -> None:
    """Python trusts bytecode whose source has the noted size and whole second."""
    command = [
        sys.executable,
        "-c",
        "import torch, torch.random as r; print(r.SEED, torch.version.git_version)",
    ]
    environment = {**os.environ, "PYTHONPATH": str(torch.site), "PYTHONDONTWRITEBYTECODE": ""}
    installed, version = torch.site / "torch" / "random.py", torch.site / "torch" / "version.py"
    times = [(path, path.stat().st_mtime) for path in (installed, version)]
    before = subprocess.check_output(command, env=environment, text=True)
    assert before == f"1 {torch.base}\n"
    assert list((torch.site / "torch" / "__pycache__").glob("random.*.pyc"))
    commit = torch.commit({"torch/random.py": b"SEED = 2\n", "torch/gone.py": None})
    lay_over(torch.checkout(commit), torch.runner(), torch.site)
    for path, seconds in times:
        os.utime(path, (seconds, seconds))
    assert subprocess.check_output(command, env=environment, text=True) == f"2 {commit}\n"


def test_a_deleted_file_is_not_imported_from_its_bytecode(torch: SmallTorch) -> None:
    cached = torch.install("torch/__pycache__/gone.cpython-311.pyc", b"bytecode")
    other = torch.install("torch/__pycache__/gone_too.cpython-311.pyc", b"bytecode")
    lay_over(torch.checkout(torch.commit({"torch/gone.py": None})), torch.runner(), torch.site)
    assert not cached.exists()
    assert other.exists()


def test_deleting_what_the_wheel_left_out_is_no_error(torch: SmallTorch) -> None:
    commit = torch.commit({"torch/not_in_the_wheel.py": None})
    assert lay_over(torch.checkout(commit), torch.runner(), torch.site).removed == (
        "torch/not_in_the_wheel.py",
    )


def test_a_wheel_of_another_base_is_refused_and_the_file_is_named(torch: SmallTorch) -> None:
    torch.install("torchgen/model.py", b"# of another day\n")
    commit = torch.commit({"torch/random.py": b"SEED = 2\n"})
    with pytest.raises(WrongTorch, match="not a build of this commit's base") as caught:
        lay_over(torch.checkout(commit), torch.runner(), torch.site)
    assert "torchgen/model.py" in caught.value.seen
    assert "torch-wheel" in caught.value.fix
    assert torch.base in (torch.site / "torch" / "version.py").read_text(), (
        "a refused wheel must not be stamped"
    )


def test_a_base_that_hides_a_change_is_found_out(torch: SmallTorch) -> None:
    """`changed_files` comes from a document that lay on a machine with strangers."""
    commit = torch.commit({"torch/random.py": b"SEED = 2\n", "torchgen/model.py": b"evil = 1\n"})
    document = torch.checkout(commit)
    hidden = tuple(file for file in document.changed_files or () if file.path != "torchgen/model.py")
    with pytest.raises(WrongTorch) as caught:
        lay_over(replace(document, changed_files=hidden), torch.runner(), torch.site)
    assert "torchgen/model.py" in caught.value.seen


def test_a_working_tree_that_is_not_the_commit_is_found_out(torch: SmallTorch) -> None:
    commit = torch.commit({"torch/random.py": b"SEED = 2\n"})
    (torch.repository / "torch" / "random.py").write_bytes(b"SEED = 3\n")
    with pytest.raises(WrongTorch) as caught:
        lay_over(torch.checkout(commit), torch.runner(), torch.site)
    assert "torch/random.py" in caught.value.seen


def test_a_python_file_that_is_a_link_is_refused(torch: SmallTorch) -> None:
    (torch.repository / "torch" / "link.py").symlink_to("random.py")
    commit = torch.commit({"torch/random.py": b"SEED = 2\n"})
    torch.git("add", "torch/link.py")
    commit = torch.commit({})
    with pytest.raises(NotOverlayable) as caught:
        lay_over(torch.checkout(commit), torch.runner(), torch.site)
    assert "torch/link.py" in caught.value.seen


def test_a_file_that_became_a_link_is_refused(torch: SmallTorch) -> None:
    (torch.repository / "torch" / "random.py").unlink()
    (torch.repository / "torch" / "random.py").symlink_to("gone.py")
    torch.git("add", "torch/random.py")
    with pytest.raises(NotOverlayable) as caught:
        lay_over(torch.checkout(torch.commit({})), torch.runner(), torch.site)
    assert caught.value.seen == "T torch/random.py"


def test_a_name_that_is_not_utf_8_is_refused(torch: SmallTorch) -> None:
    name = os.fsdecode(b"torch/\xff.py")
    commit = torch.commit({name: b"x = 1\n"})
    with pytest.raises(NotOverlayable):
        lay_over(torch.checkout(commit), torch.runner(), torch.site)


def test_without_a_base_nothing_is_laid(torch: SmallTorch) -> None:
    document = replace(torch.checkout(torch.commit({})), changed_files=None)
    with pytest.raises(NotOverlayable) as caught:
        lay_over(document, torch.runner(), torch.site)
    assert "base-commit: ${{ needs.receive.outputs.base-commit }}" in caught.value.fix


def test_a_wheel_of_something_else_is_refused(torch: SmallTorch, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "torch").mkdir(parents=True)
    (other / "torch" / "version.py").write_text(VERSION.format(torch.base))
    with pytest.raises(WrongTorch, match="no Python file in common"):
        lay_over(torch.checkout(torch.commit({})), torch.runner(), other)


def test_an_environment_without_torch_is_refused(torch: SmallTorch, tmp_path: Path) -> None:
    with pytest.raises(WrongTorch, match=r"torch/version\.py"):
        lay_over(torch.checkout(torch.commit({})), torch.runner(), tmp_path / "empty")


@pytest.mark.parametrize("text", ["", "git_version = 'a'\ngit_version = 'b'\n", "GIT = 'a'\n"])
def test_a_version_file_of_unknown_form_is_refused(torch: SmallTorch, text: str) -> None:
    torch.install("torch/version.py", text.encode())
    with pytest.raises(WrongTorch, match="unknown form"):
        lay_over(torch.checkout(torch.commit({})), torch.runner(), torch.site)


def test_a_checkout_that_is_gone_is_a_checkout_error(torch: SmallTorch) -> None:
    document = torch.checkout(torch.commit({}))
    git = torch.runner()
    (torch.repository / ".git" / "HEAD").unlink()
    with pytest.raises(CheckoutError, match="cannot be read"):
        lay_over(document, git, torch.site)
