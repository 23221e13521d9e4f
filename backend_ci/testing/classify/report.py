"""What is known of each test class of a tree, as rows: declared, inherited, proposed, or nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Optional

from backend_ci.testing.classify.facts import Tag, Test, TestClass
from backend_ci.testing.classify.propose import Evidence, propose
from backend_ci.testing.classify.tree import Key, Tree
from relay_client.protocol import vocabulary as words

_HOPS = 8  # `hw_classification = Other.hw_classification`, which may repeat a third


@dataclass(frozen=True)
class Row:
    """One class that has tests, its own or inherited.

    `classification` is what a run would find on the class, empty when nothing; `how` is `declared`, `inherited`,
    `unclassified` or `unreadable`. `proposed` is only ever a proposal. `tests` counts test methods as they stand in
    the source: parameters and operators multiply them when they run.
    `runs` is false for a mixin: no runner collects it by itself.
    """

    file: str
    line: int
    name: str
    classification: str
    how: str
    declared_by: str
    proposed: str
    why: str
    tests: int
    instantiated: str  # yes, no, unknown
    instantiated_at: str
    only_for: Optional[tuple[str, ...]]
    except_for: Optional[tuple[str, ...]]
    unresolved_bases: tuple[str, ...]
    runs: bool


@dataclass(frozen=True)
class Problem:
    file: str
    line: int
    what: str


@dataclass(frozen=True)
class Report:
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
    files: int

    def unclassified(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.runs and not row.classification)

    def count(self) -> Counter[str]:
        """Classes that run, by how their classification is known."""
        return Counter(row.how for row in self.rows if row.runs)


def make_report(tree: Tree) -> Report:
    rows: list[Row] = []
    problems: list[Problem] = []
    for file in tree.files:
        facts = tree.facts[file]
        if facts.problem:
            problems.append(Problem(file, facts.problem_line, facts.problem))
        rows.extend(
            row for index in range(len(facts.classes)) if (row := _row(tree, Key(file, index))) is not None
        )
    return Report(tuple(rows), tuple(problems), len(tree.files))


def classification_of(tree: Tree, key: Key) -> tuple[str, str, Optional[Key]]:
    """`(classification, how, the class that declares it)`, through the order Python would look in."""
    for at, one in enumerate(tree.order(key)[0]):
        tag = tree.cls(one).tag
        if tag is None:
            continue
        name = _read(tree, one, tag)
        if name is None:
            return "", "unreadable", one
        return name, ("inherited" if at else "declared") if name else "unclassified", one
    return "", "unclassified", None


def _read(tree: Tree, key: Key, tag: Tag) -> Optional[str]:
    """The classification a tag gives; empty for None, None for what cannot be read or is no member."""
    for _ in range(_HOPS):
        if tag.kind == "none":
            return ""
        if tag.kind == "member":
            name = words.HARDWARE_CLASSIFICATION_ALIASES.get(tag.value, tag.value)
            return name if name in words.HARDWARE_CLASSIFICATIONS else None
        if tag.kind != "of":
            return None
        other = tree.find(key.file, tag.value, key.place)
        if other is None:
            return None
        found = next((one for one in tree.order(other)[0] if tree.cls(one).tag is not None), None)
        if found is None:
            return None
        key, tag = found, tree.cls(found).tag or tag
    return None


def _row(tree: Tree, key: Key) -> Optional[Row]:
    cls = tree.cls(key)
    order, unknown = tree.order(key)
    tests = {test.name: test for one in reversed(order) for test in tree.cls(one).tests}
    if not tests:
        return None
    classification, how, source = classification_of(tree, key)
    made = tree.instantiations.get(key, [])
    proposed = why = ""
    if not classification:
        proposed, why = propose(_evidence(tree, key, tuple(tests.values())))
    instantiated = "yes" if made else "unknown" if key.file in tree.dynamic else "no"
    return Row(
        file=key.file,
        line=cls.line,
        name=cls.name,
        classification=classification,
        how=how,
        declared_by="" if source is None or source == key else f"{source.file}::{tree.cls(source).name}",
        proposed=proposed,
        why=why,
        tests=len(tests),
        instantiated=instantiated,
        instantiated_at=f"{made[0].file}:{made[0].call.line}" if made else "",
        only_for=made[0].call.only_for if made else None,
        except_for=made[0].call.except_for if made else None,
        unresolved_bases=tuple(unknown),
        runs=bool(made) or _is_collected(cls, order, unknown, tree),
    )


def _is_collected(cls: TestClass, order: list[Key], unknown: list[str], tree: Tree) -> bool:
    """Whether a runner takes the class for tests: unittest by its base, pytest also by its name.

    A base that is not in the tree, and is not `object`, may be a TestCase of an installed package.
    """
    bases = [*unknown, *(tree.cls(one).name for one in order)]
    return cls.name.startswith("Test") or any(base.rpartition(".")[2] != "object" for base in unknown) or any(
        base.endswith("TestCase") for base in bases
    )  # fmt: skip


def _evidence(tree: Tree, key: Key, tests: tuple[Test, ...]) -> Evidence:
    made = tree.instantiations.get(key, [])
    named: dict[str, set[str]] = {}
    for use in tree.uses_of(key):
        named.setdefault(use.method, set()).add(use.device)
    return Evidence(bool(made), made[0].call.only_for if made else None, tests, named)
