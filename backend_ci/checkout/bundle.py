"""A checkout as one file, for runners that cannot reach GitHub: the tree with its `.git`, so that a build still
knows its commit.

One job writes it, where there is a network; another unpacks it, and proves that it is what was asked for.
"""

from __future__ import annotations

import contextlib
import posixpath
import shutil
import tarfile
from pathlib import Path

from relay_client.errors import BadBundle, CheckoutDiskFull
from relay_client.runner.git import Git

_SUFFIXES = (".tar", ".tar.gz")


def write_bundle(tree: Path, target: Path) -> None:
    """Write it beside itself first: half a bundle never has the name of a whole one. Raises CheckoutDiskFull."""
    part = target.with_name(f".{target.name}.part")
    compressed = target.name.endswith(".gz")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(part, "w:gz") if compressed else tarfile.open(part, "w:") as archive:
            for path in sorted(tree.iterdir()):
                archive.add(path, arcname=path.name, filter=_anonymous)
        part.replace(target)
    except OSError as error:
        raise CheckoutDiskFull(
            "The source bundle could not be written.",
            seen=f"{target}: {error}",
            fix="name a folder with more room",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def unpack_bundle(bundle: Path, tree: Path) -> None:
    """Unpack into a new folder. Raises BadBundle for what a checkout never holds."""
    if not bundle.is_file() or not bundle.name.endswith(_SUFFIXES):
        raise BadBundle(
            "There is no source bundle.",
            seen=f"{bundle}: {'another kind of file' if bundle.exists() else 'no such file'}",
            fix="source-bundle: the file that `crcr checkout --write-bundle FILE` wrote, *.tar or *.tar.gz",
        )
    try:
        with tarfile.open(bundle) as archive:
            for member in archive:
                _require_harmless(member)
                archive.extract(member, tree, set_attrs=False)
                if member.isfile() and member.mode & 0o100:
                    (tree / member.name).chmod(0o755)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise BadBundle(
            "The source bundle cannot be unpacked.",
            seen=f"{bundle.name}: {error}",
            fix="write it again; a download that was cut short is the usual cause",
        ) from error
    for hooks in (tree / ".git").rglob("hooks"):
        shutil.rmtree(hooks, ignore_errors=True)


def require_commit(git: Git, commit: str) -> None:
    """Prove that the unpacked tree is the commit, file by file. Raises BadBundle."""
    head = git("rev-parse", "HEAD").output.strip()
    if head != commit:
        raise BadBundle(
            "The source bundle is of another commit.",
            seen=f"{head or 'no commit'}, not {commit}",
            fix="hand over the bundle that the fetch job of this run wrote",
        )
    # Compares contents: the index that came along says nothing about these files.
    git("read-tree", "HEAD")
    git("update-index", "-q", "--really-refresh", deadline_seconds=600)
    answer = git(
        "diff-index", "--name-only", "-z", "--ignore-submodules=none", "HEAD", "--", deadline_seconds=600
    )
    changed = [path for path in answer.output.split("\0") if path]
    if changed or not answer.ok:
        raise BadBundle(
            "The source bundle holds other files than its commit.",
            seen=", ".join(changed[:5]) or answer.last_error(),
            fix="write it again with `crcr checkout --write-bundle`, and change nothing in between",
        )


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _require_harmless(member: tarfile.TarInfo) -> None:
    """Raises BadBundle for what could write outside of the tree."""
    name = posixpath.normpath(member.name)
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
    kinds = member.isfile() or member.isdir() or member.issym()
    outside = [path for path in (name, target if member.issym() else name) if _leaves(path)]
    if not kinds or outside or (member.issym() and name.split("/")[0] == ".git"):
        raise BadBundle(
            "The source bundle holds what no checkout holds.",
            seen=f"{member.name!r}{f' -> {member.linkname!r}' if member.issym() else ''}",
            fix="write it with `crcr checkout --write-bundle`",
        )


def _leaves(path: str) -> bool:
    return path.startswith(("/", "..")) or Path(path).is_absolute()
