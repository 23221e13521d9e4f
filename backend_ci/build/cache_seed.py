"""The seed: the cache folder that builds of landed commits fill. What a pull request leaves in it is taken out.

A pull request's build is never told to write here. Code that runs as the same user can do so all the same, so
entries are compared before and after: by inode, size and change time, which the kernel sets and no call takes.
That is hygiene for a machine that lives on, and no isolation: a process that outlives the build can come later.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

Entries = dict[str, tuple[int, int, int]]


def entries(seed: Path) -> Entries:
    """Every file below the seed with inode, size in bytes and change time in nanoseconds. Links are not followed."""
    found: Entries = {}
    for folder, folders, files in os.walk(seed):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in (*files, *links):
            path = Path(folder, name)
            with contextlib.suppress(OSError):
                status = path.lstat()
                found[str(path.relative_to(seed))] = (status.st_ino, status.st_size, status.st_ctime_ns)
    return found


def take_out_what_changed(seed: Path, before: Entries) -> int:
    """Remove each entry that is not exactly as it was, and folders left empty. Returns how many files went.

    On a machine where a landed build fills the seed at the same time, its new entries go too: misses, later.
    """
    if seed.is_symlink():
        seed.unlink()
        return 1
    changed = [name for name, status in entries(seed).items() if before.get(name) != status]
    for name in changed:
        with contextlib.suppress(OSError):
            (seed / name).unlink()
            for folder in (seed / name).relative_to(seed).parents:
                (seed / folder).rmdir()  # ends at the first that is not empty
    return len(changed)


def copy(seed: Path, to: Path) -> None:
    """A private copy, times kept: they are the order in which sccache drops entries. Raises OSError."""
    if seed.is_dir():
        shutil.copytree(seed, to, symlinks=True)


@contextlib.contextmanager
def only_writer(seed: Path) -> Iterator[bool]:
    """Whether nobody else writes to this seed. sccache's servers must not share one; ccache's processes may."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield False
        return
    seed.mkdir(parents=True, exist_ok=True)
    with seed.with_name(f"{seed.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
