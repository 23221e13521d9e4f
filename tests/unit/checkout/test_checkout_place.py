"""Where the tree goes: never over something that is not ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from upstream_repository import UpstreamRepository, quiet_environment

from backend_ci.checkout.fetch import checkout
from relay_client.errors import UsageError


@pytest.fixture
def upstream(tmp_path: Path) -> UpstreamRepository:
    return UpstreamRepository(tmp_path / "upstream")


def test_an_empty_folder_is_used(upstream: UpstreamRepository, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    commit = upstream.commit({"file.py": b"1"})
    checkout(upstream.url, commit, tmp_path / "tree", quiet_environment(tmp_path), 60)
    assert (tmp_path / "tree" / "file.py").is_file()


def test_an_earlier_checkout_is_replaced_with_all_that_was_left_in_it(
    upstream: UpstreamRepository, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    first = upstream.commit({"gone.py": b"1", "file.py": b"1"})
    second = upstream.commit({"gone.py": None, "file.py": b"2"})
    checkout(upstream.url, first, tree, quiet_environment(tmp_path), 60)
    (tree / "untracked.py").write_text("left over")
    (tree / ".git" / "hooks").mkdir(exist_ok=True)
    (tree / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\nexit 1\n")
    (tree / ".git" / "config").write_text("[core]\n\tfsmonitor = exit 1\n[garbage\n")
    checkout(upstream.url, second, tree, quiet_environment(tmp_path), 60)
    assert sorted(path.name for path in tree.iterdir()) == [".git", "file.py"]
    assert (tree / "file.py").read_bytes() == b"2"


def test_a_folder_of_the_users_is_refused_and_kept(upstream: UpstreamRepository, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="holds something else") as caught:
        checkout(upstream.url, upstream.commit(), tree, quiet_environment(tmp_path), 60)
    assert str(tree) in caught.value.seen
    assert "does not exist yet" in caught.value.fix
    assert (tree / "thesis.txt").read_text() == "precious"


def test_a_repository_of_the_users_is_refused_and_kept(upstream: UpstreamRepository, tmp_path: Path) -> None:
    mine = UpstreamRepository(tmp_path / "mine")
    mine.commit({"work.py": b"months of it"})
    with pytest.raises(UsageError, match="holds something else"):
        checkout(upstream.url, upstream.commit(), mine.path, quiet_environment(tmp_path), 60)
    assert (mine.path / "work.py").read_bytes() == b"months of it"


def test_a_commit_cannot_bring_the_mark_that_makes_a_tree_ours(
    upstream: UpstreamRepository, tmp_path: Path
) -> None:
    mine = UpstreamRepository(tmp_path / "mine")
    mine.commit({"crcr-checkout": b"", "info/crcr-checkout": b""})
    with pytest.raises(UsageError):
        checkout(upstream.url, upstream.commit(), mine.path, quiet_environment(tmp_path), 60)


@pytest.mark.parametrize("target", ["folder", "file", "nothing"])
def test_a_link_is_refused_and_what_it_leads_to_is_kept(
    upstream: UpstreamRepository, tmp_path: Path, target: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").write_text("kept")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / target)
    with pytest.raises(UsageError, match="something else"):
        checkout(upstream.url, upstream.commit(), tmp_path / "link", quiet_environment(tmp_path), 60)
    assert (tmp_path / "folder" / "kept").read_text() == (tmp_path / "file").read_text() == "kept"


def test_a_file_is_refused(upstream: UpstreamRepository, tmp_path: Path) -> None:
    (tmp_path / "tree").write_text("kept")
    with pytest.raises(UsageError, match="something else"):
        checkout(upstream.url, upstream.commit(), tmp_path / "tree", quiet_environment(tmp_path), 60)
    assert (tmp_path / "tree").read_text() == "kept"
