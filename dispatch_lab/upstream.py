"""A PyTorch-like upstream repository, made at run time from a PyTorch wheel.

Its files are the wheel's own Python files, so a commit on top of it is a commit on the PyTorch that is
tested. Nothing of PyTorch is kept in this project. The same wheel gives the same commits: author and dates
are fixed.
"""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dispatch_lab.errors import LabError

PACKAGES = ("torch", "torchgen", "functorch")
# A build writes this file; PyTorch's repository does not hold it.
_GENERATED = frozenset({"torch/version.py"})
_AUTHOR = "Lab Upstream <upstream@lab.invalid>"
_FIRST_TIME = 1_790_000_000
_SECONDS = 60


@dataclass(frozen=True)
class Edit:
    """Replace the one place where `old` stands in a file by `new`."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Upstream:
    """A bare repository. `first` and `main` are the two commits of its main branch."""

    path: Path
    first: str
    main: str

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def read(self, path: str) -> str:
        """A file at the tip of main. Raises LabError when there is none."""
        try:
            return _git(self.path, "show", f"{self.main}:{path}").decode()
        except subprocess.CalledProcessError:
            raise LabError(
                "The upstream has no such file.", seen=path, fix="name a Python file of the installed wheel"
            ) from None

    def pull_request(self, number: int, title: str, edit: Edit) -> str:
        """Commit an edit on top of main as `refs/pull/<number>/head`, and return the commit."""
        text = self.read(edit.path)
        if text.count(edit.old) != 1:
            raise LabError(
                "The pull request of this scenario does not fit this PyTorch.",
                seen=f"{edit.path} holds the text to change {text.count(edit.old)} times",
                fix="use torch==2.13.0, or adapt the edit in dispatch_lab/scenarios.py",
            )
        files = {edit.path: text.replace(edit.old, edit.new).encode()}
        ref = f"refs/pull/{number}/head"
        stream = _commit(ref, title, _FIRST_TIME + 2 * _SECONDS, files, parent=self.main)
        _import(self.path, stream)
        return _git(self.path, "rev-parse", ref).decode().strip()


def make_upstream(wheel: Path, path: Path) -> Upstream:
    """Make the repository at `path` (a second or so for 2,300 files). Raises LabError for a wheel of something else."""
    with zipfile.ZipFile(wheel) as archive:
        files = {
            name: archive.read(name)
            for name in archive.namelist()
            if name.endswith(".py") and name.split("/")[0] in PACKAGES and name not in _GENERATED
        }
    if "torch/__init__.py" not in files:
        raise LabError("This is not a wheel of PyTorch.", seen=wheel.name, fix="name a torch-*.whl file")
    path.mkdir(parents=True)
    _git(path, "init", "--quiet", "--bare", "--initial-branch=main")
    _git(path, "config", "pack.compression", "0")
    _import(path, _commit("refs/heads/main", "Lab: the Python files of the wheel", _FIRST_TIME, files))
    first = _git(path, "rev-parse", "main").decode().strip()
    readme = {"README.md": f"The Python files of {wheel.name}, for a lab.\n".encode()}
    _import(
        path, _commit("refs/heads/main", "Say what this is", _FIRST_TIME + _SECONDS, readme, parent=first)
    )
    return Upstream(path, first, _git(path, "rev-parse", "main").decode().strip())


def _commit(
    ref: str, message: str, time: int, files: Mapping[str, bytes], parent: str | None = None
) -> Iterator[bytes]:
    """One commit in the language of `git fast-import`."""
    yield f"commit {ref}\ncommitter {_AUTHOR} {time} +0000\n".encode()
    yield _data(message.encode())
    if parent:
        yield f"from {parent}\n".encode()
    for name in sorted(files):
        yield f"M 100644 inline {name}\n".encode()
        yield _data(files[name])


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _import(repository: Path, stream: Iterator[bytes]) -> None:
    # Uncompressed: this repository lives for minutes, and packing 40 MB would cost seconds each time it is read.
    _git(repository, "-c", "core.compression=0", "fast-import", "--quiet", "--force", stdin=b"".join(stream))


def _git(repository: Path, *arguments: str, stdin: bytes | None = None) -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=repository, input=stdin, capture_output=True, check=True, timeout=120
    ).stdout
