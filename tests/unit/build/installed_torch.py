"""A small PyTorch: its repository in git, and the same files as they lie in site-packages."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

from backend_ci.checkout.fetch import changed_files
from relay_client.documents.checkout import Checkout
from relay_client.runner.git import Git

BASE_FILES = {
    "torch/__init__.py": b"from torch import version\n",
    "torch/random.py": b"SEED = 1\n",
    "torch/gone.py": b"old = True\n",
    "torch/not_in_the_wheel.py": b"only = 'in the repository'\n",
    "torchgen/model.py": b"",
    "functorch/__init__.py": b"\xff\xfe not text \r\n",
    "setup.py": b"",
    "test/test_torch.py": b"",
}
NOT_INSTALLED = ("torch/not_in_the_wheel.py", "setup.py", "test/test_torch.py")
VERSION = (
    "from typing import Optional\n__version__ = '2.0+cpu'\ngit_version = '{}'\nhip: Optional[str] = None\n"
)


class SmallTorch:
    """`repository` is the checkout, `site` the installed wheel of its first commit."""

    def __init__(self, folder: Path) -> None:
        self.repository, self.site = folder / "pytorch", folder / "site-packages"
        self.repository.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self.git("init", "--quiet")
        self.base = self.commit(BASE_FILES)
        for name, content in BASE_FILES.items():
            if name not in NOT_INSTALLED:
                self.install(name, content)
        self.install("torch/version.py", VERSION.format(self.base).encode())

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=U", "-c", "user.email=u@example.invalid"]
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.repository, env=self.environment, check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        return done.stdout.decode().strip()

    def commit(self, files: Mapping[str, Optional[bytes]]) -> str:
        """Write the files (None deletes one), commit, and return the commit."""
        for name, content in files.items():
            path = self.repository / name
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self.git("add", "--all", "--", name)
        self.git("commit", "--quiet", "--allow-empty", "--message=a commit")
        return self.git("rev-parse", "HEAD")

    def install(self, name: str, content: bytes) -> Path:
        path = self.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def runner(self) -> Git:
        return Git(self.repository, self.environment)

    def checkout(self, commit: str) -> Checkout:
        """The document of a checkout of `commit` with the first commit as its base."""
        changed = changed_files(self.runner(), self.base, commit)
        return Checkout(
            self.repository.as_uri(), commit, str(self.repository), "fetch-by-sha", 0.0, self.base, changed
        )
