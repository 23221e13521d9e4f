"""Fetch one commit by its SHA, depth 1, and prove that it is what stands in the working tree."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from relay_client.documents.checkout import ChangedFile
from relay_client.errors import CheckoutError, CommitNotFound, RemoteUnreachable, UsageError, WrongCommit
from relay_client.runner.git import Git, GitAnswer, without_credentials

_ATTEMPTS = 3
_PAUSE_SECONDS = 2.0
# What servers say of a commit they do not have, in protocol v2, v0, and for a name that is no SHA.
_NOT_THERE = ("not our ref", "unadvertised object", "couldn't find remote ref", "did not send all necessary")
# Says that a tree is ours to replace. Below .git, where no commit can put a file.
_MARK = "crcr-checkout"
# Over the tree's own .gitattributes: every file as the bytes of its blob, through no filter (gitattributes(5)).
_ATTRIBUTES = "* -text -ident -filter !working-tree-encoding\n"


def checkout(
    remote: str, commit: str, path: Path, environment: Mapping[str, str], deadline_seconds: float
) -> Git:
    """Make `path` a working tree of exactly `commit`. Raises CheckoutError."""
    _make_room(path)
    path.mkdir(parents=True)
    git = Git(path, environment)
    _require(git("init", "--quiet"), CheckoutError("git could not make a repository."))
    (path / ".git" / _MARK).touch()
    (path / ".git" / "info").mkdir(exist_ok=True)
    (path / ".git" / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
    fetch(git, remote, commit, deadline_seconds)
    answer = git(
        "checkout", "--quiet", "--force", "--no-recurse-submodules", "--detach", commit,
        deadline_seconds=deadline_seconds,
    )  # fmt: skip
    _require(answer, WrongCommit("git could not check out what it fetched."))
    head = git("rev-parse", "HEAD").output.strip()
    if head != commit:
        raise WrongCommit(
            "The working tree is not at the commit that was asked for.", seen=f"{head}, not {commit}"
        )
    return git


def fetch(git: Git, remote: str, commit: str, deadline_seconds: float) -> None:
    """Fetch one commit. Raises CommitNotFound at once, RemoteUnreachable after three attempts."""
    shown = without_credentials(remote)
    for attempt in range(1, _ATTEMPTS + 1):
        answer = git(
            "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", remote, commit,
            deadline_seconds=deadline_seconds,
        )  # fmt: skip
        if answer.ok:
            return
        if any(words in answer.error for words in _NOT_THERE):
            raise CommitNotFound(
                "The remote does not have the commit.",
                seen=f"{answer.last_error()} (commit {commit} of {shown})",
                fix="a force-push removed it: wait for the dispatch of the newer commit, or correct `commit:`",
            )
        if attempt < _ATTEMPTS:
            time.sleep(_PAUSE_SECONDS * attempt)
    raise RemoteUnreachable(
        "git could not reach the remote.",
        seen=f"{answer.last_error()} ({_ATTEMPTS} attempts, {shown})",
        fix="check `repository:` and the runner's network; a mirror is set with git's url.<mirror>.insteadOf",
    )


def changed_files(git: Git, base: str, commit: str) -> tuple[ChangedFile, ...]:
    """The paths that differ between two commits that are both here.

    A submodule counts whatever the tree's .gitmodules says of it: `ignore = all` would hide its change.
    """
    answer = _require(
        git(
            "diff-tree", "-r", "-z", "--name-status", "--no-renames", "--ignore-submodules=none", base, commit
        ),
        CheckoutError("git could not compare the commit with its base."),
    )
    fields = answer.output.split("\0")
    pairs = zip(fields[0::2], fields[1::2])
    return tuple(ChangedFile(change[:1], path) for change, path in pairs)


def _make_room(path: Path) -> None:
    """A tree that is left over may hold another run's code and git settings: only a new one is clean.

    Only a tree of our own making is removed: `path: .` must not cost anyone a repository.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise UsageError(
            "The folder for the checkout is something else.",
            seen=f"{path} is a file or a link",
            fix="`path:` must name a folder that does not exist yet",
        )
    if path.exists() and any(path.iterdir()) and not (path / ".git" / _MARK).is_file():
        raise UsageError(
            "The folder for the checkout holds something else.",
            seen=f"{path} is not empty, and `crcr checkout` did not make it",
            fix="`path:` must name a folder that does not exist yet, or an earlier checkout (it is replaced)",
        )
    if path.exists():
        shutil.rmtree(path)


def _require(answer: GitAnswer, error: CheckoutError) -> GitAnswer:
    if not answer.ok:
        error.seen = answer.last_error()
        error.fix = error.fix or "re-run the job; if it stays so, check the disk of the runner"
        raise error
    return answer
