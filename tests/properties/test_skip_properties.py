"""What holds for any list and any test, not only for the ones somebody thought of."""

from __future__ import annotations

from datetime import date
from pathlib import PurePath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend_ci.testing.ids import TestNames, pytest_spelling, unittest_spelling
from backend_ci.testing.skips.check import check
from backend_ci.testing.skips.compress import compress, prove
from backend_ci.testing.skips.entry import Entry, SkipList
from backend_ci.testing.skips.match import KnownTest, SkipIndex
from backend_ci.testing.skips.read import read_skip_list
from backend_ci.testing.skips.write import FORMATS, render

on_a_busy_machine = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = TestNames(("npu",))
TODAY = date(2026, 1, 1)
classes = st.sampled_from(["TestA", "TestB", "TestACPU", "TestCUDA"])
methods = st.sampled_from(["test_x", "test_x_add", "test_y", "test_x_cpu", "test_d[1]"])
dtypes = st.sampled_from(["int8", "int16", "float16", "float8_e4m3fn"])
files = st.sampled_from(["", "a.py", "b/a.py", "c.py"])
devices = st.sampled_from(["", "NPU", "PRIVATEUSE1", "CPU"])

words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
reasons = st.lists(words.filter(lambda word: "#" not in word), max_size=3).map(" ".join)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Any entry that a list can hold."""
    operator = draw(st.sampled_from(["", "", "add", "linalg.norm"]))
    cls = draw(st.sampled_from(["", "TestA", "TestB"]))
    method = draw(st.sampled_from(["", "test_x", "test_x_add", "test_d[1]"])) if cls else ""
    file = draw(files)
    if not (operator or cls or file):
        cls = "TestA"
    return Entry(
        file=file,
        cls=cls,
        method=method,
        operator=operator,
        device=draw(st.sampled_from([None, "privateuse1", "cpu"])),
        dtypes=tuple(draw(st.lists(dtypes, unique=True, max_size=3))) if cls or operator else (),
        mode=draw(st.sampled_from(["skip", "xfail", "xfail-strict"])),
        reason=draw(st.one_of(st.just(""), reasons)),
        expires=draw(st.sampled_from([None, date(2025, 1, 1), date(2027, 1, 1)])),
        on=tuple(draw(st.lists(st.sampled_from(["A1", "A2"]), unique=True))),
    )


@st.composite
def known_tests(draw: st.DrawFn) -> KnownTest:
    device = draw(devices)
    cls, method, dtype = draw(classes), draw(methods), draw(dtypes)
    plain, bracket, rest = method.partition("[")
    token = (
        draw(st.sampled_from(["npu", "privateuse1"])) if device in ("NPU", "PRIVATEUSE1") else device.lower()
    )
    name = f"{plain}_{token}_{dtype}{bracket}{rest}" if device else method
    text = "::".join(part for part in (draw(files), cls + device, name) if part)
    return KnownTest(NAMES.parse(text), text, plain, draw(st.sampled_from(["", "add"])))


@on_a_busy_machine
@given(known_tests())
def test_any_id_is_written_as_it_was_read(test: KnownTest) -> None:
    assert pytest_spelling(test.id) == test.text
    assert NAMES.parse(unittest_spelling(test.id)).key == test.id.key


@on_a_busy_machine
@given(st.lists(entries(), max_size=12), st.lists(known_tests(), max_size=12))
def test_folded_rules_mean_the_same(listed: list[Entry], universe: list[KnownTest]) -> None:
    prove(listed, compress(listed, universe), universe)


@on_a_busy_machine
@given(st.lists(entries(), max_size=8), st.lists(known_tests(), max_size=12))
def test_without_its_redundant_entries_a_list_means_the_same(
    listed: list[Entry], universe: list[KnownTest]
) -> None:
    named = [Entry(**{**vars(entry), "where": str(number)}) for number, entry in enumerate(listed)]
    redundant = {
        finding.where
        for finding in check(SkipList(tuple(named), ()), None, TODAY)
        if finding.kind == "redundant"
    }
    kept = [entry for entry in named if entry.where not in redundant]
    for conditions in (frozenset[str](), frozenset({"A1"}), frozenset({"A2"})):
        before = SkipIndex(named, today=TODAY, conditions=conditions)
        after = SkipIndex(kept, today=TODAY, conditions=conditions)
        for test in universe:
            was, now = before.find(test), after.find(test)
            assert (was and was.mode) == (now and now.mode)


@pytest.mark.parametrize("ending", FORMATS)
@on_a_busy_machine
@given(listed=st.lists(entries(), max_size=6))
def test_any_list_is_read_as_it_was_written(
    ending: str, listed: list[Entry], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("list") / f"skips.{ending}"
    path.write_text(render(listed, PurePath(path)), encoding="utf-8")
    read = read_skip_list(path, ("npu",))
    assert read.problems == ()
    assert [Entry(**{**vars(entry), "where": ""}) for entry in read.entries] == listed


@pytest.mark.parametrize("ending", ["json", "yml", "toml"])
@on_a_busy_machine
@given(reason=st.text(st.characters(exclude_categories=("Cs",))))
def test_any_text_survives_a_structured_format(
    ending: str, reason: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("list") / f"skips.{ending}"
    path.write_text(render([Entry(cls="TestA", reason=reason)], PurePath(path)), encoding="utf-8")
    (entry,) = read_skip_list(path).entries
    assert entry.reason == reason.strip()
