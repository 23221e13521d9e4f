"""What differs between a commit and its base: every path, whatever its name and whatever the tree says."""

from __future__ import annotations

from pathlib import Path

import pytest
from upstream_repository import UpstreamRepository, configured, quiet_environment

from backend_ci.checkout.fetch import changed_files, checkout, fetch
from relay_client.documents.checkout import ChangedFile
from relay_client.errors import CheckoutError


@pytest.fixture
def upstream(tmp_path: Path) -> UpstreamRepository:
    return UpstreamRepository(tmp_path / "upstream")


def changed(
    upstream: UpstreamRepository, base: str, commit: str, folder: Path, *settings: tuple[str, str]
) -> list[tuple[str, str]]:
    git = checkout(upstream.url, commit, folder / "tree", configured(folder, *settings), 60)
    fetch(git, upstream.url, base, 60)
    return sorted((file.change, file.path) for file in changed_files(git, base, commit))


def test_added_changed_deleted_and_retyped_files_are_told_apart(
    upstream: UpstreamRepository, tmp_path: Path
) -> None:
    files = {name: name.encode() * 50 for name in ("same.py", "changed.py", "deleted.py", "retyped.py")}
    base = upstream.commit(files)
    (upstream.path / "retyped.py").unlink()
    (upstream.path / "retyped.py").symlink_to("same.py")
    upstream.git("add", "retyped.py")
    commit = upstream.commit({"added.py": b"new", "changed.py": b"other", "deleted.py": None})
    assert changed(upstream, base, commit, tmp_path) == [
        ("A", "added.py"),
        ("D", "deleted.py"),
        ("M", "changed.py"),
        ("T", "retyped.py"),
    ]


def test_a_moved_file_is_one_deleted_and_one_added(upstream: UpstreamRepository, tmp_path: Path) -> None:
    base = upstream.commit({"old.py": b"content\n" * 50})
    commit = upstream.commit({"old.py": None, "new.py": b"content\n" * 50})
    renames = ("diff.renames", "copies")
    assert changed(upstream, base, commit, tmp_path, renames) == [("A", "new.py"), ("D", "old.py")]


@pytest.mark.parametrize(
    "name",
    ["with space.py", "new\nline.py", "tab\tbed.py", 'quo"te.py', "ünïcødé-火.py", "-rf.py", "a -> b.py"],
)
def test_a_name_is_read_exactly(upstream: UpstreamRepository, tmp_path: Path, name: str) -> None:
    base = upstream.commit({"torch/__init__.py": b""})
    commit = upstream.commit({f"torch/{name}": b"1", "after.py": b"1"})
    assert changed(upstream, base, commit, tmp_path) == [("A", "after.py"), ("A", f"torch/{name}")]


def test_the_mode_of_a_file_alone_is_a_change(upstream: UpstreamRepository, tmp_path: Path) -> None:
    base = upstream.commit({"file.py": b"1"})
    upstream.git("update-index", "--chmod=+x", "file.py")
    upstream.git("commit", "--quiet", "--message=mode")
    assert changed(upstream, base, upstream.git("rev-parse", "HEAD"), tmp_path) == [("M", "file.py")]


@pytest.mark.parametrize("settings", [(), (("diff.ignoreSubmodules", "all"),)])
def test_a_submodule_that_the_tree_wants_ignored_is_a_change_all_the_same(
    upstream: UpstreamRepository, tmp_path: Path, settings: tuple[tuple[str, str], ...]
) -> None:
    ignored = b'[submodule "x"]\n\tpath = third_party/x\n\turl = ../x\n\tignore = all\n'
    upstream.commit({".gitmodules": ignored})
    for pointer in ("1" * 40, "2" * 40):
        upstream.submodule("third_party/x", pointer)
        upstream.git("commit", "--quiet", "--message=submodule")
    base, commit = upstream.git("rev-parse", "HEAD~1"), upstream.git("rev-parse", "HEAD")
    assert changed(upstream, base, commit, tmp_path, *settings) == [("M", "third_party/x")]


def test_a_commit_has_not_changed_against_itself(upstream: UpstreamRepository, tmp_path: Path) -> None:
    commit = upstream.commit({"file.py": b"1"})
    assert changed(upstream, commit, commit, tmp_path) == []


def test_a_base_that_was_not_fetched_is_an_error(upstream: UpstreamRepository, tmp_path: Path) -> None:
    base = upstream.commit({"file.py": b"1"})
    commit = upstream.commit({"file.py": b"2"})
    git = checkout(upstream.url, commit, tmp_path / "tree", quiet_environment(tmp_path), 60)
    with pytest.raises(CheckoutError, match="compare"):
        changed_files(git, base, commit)


def test_a_change_is_a_letter_the_document_knows(upstream: UpstreamRepository, tmp_path: Path) -> None:
    base = upstream.commit({"file.py": b"1"})
    commit = upstream.commit({"file.py": None})
    git = checkout(upstream.url, commit, tmp_path / "tree", quiet_environment(tmp_path), 60)
    fetch(git, upstream.url, base, 60)
    assert changed_files(git, base, commit) == (ChangedFile("D", "file.py"),)
