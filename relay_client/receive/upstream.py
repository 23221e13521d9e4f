"""The upstream repository, read over git without a clone.

Refs and commits (`--filter=tree:0`); trees only where files are compared, and no file ever.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from relay_client.errors import CommitNotFound, RemoteUnreachable
from relay_client.runner.git import Git, without_credentials

_SECONDS = 120.0
# How much of the history is read to find a merge base. The last one is git's word for all of it.
_DEPTHS = (100, 2_000, 2_147_483_647)


class Upstream:
    """The upstream repository, read over git without a clone."""

    def __init__(self, remote: str, environment: Mapping[str, str]) -> None:
        self._remote = remote
        self._environment = environment

    def ref(self, name: str) -> str:
        """The commit a ref stands at; empty if there is no such ref. Raises RemoteUnreachable."""
        with self._scratch() as git:
            answer = git("ls-remote", "--", self._remote, name, deadline_seconds=_SECONDS)
        if not answer.ok:
            raise self._unreachable(answer.last_error())
        found = [line.split("\t")[0] for line in answer.output.splitlines() if line.endswith(f"\t{name}")]
        return found[0] if found else ""

    def log(self, ref: str, depth: int, form: str) -> list[str]:
        """The newest commits of a ref as `form` prints them (git's pretty formats), newest first."""
        with self._scratch() as git:
            self._fetch(git, depth, ref)
            return git("log", f"--max-count={depth}", f"--format={form}%x00", "FETCH_HEAD").output.split(
                "\0\n"
            )

    def changed(self, base: str, commit: str) -> tuple[str, ...]:
        """The paths that changed between the merge base of two commits and the second one.

        `base` may be a ref. Raises RemoteUnreachable, CommitNotFound.
        """
        with self._scratch() as git:
            start = self._merge_base(git, base, commit)
            # Comparing trees makes git fetch the few it needs.
            answer = git(
                "diff", "--name-only", "-z", "--no-renames", start, commit, deadline_seconds=_SECONDS
            )
        if not answer.ok:
            raise self._unreachable(answer.last_error())
        return tuple(path for path in answer.output.split("\0") if path)

    def _merge_base(self, git: Git, base: str, commit: str) -> str:
        """Most pull requests left `main` a few days ago: only who finds nothing there reads all of the history."""
        for depth in _DEPTHS:
            self._fetch(git, depth, f"+{base}:refs/crcr/base", f"+{commit}:refs/crcr/commit")
            found = git("merge-base", "refs/crcr/base", commit)
            if found.ok:
                return found.output.strip()
        raise CommitNotFound(
            "Which files changed is not known: the commit has no history in common with its base.",
            seen=f"git merge-base {base} {commit}",
            fix="when: without `changed`",
        )

    def _fetch(self, git: Git, depth: int, *refs: str) -> None:
        depth_option = [f"--depth={depth}"] if depth else []
        git("config", "remote.origin.url", self._remote)
        answer = git(
            "fetch", "--quiet", "--no-tags", "--filter=tree:0", *depth_option, "origin", *refs,
            deadline_seconds=_SECONDS,
        )  # fmt: skip
        if not answer.ok:
            raise self._unreachable(answer.last_error())

    @contextmanager
    def _scratch(self) -> Iterator[Git]:
        with tempfile.TemporaryDirectory(prefix="crcr-refs-") as folder:
            git = Git(Path(folder), self._environment)
            git("init", "--quiet")
            yield git

    def _unreachable(self, seen: str) -> RemoteUnreachable:
        return RemoteUnreachable(
            "git could not read the upstream repository.",
            seen=f"{seen} ({without_credentials(self._remote)})",
            fix="check `repository:` and the runner's network",
        )
