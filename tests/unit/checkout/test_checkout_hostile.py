"""A tree belongs to a stranger: nothing in it runs, and its bytes arrive as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from upstream_repository import UpstreamRepository, configured, quiet_environment

from backend_ci.checkout.fetch import changed_files, checkout, fetch


@pytest.fixture
def upstream(tmp_path: Path) -> UpstreamRepository:
    return UpstreamRepository(tmp_path / "upstream")


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that leaves a trace when it runs. It passes its input on, as a filter does."""
    path = tmp_path / "trap"
    path.write_text(f'#!/bin/sh\ntouch "{tmp_path}/sprung"\ncat\n')
    path.chmod(0o755)
    return path


def sprung(trap: Path) -> bool:
    return (trap.parent / "sprung").exists()


def test_the_trap_works(trap: Path, tmp_path: Path) -> None:
    mine = UpstreamRepository(tmp_path / "mine")
    mine.commit({".gitattributes": b"*.py filter=trap\n"})
    mine.git("config", "filter.trap.clean", str(trap))
    mine.commit({"file.py": b"1"})
    assert sprung(trap)


def test_hooks_of_the_users_template_do_not_run(
    upstream: UpstreamRepository, tmp_path: Path, trap: Path
) -> None:
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).symlink_to(trap)
    environment = quiet_environment(tmp_path, GIT_TEMPLATE_DIR=str(hooks.parent))
    checkout(upstream.url, upstream.commit({"file.py": b"1"}), tmp_path / "tree", environment, 60)
    assert (tmp_path / "tree" / ".git" / "hooks" / "post-checkout").exists()
    assert not sprung(trap)


@pytest.mark.parametrize(
    "setting", ["core.hooksPath", "core.fsmonitor", "filter.trap.smudge", "filter.trap.process"]
)
def test_programs_that_git_would_start_for_a_tree_do_not_run(
    upstream: UpstreamRepository, tmp_path: Path, trap: Path, setting: str
) -> None:
    """Such a setting may be the user's (git-lfs is): still no file of the fetched tree chooses to use it."""
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "post-checkout").symlink_to(trap)
    value = str(tmp_path / "hooks") if setting == "core.hooksPath" else str(trap)
    base = upstream.commit({"file.py": b"1"})
    commit = upstream.commit({".gitattributes": b"* filter=trap diff=trap\n", "file.py": b"2"})
    git = checkout(upstream.url, commit, tmp_path / "tree", configured(tmp_path, (setting, value)), 60)
    fetch(git, upstream.url, base, 60)
    changed_files(git, base, commit)
    assert not sprung(trap)


@pytest.mark.parametrize("setting", ["diff.external", "diff.trap.command", "diff.trap.textconv"])
def test_programs_that_git_would_start_to_compare_do_not_run(
    upstream: UpstreamRepository, tmp_path: Path, trap: Path, setting: str
) -> None:
    base = upstream.commit({".gitattributes": b"* diff=trap\n", "file.py": b"1"})
    commit = upstream.commit({"file.py": b"2"})
    git = checkout(upstream.url, commit, tmp_path / "tree", configured(tmp_path, (setting, str(trap))), 60)
    fetch(git, upstream.url, base, 60)
    assert [file.path for file in changed_files(git, base, commit)] == ["file.py"]
    assert not sprung(trap)


@pytest.mark.parametrize(
    "attributes",
    ["text eol=crlf", "ident", "working-tree-encoding=UTF-16", "text=auto eol=crlf", "export-subst"],
)
@pytest.mark.parametrize("settings", [(), (("core.autocrlf", "true"),)])
def test_a_file_arrives_as_the_bytes_that_were_committed(
    upstream: UpstreamRepository, tmp_path: Path, attributes: str, settings: tuple[tuple[str, str], ...]
) -> None:
    """The overlay compares these files with their blobs, and the tests run them."""
    content = b"# $Id$ $Format:%H$\nx = 1\n"
    upstream.commit({"torch/x.py": content})
    commit = upstream.commit({".gitattributes": f"*.py {attributes}\n".encode()})
    git = checkout(upstream.url, commit, tmp_path / "tree", configured(tmp_path, *settings), 60)
    assert (tmp_path / "tree" / "torch" / "x.py").read_bytes() == content
    assert git("status", "--porcelain").output == ""


def test_a_submodule_is_not_fetched(upstream: UpstreamRepository, tmp_path: Path, trap: Path) -> None:
    modules = f'[submodule "x"]\n\tpath = x\n\turl = ext::{trap}\n\tupdate = !{trap}\n'
    upstream.commit({".gitmodules": modules.encode()})
    upstream.submodule("x", "1" * 40)
    upstream.git("commit", "--quiet", "--message=submodule")
    environment = configured(tmp_path, ("submodule.recurse", "true"), ("fetch.recurseSubmodules", "true"))
    checkout(upstream.url, upstream.git("rev-parse", "HEAD"), tmp_path / "tree", environment, 60)
    assert list((tmp_path / "tree" / "x").iterdir()) == []
    assert not sprung(trap)
