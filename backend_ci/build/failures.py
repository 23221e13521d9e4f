"""Tell apart why a build or install command failed, from its exit code and its log. Pure, a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

from relay_client.errors import BuildError, DiskFull, OutOfMemory, RequirementsUnsatisfiable

# How a shell, and subprocess, tell SIGKILL.
_KILLED = (137, -9)


@dataclass(frozen=True)
class Kind:
    """A cause: what a line of the log says of it, and what to do."""

    error: type[BuildError]
    pattern: re.Pattern[str]
    what: str
    fix: str


# In this order: a disk that is full also ends compilers, and what pip says then is only its consequence.
_KINDS = (
    Kind(
        DiskFull,
        re.compile(r"No space left on device|Disk quota exceeded|\[Errno 28\]"),
        "The disk ran full.",
        "free-disk: true (GitHub's hosted runners), a larger disk, or a run folder on another one: RUNNER_TEMP",
    ),
    Kind(
        OutOfMemory,
        re.compile(
            r"Killed signal terminated program|fatal error: Killed|internal compiler error: Killed"
            r"|virtual memory exhausted|cc1plus: out of memory|cannot allocate memory|std::bad_alloc"
            r"|LLVM ERROR: out of memory"
            # What pip, make and Python say of a program that the kernel ended.
            r"|exit code: (-9|137)$|\*\*\* \[.*\] (Killed|Error 137)|died with <Signals\.SIGKILL",
            re.IGNORECASE,
        ),
        "A compiler ran out of memory.",
        "MAX_JOBS: fewer compilers at a time (about 2 GB each), or a runner with more memory",
    ),
    Kind(
        RequirementsUnsatisfiable,
        re.compile(
            r"ResolutionImpossible|No matching distribution found|Could not find a version that satisfies"
        ),
        "No set of packages meets what is required.",
        "correct the requirement in the line above; indexes come from PIP_INDEX_URL and PIP_EXTRA_INDEX_URL",
    ),
)


def classify(exit_code: Optional[int], lines: Iterable[str]) -> Optional[tuple[Kind, str]]:
    """The cause of a failed command and the line that says so; None when it is none of these."""
    found: dict[type[BuildError], tuple[Kind, str]] = {}
    for line in lines:
        for kind in _KINDS:
            if kind.error not in found and kind.pattern.search(line.rstrip()):
                found[kind.error] = (kind, " ".join(line.split())[:500])
    for kind in _KINDS:
        if kind.error in found:
            return found[kind.error]
    if exit_code in _KILLED:
        # The kernel ends what takes too much memory with this signal; nobody else here sends it.
        kind = next(kind for kind in _KINDS if kind.error is OutOfMemory)
        return kind, f"the command was ended by SIGKILL (exit code {exit_code})"
    return None
