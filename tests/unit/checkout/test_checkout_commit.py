"""Which commit is checked out, and what is said when it cannot be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from upstream_repository import UNKNOWN, UpstreamRepository, configured, quiet_environment

from backend_ci.checkout import fetch
from backend_ci.checkout.fetch import checkout
from relay_client.errors import CommitNotFound, RemoteUnreachable, WrongCommit


@pytest.fixture
def upstream(tmp_path: Path) -> UpstreamRepository:
    return UpstreamRepository(tmp_path / "upstream")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "run folder" / "pytorch"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_PAUSE_SECONDS", 0.0)


def test_the_tip_of_a_branch_is_checked_out(upstream: UpstreamRepository, place: Path) -> None:
    commit = upstream.commit({"torch/random.py": b"seed = 1\n"})
    git = checkout(upstream.url, commit, place, quiet_environment(place), 60)
    assert git("rev-parse", "HEAD").output.strip() == commit
    assert git("status", "--porcelain").output == ""
    assert (place / "torch" / "random.py").read_bytes() == b"seed = 1\n"


def test_a_commit_that_is_no_tip_is_checked_out_and_not_the_tip(
    upstream: UpstreamRepository, place: Path
) -> None:
    older = upstream.commit({"file.py": b"older\n"})
    upstream.commit({"file.py": b"newer\n"})
    git = checkout(upstream.url, older, place, quiet_environment(place), 60)
    assert git("rev-parse", "HEAD").output.strip() == older
    assert (place / "file.py").read_bytes() == b"older\n"


def test_the_head_of_a_pull_request_from_a_fork_is_checked_out(
    upstream: UpstreamRepository, place: Path
) -> None:
    main = upstream.commit({"file.py": b"main\n"})
    head = upstream.commit({"file.py": b"pull request\n"})
    upstream.git("update-ref", "refs/pull/7/head", head)
    upstream.git("reset", "--quiet", "--hard", main)
    checkout(upstream.url, head, place, quiet_environment(place), 60)
    assert (place / "file.py").read_bytes() == b"pull request\n"


def test_only_the_commit_is_fetched_and_not_its_history(upstream: UpstreamRepository, place: Path) -> None:
    older = upstream.commit({"file.py": b"1"})
    newer = upstream.commit({"file.py": b"2"})
    git = checkout(upstream.url, newer, place, quiet_environment(place), 60)
    assert git("rev-list", "--count", "HEAD").output.strip() == "1"
    assert not git("cat-file", "-e", older).ok


@pytest.mark.parametrize("protocol", ["0", "2"])
def test_an_unknown_commit_is_named_and_not_asked_for_again(
    upstream: UpstreamRepository, place: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.commit()
    monkeypatch.setattr(fetch, "_PAUSE_SECONDS", -1.0)  # time.sleep would raise
    environment = configured(place, ("protocol.version", protocol))
    with pytest.raises(CommitNotFound) as caught:
        checkout(upstream.url, UNKNOWN, place, environment, 60)
    assert caught.value.what == "The remote does not have the commit."
    assert UNKNOWN in caught.value.seen
    assert upstream.url in caught.value.seen
    assert "force-push" in caught.value.fix
    assert caught.value.exit_code == 31


def test_a_remote_that_is_not_there_is_tried_four_times(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(fetch, "_PAUSE_SECONDS", 2.0)
    monkeypatch.setattr(fetch, "time", SimpleNamespace(sleep=pauses.append))
    missing = (tmp_path / "nothing").as_uri()
    with pytest.raises(RemoteUnreachable) as caught:
        checkout(missing, UNKNOWN, place, quiet_environment(place), 60)
    assert len(pauses) == 3
    assert all(0.2 <= pause <= longest for pause, longest in zip(pauses, (2.0, 4.0, 8.0)))
    assert "4 attempts" in caught.value.seen
    assert missing in caught.value.seen
    assert "mirrors:" in caught.value.fix
    assert caught.value.exit_code == 30


@pytest.mark.parametrize("kind", ["tag", "tree", "blob"])
def test_an_object_that_is_no_commit_is_refused(upstream: UpstreamRepository, place: Path, kind: str) -> None:
    upstream.commit({"file.py": b"1"})
    upstream.git("tag", "--annotate", "--message=t", "v1")
    name = {"tag": "v1", "tree": "HEAD^{tree}", "blob": "HEAD:file.py"}[kind]
    with pytest.raises(WrongCommit):
        checkout(upstream.url, upstream.git("rev-parse", name), place, quiet_environment(place), 60)


def test_a_branch_name_never_passes_for_a_commit(upstream: UpstreamRepository, place: Path) -> None:
    upstream.commit()
    with pytest.raises(WrongCommit):
        checkout(upstream.url, "main", place, quiet_environment(place), 60)


def test_a_mirror_in_the_users_git_settings_is_used(upstream: UpstreamRepository, place: Path) -> None:
    commit = upstream.commit({"file.py": b"from the mirror\n"})
    mirror = (f"url.{upstream.url}.insteadOf", "https://git.example.invalid/pytorch.git")
    environment = configured(place, mirror)
    checkout("https://git.example.invalid/pytorch.git", commit, place, environment, 60)
    assert (place / "file.py").read_bytes() == b"from the mirror\n"


def test_a_git_folder_in_the_environment_does_not_lead_elsewhere(
    upstream: UpstreamRepository, place: Path, tmp_path: Path
) -> None:
    commit = upstream.commit({"file.py": b"1"})
    other = UpstreamRepository(tmp_path / "other")
    before = other.commit({"mine.py": b"1"})
    environment = quiet_environment(
        place, GIT_DIR=str(other.path / ".git"), GIT_WORK_TREE=str(other.path), GIT_INDEX_FILE="x"
    )
    checkout(upstream.url, commit, place, environment, 60)
    assert (place / "file.py").is_file()
    assert other.git("rev-parse", "HEAD") == before
    assert (other.path / "mine.py").is_file()
