"""Real git repositories in a temporary folder, as remotes to check out from."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

UNKNOWN = "1234567890abcdef1234567890abcdef12345678"


def quiet_environment(home: Path, **more: str) -> dict[str, str]:
    """A machine without anybody's git configuration."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **more,
    }


def configured(home: Path, *pairs: tuple[str, str]) -> dict[str, str]:
    """The same with settings of the user's, given as GIT_CONFIG_*."""
    environment = quiet_environment(home, GIT_CONFIG_COUNT=str(len(pairs)))
    for number, (name, value) in enumerate(pairs):
        environment[f"GIT_CONFIG_KEY_{number}"] = name
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment


class UpstreamRepository:
    """A repository that commits what it is told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment = quiet_environment(path)
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=U", "-c", "user.email=u@example.invalid", "-c", "core.quotePath=false"]
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.path, env=self.environment, check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        return done.stdout.decode(errors="surrogateescape").strip()

    def commit(self, files: Optional[Mapping[str, Optional[bytes]]] = None) -> str:
        """Write the files (None deletes one), commit them, and return the commit."""
        for name, content in (files or {}).items():
            path = self.path / name
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        self.git("add", "--all", "--", *(files or {}))
        self.git("commit", "--quiet", "--allow-empty", "--message=a commit")
        return self.git("rev-parse", "HEAD")

    def submodule(self, path: str, commit: str) -> None:
        """Stage a submodule at a commit. Nothing of it needs to exist."""
        self.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
