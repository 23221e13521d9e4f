"""Room on the disk: said before a build starts, made on request, and told apart from other failures."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from relay_client.errors import DiskFull
from relay_client.runner.commands import Commands

_GIGABYTE = 1_000_000_000
# Tool chains of GitHub's hosted Linux images that no build of PyTorch uses: about 25 GB.
_PREINSTALLED = (
    "/usr/share/dotnet",
    "/usr/local/lib/android",
    "/opt/ghc",
    "/usr/local/.ghcup",
    "/opt/hostedtoolcache/CodeQL",
    "/usr/share/swift",
)


def require_space(folder: Path, gigabytes: float, what: str, commands: Commands) -> None:
    """Say what is needed and what is there. Raises DiskFull when it is not enough."""
    free = shutil.disk_usage(folder).free / _GIGABYTE
    commands.line(f"{what} needs about {gigabytes:g} GB of disk; {free:.1f} GB are free at {folder}")
    if free < gigabytes:
        raise DiskFull(
            f"{what} needs more disk than there is.",
            seen=f"{free:.1f} GB free at {folder}, {gigabytes:g} GB needed",
            fix="free-disk: true (GitHub's hosted runners), a larger disk, or build-disk-gigabytes: what it really needs",
        )


@contextlib.contextmanager
def full_disk_told() -> Iterator[None]:
    """What this tool itself could not write for want of room is told as that. Raises DiskFull."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFull(
            "The disk ran full.",
            seen=str(error),
            fix="free-disk: true (GitHub's hosted runners), a larger disk, or a run folder on another one: RUNNER_TEMP",
        ) from error


def free_disk(environment: Mapping[str, str], commands: Commands) -> None:
    """Remove tool chains that GitHub's hosted runners bring. On any other machine they are somebody's: refused."""
    if environment.get("RUNNER_ENVIRONMENT") != "github-hosted":
        commands.warning(
            "free-disk removes things from GitHub's hosted runners only; this is none, nothing was removed"
        )
        return
    with commands.group("Free disk space"):
        for name in _PREINSTALLED:
            path = Path(name)
            if path.is_dir():
                commands.line(f"Removing {name} ...")
                shutil.rmtree(path, ignore_errors=True)
