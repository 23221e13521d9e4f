"""The overlay provider: a pull request's Python files over a ready wheel of its base.

PyTorch's own CI does the same for changes that touch only Python. It is exact or it is refused: afterwards
every Python file of the installed packages equals the checkout's, byte for byte, which also proves that the
wheel is a build of the base.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from relay_client.documents.build import Overlay
from relay_client.documents.checkout import ChangedFile, Checkout
from relay_client.errors import CheckoutError, NotOverlayable, WrongTorch
from relay_client.runner.git import Git

PACKAGES = ("torch", "torchgen", "functorch")
# Python that is compiled into the wheel ahead of time (pytorch#197138), or is not part of it.
_COMPILED = ("torch/csrc/", "torch/_native/", "torch/_vendor/quack/")
_NOT_IN_THE_WHEEL = re.compile(r"(test/.*\.py|docs/.*\.(md|rst)|[^/]+\.md)")
_VERSION_FILE = "torch/version.py"
_GIT_VERSION = re.compile(r"^git_version = .*$", re.MULTILINE)
_REGULAR_FILES = ("100644", "100755")


@dataclass(frozen=True)
class Change:
    """What to do to the installed packages. Paths are the same below both roots."""

    lay: tuple[str, ...]
    remove: tuple[str, ...]


def plan_overlay(changed: Iterable[ChangedFile]) -> Change:
    """Which files to lay and which to remove. Pure. Raises NotOverlayable for any other kind of change."""
    lay: list[str] = []
    remove: list[str] = []
    for file in changed:
        if _NOT_IN_THE_WHEEL.fullmatch(file.path):
            continue
        python = file.path.startswith(tuple(f"{name}/" for name in PACKAGES)) and file.path.endswith(".py")
        if not python or file.path.startswith(_COMPILED) or file.path == _VERSION_FILE or file.change == "T":
            raise NotOverlayable(
                "The change is more than Python files, so a ready wheel cannot stand for it.",
                seen=f"{file.change} {file.path}",
                fix="build from source for this commit, or skip it",
            )
        (remove if file.change == "D" else lay).append(file.path)
    return Change(tuple(sorted(lay)), tuple(sorted(remove)))


def lay_over(checkout: Checkout, git: Git, site: Path) -> Overlay:
    """Turn the installed wheel of the base into the checked-out commit. Raises NotOverlayable, WrongTorch."""
    if checkout.changed_files is None:
        raise NotOverlayable(
            "The overlay does not know what changed.",
            seen="checkout.json has no changed_files",
            fix="hand `base-commit: ${{ needs.receive.outputs.base-commit }}` to the checkout",
        )
    change = plan_overlay(checkout.changed_files)
    tracked = _tracked_python(git)
    base_git_version = _installed_git_version(site)
    root = Path(checkout.path)
    for path in change.lay:
        if path not in tracked or not (root / path).is_file():
            raise NotOverlayable(
                "A changed Python file is not a plain file.",
                seen=f"{path} is a link, a submodule, or named in no known encoding",
                fix="build from source for this commit, or skip it",
            )
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, target, follow_symlinks=False)
        _forget_bytecode(target)
    for path in change.remove:
        (site / path).unlink(missing_ok=True)
        _forget_bytecode(site / path)
    compared = _compare(tracked, site)
    stamp(site, checkout.commit)
    return Overlay(base_git_version, change.lay, change.remove, compared)


def blob_id(data: bytes) -> str:
    """The id git gives to a file's content. Source: git-scm.com, "Git Internals - Git Objects"."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _tracked_python(git: Git) -> Mapping[str, str]:
    """Path to blob id of each plain Python file of the packages, at the checked-out commit."""
    answer = git("ls-tree", "-r", "-z", "HEAD", "--", *PACKAGES)
    if not answer.ok:
        raise CheckoutError(
            "The checkout cannot be read.", seen=answer.last_error(), fix="run `crcr checkout` again"
        )
    tracked = {}
    for entry in filter(None, answer.output.split("\0")):
        attributes, _, path = entry.partition("\t")
        mode, _, blob = attributes.split(" ")
        if path.endswith(".py") and mode in _REGULAR_FILES:
            tracked[path] = blob
    return tracked


def _compare(tracked: Mapping[str, str], site: Path) -> int:
    """Count the installed Python files that equal the commit's. Raises WrongTorch at the first that differs.

    A tracked file that the wheel does not hold is no difference: wheels leave some out.
    """
    compared = 0
    for path, blob in tracked.items():
        installed = site / path
        if not installed.is_file() or path == _VERSION_FILE:
            continue
        if blob_id(installed.read_bytes()) != blob:
            raise WrongTorch(
                "The wheel is not a build of this commit's base.",
                seen=f"{path} differs between the wheel and the checkout, and the commit did not change it",
                fix="torch-wheel: a wheel built from the commit's base",
            )
        compared += 1
    if not compared:
        raise WrongTorch(
            "The wheel and the checkout have no Python file in common.",
            seen=f"{len(tracked)} tracked files, none of them installed in {site}",
            fix="torch-wheel: a wheel of PyTorch; repository: PyTorch's repository",
        )
    return compared


def _installed_git_version(site: Path) -> str:
    path = site / _VERSION_FILE
    if not path.is_file():
        raise WrongTorch(
            f"The wheel has no {_VERSION_FILE}, so nobody knows which commit it is.",
            seen=f"no file {path}",
            fix="torch-wheel: a wheel of PyTorch",
        )
    match = _GIT_VERSION.search(path.read_text(encoding="utf-8"))
    return match.group().partition("=")[2].strip(" '\"") if match else "unknown"


def stamp(site: Path, commit: str) -> None:
    """Make torch.version.git_version the commit, as a build of it would."""
    path = site / _VERSION_FILE
    text, count = _GIT_VERSION.subn(f"git_version = '{commit}'", path.read_text(encoding="utf-8"))
    if count != 1:
        raise WrongTorch(
            "torch/version.py has an unknown form.",
            seen=f"{count} lines `git_version = …`",
            fix="build from source",
        )
    path.write_text(text, encoding="utf-8")
    _forget_bytecode(path)


def _forget_bytecode(source: Path) -> None:
    """Python trusts bytecode by time and size; a file of the same size could keep the old one alive."""
    for cached in (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"):
        cached.unlink()
