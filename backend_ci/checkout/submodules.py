"""Submodules: shallow, parallel, and each proven to stand at its pin."""

from __future__ import annotations

import re

from backend_ci.checkout.failures import classify
from relay_client.documents.checkout import Submodule
from relay_client.errors import SubmodulePinMissing
from relay_client.runner.git import Git

CHOICES = ("none", "top", "recursive")
# More does not help: the servers limit how many connections one address may have.
_JOBS = 8
# `git submodule status`: a sign, the commit, the path. " " is at its pin, "-" not there, "+" elsewhere.
_STATUS = re.compile(
    r"^(?P<sign>[ +\-U])(?P<commit>[0-9a-f]{40}) (?P<path>.*?)(?: \([^()]*\))?$", re.MULTILINE
)


def fetch_submodules(git: Git, choice: str, deadline_seconds: float) -> tuple[Submodule, ...]:
    """Fetch them. Raises SubmodulePinMissing, RateLimited, RemoteUnreachable and their like."""
    recursive = ["--recursive"] if choice == "recursive" else []
    answer = git(
        "submodule", "update", "--init", "--force", "--depth=1", f"--jobs={_JOBS}", *recursive,
        deadline_seconds=deadline_seconds,
    )  # fmt: skip
    if not answer.ok:
        raise classify(answer, "a submodule")
    return submodules_here(git, choice)


def submodules_here(git: Git, choice: str) -> tuple[Submodule, ...]:
    """The submodules of a working tree, each at its pin. Raises SubmodulePinMissing."""
    recursive = ["--recursive"] if choice == "recursive" else []
    status = git("submodule", "status", *recursive)
    found = [match.groupdict() for match in _STATUS.finditer(status.output)]
    wrong = [f"{item['path']} ({item['sign']}{item['commit'][:12]})" for item in found if item["sign"] != " "]
    if wrong or not status.ok:
        raise SubmodulePinMissing(
            "A submodule does not stand at its pin.",
            seen=", ".join(wrong[:5]) or status.last_error(),
            fix="run the job again; if it stays so, the upstream commit's pin is wrong",
        )
    return tuple(Submodule(item["path"], item["commit"]) for item in found)
