"""Which entry decides for a test, what is wrong with a list, and rules that mean the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import date
from typing import Any, Optional

import pytest

from backend_ci.testing.ids import TestNames
from backend_ci.testing.skips import match
from backend_ci.testing.skips.check import check
from backend_ci.testing.skips.compress import compress, prove
from backend_ci.testing.skips.entry import Entry, Problem, SkipList
from backend_ci.testing.skips.match import KnownTest, SkipIndex
from backend_ci.testing.skips.text import read_text
from relay_client.errors import BadSkipList

TODAY = date(2026, 6, 15)
NAMES = TestNames(("npu",))


def known(text: str, source: str = "", operator: str = "") -> KnownTest:
    return KnownTest(NAMES.parse(text), text, source, operator)


def entries(*lines: str) -> tuple[Entry, ...]:
    skips = read_text("\n".join(lines), "list", NAMES)
    assert skips.problems == ()
    return skips.entries


def decided(lines: Iterable[str], test: KnownTest, **given: Any) -> Optional[str]:
    found = SkipIndex(entries(*lines), today=TODAY, **given).find(test)
    return found.reason if found else None


ADD = known("test/test_ops.py::TestFooNPU::test_case_add_npu_int8", "test_case", "add")


@pytest.mark.parametrize(
    ("line", "test", "fits"),
    [
        # The four levels, on a test that has them all.
        ("test/test_ops.py", ADD, True),
        ("test_ops.py", ADD, True),
        ("test/test_op.py", ADD, False),
        ("TestFoo", ADD, True),
        ("TestFooNPU", ADD, True),
        ("TestFooCPU", ADD, False),
        ("test/test_ops.py::TestFoo", ADD, True),
        ("other/test_ops.py::TestFoo", ADD, False),
        ("TestFoo::test_case", ADD, True),
        ("TestFoo::test_case_add", ADD, True),
        ("TestFoo::test_case_ad", ADD, False),
        ("TestFooNPU::test_case_add_npu_int8", ADD, True),
        ("TestFooNPU::test_case_add_npu_int16", ADD, False),
        ("TestFoo::test_case dtypes=int8,int16", ADD, True),
        ("TestFoo::test_case dtypes=int16", ADD, False),
        ("operator=add", ADD, True),
        ("operator=add dtypes=int8", ADD, True),
        ("operator=add dtypes=int16", ADD, False),
        ("operator=add class=TestFoo", ADD, True),
        ("operator=add class=TestBar", ADD, False),
        ("TestFoo::test_case operator=add dtypes=int8", ADD, True),
        ("TestFoo::test_other operator=add", ADD, False),
        ("operator=dd", ADD, False),
        # A prefix of a class is another class.
        ("TestFo", ADD, False),
        ("TestFoo::test_case", known("a.py::TestFooBarNPU::test_case_npu"), False),
        # Nothing reaches the CPU's tests that does not name it.
        ("TestFoo", known("a.py::TestFooCPU::test_x_cpu_int8"), False),
        ("TestFoo::test_x", known("a.py::TestFooCPU::test_x_cpu_int8"), False),
        ("operator=add", known("a.py::TestFooCPU::test_x_add_cpu_int8", "test_x", "add"), False),
        ("operator=add", known("a.py::alias::test_x_add_cpu_int8", "test_x", "add"), False),
        ("a.py", known("a.py::TestFooCPU::test_x_cpu_int8"), False),
        ("a.py device=cpu", known("a.py::TestFooCPU::test_x_cpu_int8"), True),
        ("TestFoo device=cpu", known("a.py::TestFooCPU::test_x_cpu_int8"), True),
        ("TestFooCPU", known("a.py::TestFooCPU::test_x_cpu_int8"), True),
        # Tests without a device, and a class whose own name ends with one.
        ("TestFoo", known("a.py::TestFoo::test_x"), True),
        ("TestCUDA", known("a.py::TestCUDA::test_x"), True),
        ("TestCUDA::test_x", known("a.py::TestCUDA::test_x"), True),
        ("a.py::test_function", known("a.py::test_function"), True),
        ("b.py::test_function", known("a.py::test_function"), False),
        # pytest's parameters.
        ("TestFoo::test_d", known("a.py::TestFoo::test_d[1]"), True),
        ("TestFoo::test_d[1]", known("a.py::TestFoo::test_d[1]"), True),
        ("TestFoo::test_d[2]", known("a.py::TestFoo::test_d[1]"), False),
    ],
)  # fmt: skip
def test_a_rule_fits(line: str, test: KnownTest, fits: bool) -> None:
    assert (decided([line], test) is not None) is fits


def test_the_most_specific_rule_decides_whatever_the_order() -> None:
    lines = [
        "test_ops.py # file", "operator=add # operator", "TestFoo # class", "TestFoo::test_case # source",
        "TestFoo::test_case_add # test", "TestFoo::test_case_add dtypes=int8 # dtype",
    ]  # fmt: skip
    for order in itertools.permutations(lines):
        left = list(order)
        for expected in ("dtype", "test", "source", "class", "operator", "file"):
            assert decided(left, ADD) == expected
            left = [line for line in left if not line.endswith(expected)]


def test_of_equal_rules_the_first_decides() -> None:
    assert decided(["TestFoo mode=xfail # first", "TestFoo # second"], ADD) == "first"


def test_expired_rules_and_those_of_other_places_decide_nothing() -> None:
    assert decided(["TestFoo expires=2026-06-14 # over"], ADD) is None
    assert decided(["TestFoo expires=2026-06-15 # last day"], ADD) == "last day"
    assert decided(["TestFoo expires=2026-06-14 # over", "test_ops.py # file"], ADD) == "file"
    lines = ["TestFoo on=A2,A3 # A2"]
    assert decided(lines, ADD) is None
    assert decided(lines, ADD, conditions=frozenset({"A1"})) is None
    assert decided(lines, ADD, conditions=frozenset({"A3", "linux"})) == "A2"


class Counted(dict[Any, Any]):
    """Counts how often it is asked."""

    asked = 0

    def get(self, key: Any, default: Any = None) -> Any:
        Counted.asked += 1
        return super().get(key, default)


def test_a_look_up_costs_the_same_in_any_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in steps, and in entries that are looked at."""
    looked_at: list[str] = []

    def same_file(one: str, other: str) -> bool:
        looked_at.append(f"{one} {other}")
        return True

    monkeypatch.setattr(match, "same_file", same_file)
    steps = set()
    for number in (10, 3_000):
        lines = [f"test_ops.py::TestFoo::test_case_{n} dtypes=int8" for n in range(number)]
        lines += [f"dir{n}/test_{n}.py::TestFoo::test_case" for n in range(number)]
        lines += [f"TestFoo{n}" for n in range(number)]
        index = SkipIndex(entries(*lines), today=TODAY)
        index._by_class = Counted({owner: Counted(keys) for owner, keys in index._by_class.items()})
        Counted.asked = 0
        assert index.find(ADD) is None
        steps.add(Counted.asked)
        assert looked_at == []
    assert len(steps) == 1
    assert steps.pop() <= 20


def findings(*lines: str, tests: Optional[list[KnownTest]] = None) -> list[tuple[str, str]]:
    skips = SkipList(entries(*lines), (Problem("list:9", "nonsense"),))
    return [(finding.kind, finding.where) for finding in check(skips, tests, TODAY)][1:]


def test_malformed_parts_are_findings() -> None:
    (finding,) = check(SkipList((), (Problem("list:9", "nonsense"),)), None, TODAY)
    assert (finding.kind, finding.where, finding.what) == ("malformed", "list:9", "nonsense")


def test_expired_entries_are_findings() -> None:
    assert findings("TestA", "TestB expires=2026-06-14") == [("expired", "list:2")]


@pytest.mark.parametrize(
    "line", ["TestBar", "TestFoo::test_other", "operator=mul", "b.py", "TestFoo dtypes=int16"]
)
def test_entries_that_match_nothing_are_findings(line: str) -> None:
    assert findings("operator=add", line, tests=[ADD]) == [("stale", "list:2")]
    assert findings("operator=add", line) == []  # nobody said which tests there are


def test_an_entry_that_only_applies_elsewhere_is_not_stale() -> None:
    assert findings("TestFoo on=A9", tests=[ADD]) == []


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        (["TestFoo::test_a", "TestFoo::test_a"], ["list:2"]),
        (["TestFoo::test_a # one", "TestFoo::test_a # two"], ["list:2"]),
        (["TestFoo", "TestFoo::test_a"], ["list:2"]),
        (["TestFoo::test_a", "TestFoo"], ["list:1"]),
        (["TestFoo::test_a dtypes=int8", "TestFoo::test_a"], ["list:1"]),
        (["TestFoo::test_a dtypes=int8,int16", "TestFoo::test_a dtypes=int8"], ["list:2"]),
        (["a.py", "a.py::TestFoo::test_a"], ["list:2"]),
        (["operator=add", "operator=add dtypes=int8"], ["list:2"]),
        (["TestFoo", "TestFooNPU::test_a_npu_int8"], ["list:2"]),
        (["TestFoo", "TestFoo on=A2"], ["list:2"]),
        (["TestFoo", "TestFoo expires=2027-01-01"], ["list:2"]),
        # What differs says something of its own.
        (["TestFoo::test_a dtypes=int8,int16", "TestFoo::test_a dtypes=int8,int32"], []),
        (["TestFoo mode=xfail", "TestFoo::test_a"], []),
        (["TestFoo", "TestFoo::test_a mode=xfail", "TestFoo::test_a dtypes=int8"], []),
        (["TestFoo on=A2", "TestFoo::test_a"], []),
        (["TestFoo expires=2026-07-01", "TestFoo::test_a"], []),
        (["TestFoo expires=2020-01-01", "TestFoo::test_a"], []),
        (["a.py::TestFoo", "TestFoo::test_a"], []),
        (["a.py::TestFoo", "b.py::TestFoo::test_a"], []),
        (["TestFooCPU", "TestFoo::test_a"], []),
        (["operator=add class=TestFoo", "operator=add"], ["list:1"]),
        (["operator=add", "TestFoo"], []),
    ],
)
def test_entries_that_only_repeat_another_are_findings(lines: list[str], where: list[str]) -> None:
    found = [where for kind, where in findings(*lines) if kind == "redundant"]
    assert found == where


@pytest.mark.parametrize("number", [2, 3])
def test_of_entries_that_repeat_each_other_one_stays(number: int) -> None:
    assert len(findings(*["TestFoo::test_a"] * number)) == number - 1


ALL = [
    known(f"a.py::Test{cls}NPU::test_{method}_npu_{dtype}", f"test_{method}")
    for cls in "AB"
    for method in ("x", "y")
    for dtype in ("int8", "int16")
]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # All dtypes that there are: one rule without dtypes.
        (["TestANPU::test_x_npu_int8", "TestANPU::test_x_npu_int16"], ["TestA::test_x device=privateuse1"]),
        # Some of them: one rule that lists them.
        (["TestANPU::test_x_npu_int32", "TestANPU::test_x_npu_int8"],
         ["TestA::test_x device=privateuse1 dtypes=int8,int32"]),
        # One that is not there, and the two that are.
        (["TestA::test_x dtypes=int8", "TestA::test_x dtypes=int32", "TestA::test_x dtypes=int16"], ["TestA::test_x"]),
        # Nothing is known of these tests.
        (["TestC::test_x dtypes=int8", "TestC::test_x dtypes=int16"], ["TestC::test_x dtypes=int8,int16"]),
        # What differs stays apart.
        (["TestA::test_x dtypes=int8 # a", "TestA::test_x dtypes=int16 # b"],
         ["TestA::test_x dtypes=int8", "TestA::test_x dtypes=int16"]),
        (["TestA::test_x dtypes=int8", "TestA::test_x dtypes=int16 mode=xfail"],
         ["TestA::test_x dtypes=int8", "TestA::test_x dtypes=int16"]),
        (["TestA::test_x dtypes=int8", "TestA::test_x dtypes=int16 on=A2"],
         ["TestA::test_x dtypes=int8", "TestA::test_x dtypes=int16"]),
        # The first of equals decides; the later is not folded to a place before it.
        (["TestA::test_x dtypes=int16 # a", "TestA::test_x dtypes=int8 mode=xfail", "TestA::test_x dtypes=int8 # a"],
         ["TestA::test_x dtypes=int16", "TestA::test_x dtypes=int8"]),
        (["operator=add dtypes=int8", "operator=add dtypes=int16"], ["operator=add dtypes=int8,int16"]),
    ],
)  # fmt: skip
def test_entries_fold_into_rules_that_mean_the_same(lines: list[str], expected: list[str]) -> None:
    before = entries(*lines)
    after = compress(before, ALL)
    assert [entry.describe() for entry in after] == expected
    prove(before, after, ALL)


@pytest.mark.parametrize(
    ("lines", "folded"),
    [
        (["TestANPU::test_x_npu_int8"], ["TestA::test_x"]),
        (["TestANPU::test_x_npu_int8"], []),
        (["TestA::test_x"], ["TestA::test_x mode=xfail"]),
        (["TestA::test_x # why"], ["TestA::test_x # because"]),
        (["TestA::test_x on=A2"], ["TestA::test_x"]),
        (["TestA::test_x expires=2020-01-01"], ["TestA::test_x"]),
    ],
)
def test_the_proof_refuses_rules_that_mean_something_else(lines: list[str], folded: list[str]) -> None:
    with pytest.raises(BadSkipList, match="was not written") as caught:
        prove(entries(*lines), entries(*folded), ALL)
    assert "test_x" in caught.value.seen
