"""Fetch one commit by its SHA, depth 1, and prove that it is what stands in the working tree."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Optional

from backend_ci.checkout.failures import classify, kind_of
from relay_client.documents.checkout import ChangedFile
from relay_client.errors import CheckoutError, UsageError, WrongCommit
from relay_client.runner.commands import Commands
from relay_client.runner.git import Git, GitAnswer, without_credentials

_ATTEMPTS = 4
_PAUSE_SECONDS = 2.0
# Says that a tree is ours to replace. Below .git, where no commit can put a file.
_MARK = "crcr-checkout"
# Over the tree's own .gitattributes: every file as the bytes of its blob, through no filter (gitattributes(5)).
_ATTRIBUTES = "* -text -ident -filter !working-tree-encoding\n"


def checkout(
    remote: str,
    commit: str,
    path: Path,
    environment: Mapping[str, str],
    deadline_seconds: float,
    settings: Sequence[tuple[str, str]] = (),
    reference: Optional[Path] = None,
) -> Git:
    """Make `path` a working tree of exactly `commit`. `settings` are git's, for this checkout alone; `reference` is a
    repository on this machine that lends its objects. Raises CheckoutError.
    """
    make_room(path)
    path.mkdir(parents=True)
    git = Git(path, environment, settings)
    _require(git("init", "--quiet"), CheckoutError("git could not make a repository."))
    (path / ".git" / _MARK).touch()
    (path / ".git" / "info").mkdir(exist_ok=True)
    (path / ".git" / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
    if reference is not None:
        alternates = path / ".git" / "objects" / "info" / "alternates"
        alternates.write_text(f"{reference}\n", encoding="utf-8")
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


def fetch(git: Git, remote: str, commit: str, deadline_seconds: float, *options: str) -> GitAnswer:
    """Fetch one commit, depth 1. Raises CommitNotFound and its like at once; tries again what may pass."""
    return persist(
        lambda: git(
            "fetch", "--quiet", *(options or ("--depth=1",)), "--no-tags", "--no-recurse-submodules", "--", remote,
            commit, deadline_seconds=deadline_seconds,
        ),
        f"commit {commit} of {without_credentials(remote)}",
    )  # fmt: skip


def persist(attempt: Callable[[], GitAnswer], of_what: str) -> GitAnswer:
    """Do what asks a server, up to four times with growing pauses. Raises CheckoutError."""
    for number in range(1, _ATTEMPTS + 1):
        answer = attempt()
        if answer.ok:
            return answer
        if not kind_of(answer).again or number == _ATTEMPTS:
            raise classify(answer, of_what, number)
        # Full jitter: the shards of a run start together, and must not come back together.
        time.sleep(random.uniform(0.2, _PAUSE_SECONDS * 2 ** (number - 1)))  # noqa: S311
    raise AssertionError("the last attempt ends the loop")


def merge_base(
    remote: str, base: str, commit: str, git: Git, deadline_seconds: float, commands: Commands
) -> str:
    """Where the change left its base branch: comparing with the branch's tip would show what others did meanwhile.

    Reads commits only (`tree:0`), in a repository of its own: the checkout stays shallow. A server that cannot
    leave trees out would send everything, so there the tip has to do.
    """
    with tempfile.TemporaryDirectory(prefix="crcr-history-") as folder:
        history = git.elsewhere(Path(folder))
        history("init", "--quiet")
        history("remote", "add", "origin", remote)
        answer = history(
            "fetch", "--quiet", "--filter=tree:0", "--no-tags", "origin", base, commit,
            deadline_seconds=deadline_seconds,
        )  # fmt: skip
        found = history("merge-base", base, commit) if answer.ok else answer
    if "filtering not recognized" in answer.error:
        commands.line("The server does not leave trees out: that was a whole history, and will be each time")
    if found.ok and found.output.strip():
        return found.output.strip()
    commands.line(f"No merge base is known ({found.last_error()}); comparing with {base[:12]} itself")
    return base


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


def make_room(path: Path) -> None:
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
