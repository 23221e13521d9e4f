"""Tell apart why git could not fetch: whose fault it is decides what to do. Pure, a table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from relay_client.errors import (
    CheckoutDiskFull,
    CheckoutError,
    CommitNotFound,
    RateLimited,
    RemoteUnreachable,
    SubmodulePinMissing,
)
from relay_client.runner.git import GitAnswer


@dataclass(frozen=True)
class Kind:
    """A cause: what git says of it, and whether trying again can help."""

    error: type[CheckoutError]
    pattern: re.Pattern[str]
    what: str
    fix: str
    again: bool = False


# In this order: a refused download also ends in "did not contain", and is not the pin's fault.
_KINDS = (
    Kind(
        CheckoutDiskFull,
        re.compile(r"No space left on device|Disk quota exceeded|unable to write file|write error"),
        "The disk ran full while git wrote.",
        "free disk before this step (PyTorch with its submodules takes about 6 GB), or set `path:` to a larger disk",
    ),
    Kind(
        RateLimited,
        re.compile(
            r"\b(HTTP )?(401|403|429)\b|could not read Username|rate.?limit|Too Many Requests", re.IGNORECASE
        ),
        "The server refuses to be asked so often without a login.",
        "git-token: github.token, in the usual ${{ }} (reads public repositories, and only this step sees it); "
        "or mirrors: …",
        again=True,
    ),
    Kind(
        SubmodulePinMissing,
        re.compile(r"did not contain [0-9a-f]{40}|Direct fetching of that commit failed"),
        "A submodule's pin does not exist in its repository.",
        "nothing in this workflow: the upstream commit names a commit that its submodule does not have",
    ),
    Kind(
        CommitNotFound,
        re.compile(r"not our ref|unadvertised object|couldn't find remote ref|did not send all necessary"),
        "The remote does not have the commit.",
        "a force-push removed it: wait for the dispatch of the newer commit, or correct `commit:`",
    ),
    Kind(
        RemoteUnreachable,
        re.compile(""),
        "git could not reach the remote.",
        "check `repository:` and the runner's network; behind a proxy set HTTPS_PROXY, for a mirror `mirrors:`",
        again=True,
    ),
)


def kind_of(answer: GitAnswer) -> Kind:
    """The first cause that git's words fit."""
    return next(kind for kind in _KINDS if kind.pattern.search(answer.error))


def classify(answer: GitAnswer, of_what: str, attempts: int = 1) -> CheckoutError:
    """The error of a failed fetch."""
    kind = kind_of(answer)
    tried = f", {attempts} attempts" if attempts > 1 else ""
    lines = [line for line in answer.error.splitlines() if kind.pattern.pattern and kind.pattern.search(line)]
    seen = " ".join((lines or [answer.last_error()])[0].split())[:500]
    return kind.error(kind.what, seen=f"{seen} ({of_what}{tried})", fix=kind.fix)
