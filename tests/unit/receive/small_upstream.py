"""A PyTorch in small, and the events that are about it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from step import event


class Upstream:
    """A PyTorch in small: main, a pull request with its test merge, a nightly branch."""

    def __init__(self, bare: Path, folder: Path) -> None:
        self.bare, self.work = bare, folder / "work"
        self.git("init", "-q", "-b", "main", str(self.work), at=folder)
        self.git("config", "uploadpack.allowFilter", "true", at=bare)
        self.base = self.commit("Base", "torch/a.py", when=1_000)
        self.git("checkout", "-q", "-b", "topic")
        self.head = self.commit("A change", "torch/csrc/x.cpp", when=2_000)
        self.git("checkout", "-q", "main")
        self.main = self.commit("Main goes on", "docs/b.md", when=3_000)
        self.git("checkout", "-q", "-b", "test-merge")
        self.git("merge", "-q", "--no-ff", "-m", "Merge", "topic", when=3_500)
        self.merge = self.git("rev-parse", "HEAD")
        self.git("checkout", "-q", "main")
        resolved = "Landed\n\nPull Request resolved: https://github.com/pytorch/pytorch/pull/{}"
        self.other = self.commit(resolved.format(424), "torch/c.py", when=4_000)
        self.landed = self.commit(resolved.format(4242) + "\nApproved by: x", "torch/d.py", when=5_000)
        self.tip = self.commit("Reverts 4242, says pull/4242 in a line of its own", "torch/e.py", when=6_000)
        self.git("checkout", "-q", "--orphan", "nightly")
        self.commit(f"2026-11-29 nightly release ({self.base})", "n", when=7_000)
        self.commit(f"2026-11-30 nightly release ({self.main})", "n", when=8_000)
        self.push("main", "topic:refs/pull/4242/head", "test-merge:refs/pull/4242/merge", "nightly")

    def git(self, *arguments: str, at: Path | None = None, when: int = 500) -> str:
        identity = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", f"@{when} +0000"))
        }
        environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(self.work), **identity}
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.work,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, message: str, path: str, when: int) -> str:
        file = self.work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{message}\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", message, when=when)
        return self.git("rev-parse", "HEAD")

    def push(self, *refs: str) -> None:
        self.git("push", "-q", "--force", str(self.bare), *refs)


def opened(upstream: Upstream, **changes: Any) -> Any:
    value = event()
    body = value["client_payload"]["payload"]
    body["pull_request"]["head"]["sha"] = upstream.head
    body["pull_request"]["base"].update(sha=upstream.base, ref="main")
    body.update(changes)
    return value


def landing(upstream: Upstream) -> Any:
    value = opened(upstream, action="closed")
    value["client_payload"]["payload"]["pull_request"]["labels"] = [{"name": "Merged"}]
    return value
