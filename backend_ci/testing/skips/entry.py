"""One entry of a skip list, and what reading a list gives."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Optional

from backend_ci.testing.ids import PRIVATEUSE1
from relay_client.documents.plan import SKIP_MODES

MODES = SKIP_MODES
# Where a rule applies that names no device: on the backend, and in tests that are made for no device.
_BACKEND_AND_NONE = ("", PRIVATEUSE1)


@dataclass(frozen=True)
class Entry:
    """Which tests, and what becomes of them. An empty part stands for any; `device` None for the backend or none.

    `method` is a test's name without device and dtypes: as the source has it (then all its parameters are meant), or
    with parameters. `operator` is an `OpInfo.full_name`. `dtypes` empty: with any. `on` empty: everywhere.
    `spelled` is a class that was named with its device: it may as well be a class of that very name, like `TestCUDA`.
    """

    file: str = ""
    cls: str = ""
    method: str = ""
    operator: str = ""
    device: Optional[str] = None
    dtypes: tuple[str, ...] = ()
    mode: str = "skip"
    reason: str = ""
    issue: str = ""
    expires: Optional[date] = None
    on: tuple[str, ...] = ()
    spelled: str = ""
    where: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Canonical devices of the tests that are meant."""
        if self.device is not None:
            return (self.device,)
        # An operator is always tested on a device.
        return (PRIVATEUSE1,) if self.operator else _BACKEND_AND_NONE

    def expired(self, today: date) -> bool:
        """The last day that counts is the one that is named."""
        return self.expires is not None and self.expires < today

    def applies(self, conditions: frozenset[str]) -> bool:
        """Whether this is a place the entry is for."""
        return not self.on or not conditions.isdisjoint(self.on)

    @property
    def why(self) -> str:
        """The reason of a skip, for a report."""
        parts = [part for part in (self.reason, self.issue) if part]
        return " ".join(parts) or f"skip list {self.where}"

    def describe(self) -> str:
        """What is meant, in a line."""
        owner = "::".join(part for part in (self.file, self.cls, self.method) if part)
        parts = [owner, f"operator={self.operator}" if self.operator else ""]
        parts.append(f"device={self.device}" if self.device else "")
        parts.append(f"dtypes={','.join(self.dtypes)}" if self.dtypes else "")
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Problem:
    """A part of a list that cannot be read. `where` is file and line, or file and entry."""

    where: str
    what: str


@dataclass(frozen=True)
class SkipList:
    """What a file says. `strict`: its format is ours, so that whoever wrote a problem can mend it."""

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]
    strict: bool = True
