"""A PyTorch of one C++ file as a git repository with two submodules, one inside the other: built from source in seconds."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dispatch_lab.upstream import Edit, Upstream

SOURCES = Path(__file__).resolve().parent.parent / "examples" / "small-pytorch"
# Headers that its C++ includes. `start` is a submodule of `wide`.
_START = {"include/start.h": "#pragma once\nnamespace start { constexpr long long value = 0; }\n"}
_WIDE = {"include/wide.h": "#pragma once\nnamespace wide { using number = long long; }\n"}
_ADDRESS = "https://github.com/lab-libraries"


class SmallUpstream(Upstream):
    """The repository, with its submodules beside it."""

    def pull_request(self, number: int, title: str, edit: Edit) -> str:
        """Commit an edit on top of main as `refs/pull/<number>/head`, and return the commit."""
        work = self.path.parent / "small-pytorch"
        _git(work, "checkout", "--quiet", "-B", f"pull-{number}", self.main)
        file = work / edit.path
        text = file.read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise ValueError(f"{edit.path} holds the text to change {text.count(edit.old)} times")
        file.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
        commit = _commit(work, title)
        _git(work, "push", "--quiet", str(self.path), f"HEAD:refs/pull/{number}/head")
        return commit


def make_small_upstream(_wheel: Path, path: Path) -> SmallUpstream:
    """Make the repository at `path`. The wheel is not needed: this upstream is built."""
    folder = path.parent
    start = _library(folder / "start.git", _START)
    wide = _library(folder / "wide.git", _WIDE)
    wide = _pin(folder / "wide.git", "third_party/start", f"{_ADDRESS}/start.git", start)
    work = folder / "small-pytorch"
    _git(folder, "init", "--quiet", "--initial-branch=main", str(work))
    for source in sorted(SOURCES.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            target = work / source.relative_to(SOURCES)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    first = _commit(work, "The small PyTorch")
    main = _pin(work, "third_party/wide", f"{_ADDRESS}/wide.git", wide)
    _git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(path))
    _git(work, "push", "--quiet", str(path), "main")
    return SmallUpstream(path, first, main)


def submodule_rewrites(upstream: Upstream) -> list[tuple[str, str]]:
    """git's `url.<here>.insteadOf` for the submodules, as an operator of a mirror sets it."""
    return [(f"url.{upstream.path.parent.as_uri()}/.insteadOf", f"{_ADDRESS}/")]


def _library(path: Path, files: dict[str, str]) -> str:
    _git(path.parent, "init", "--quiet", "--initial-branch=main", str(path))
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    return _commit(path, "A header")


def _pin(work: Path, name: str, url: str, commit: str) -> str:
    (work / ".gitmodules").write_text(
        f'[submodule "{name}"]\n\tpath = {name}\n\turl = {url}\n', encoding="utf-8"
    )
    _git(work, "update-index", "--add", "--cacheinfo", f"160000,{commit},{name}")
    return _commit(work, f"Pin {name}", "--", ".gitmodules")


def _commit(work: Path, message: str, *paths: str) -> str:
    """Commit what changed. The same files give the same commit."""
    if paths:
        _git(work, "add", *paths)
    else:
        _git(work, "add", "--all", "--", ".", ":!third_party")
    _git(work, "commit", "--quiet", f"--message={message}")
    return _git(work, "rev-parse", "HEAD")


def _git(at: Path, *arguments: str) -> str:
    identity = [
        "-c",
        "user.name=Lab Upstream",
        "-c",
        "user.email=upstream@lab.invalid",
        "-c",
        "core.autocrlf=false",
    ]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=at, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()
