"""`checkout.json`: which commit stands in the working tree, and how it was got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional

from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import member


@dataclass(frozen=True)
class ChangedFile:
    """One path that differs between base and commit. `change` is git's letter: A, D, M or T."""

    change: str = member("git's status letter", one_of=("A", "D", "M", "T"))
    path: str = member("Path below the repository's root")


@dataclass(frozen=True)
class Submodule:
    """One submodule, at its pin."""

    path: str = member("Path below the repository's root")
    commit: str = member("Commit it stands at", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)


@dataclass(frozen=True)
class Checkout:
    """What the checkout stage left on disk."""

    FILE: ClassVar[str] = "checkout.json"
    VERSION: ClassVar[int] = 1
    WRITTEN_BY: ClassVar[str] = "checkout"

    remote: str = member("Where it came from, without credentials")
    commit: str = member("What is checked out", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)
    path: str = member("The working tree, absolute")
    how: str = member("How the commit was got", one_of=("fetch-by-sha", "bundle"))
    seconds: float = member("Wall time", minimum=0)
    base_commit: Optional[str] = member("What `changed_files` compares with", default=None)
    changed_files: Optional[tuple[ChangedFile, ...]] = member(
        "Paths that differ from the base; null when no base was given", default=None
    )
    submodules: Optional[tuple[Submodule, ...]] = member(
        "Every submodule, nested ones too; null when none was fetched", default=None
    )
