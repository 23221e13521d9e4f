"""`plan.json`: which tests a run owes, fixed before the first one starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import member

UNCLASSIFIED_POLICIES = ("run", "skip", "fail")
SKIP_MODES = ("skip", "xfail", "xfail-strict")


@dataclass(frozen=True)
class Selection:
    """What may run: hardware classifications, and what to do with classes that declare none."""

    hw_classification: tuple[str, ...] = member("Names of hardware classifications")
    unclassified: str = member("What happens to the rest", one_of=UNCLASSIFIED_POLICIES, default="skip")


@dataclass(frozen=True)
class Collected:
    """How the collected tests divide, and how many files could not be collected."""

    selected: int = member("Fit the selection", minimum=0)
    mismatched: int = member("Declare another classification", minimum=0)
    unclassified: int = member("In a class that declares none, left out", minimum=0)
    without_class: int = member("Plain functions, left out", minimum=0)
    broken: int = member("Files that could not be collected", minimum=0)


@dataclass(frozen=True)
class PlannedSkip:
    """Planned tests that a skip list names: they are accounted for, and do not run or may fail."""

    tests: tuple[str, ...] = member("Node ids")
    mode: str = member("What becomes of them", one_of=SKIP_MODES)
    reason: str = member("Why, as the list says it", default="")


@dataclass(frozen=True)
class PlannedTolerance:
    """How far the backend's result of an operator may be off."""

    operator: str = member("OpInfo.full_name")
    dtype: str = member("Name of the dtype")
    atol: float = member("Absolutely", minimum=0)
    rtol: float = member("Relative to what is expected", minimum=0)


@dataclass(frozen=True)
class TestOrigin:
    """What the running PyTorch knows of device tests, and their names do not tell for certain."""

    __test__ = False  # not a pytest class

    tests: tuple[str, ...] = member("Node ids")
    source: str = member("The method's name in the source", default="")
    operator: str = member("OpInfo.full_name of the operator that is tested", default="")


@dataclass(frozen=True)
class Plan:
    """The tests of a run, and which shard runs which: the first shard's come first, then the second's."""

    FILE: ClassVar[str] = "plan.json"
    VERSION: ClassVar[int] = 1
    WRITTEN_BY: ClassVar[str] = "plan"

    commit: str = member("Commit under test", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)
    selection: Selection = member("What was asked for")
    collected: Collected = member("What was found")
    paths: tuple[str, ...] = member("Files and folders handed to pytest, absolute")
    tests: tuple[str, ...] = member("Node ids, shard after shard, in the order of collection within each")
    unclassified_classes: tuple[str, ...] = member("Classes that declare no hardware classification")
    broken_files: tuple[str, ...] = member("What could not be collected, with the first line of why")
    shards: int = member("Number of shards", minimum=1, default=1)
    skips: tuple[PlannedSkip, ...] = member("Tests that a skip list names", default=())
    device: str = member("Name of the backend's device; empty when torch has none", default="")
    tolerances: tuple[PlannedTolerance, ...] = member("From the backend's capabilities", default=())
    origins: tuple[TestOrigin, ...] = member("What their names do not tell", default=())
    sizes: tuple[int, ...] = member(
        "How many tests each shard has; empty when there is one shard", default=()
    )

    def of_shard(self, shard: int) -> tuple[str, ...]:
        """The tests of a shard, counted from 1."""
        if not self.sizes:
            return self.tests
        start = sum(self.sizes[: shard - 1])
        return self.tests[start : start + self.sizes[shard - 1]]
