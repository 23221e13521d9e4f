"""Every format says the same, and what cannot be read is named where it stands."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path, PurePath
from typing import Any

import pytest

from backend_ci.testing.skips.entry import Entry
from backend_ci.testing.skips.read import read_skip_list
from backend_ci.testing.skips.write import render
from relay_client.errors import BadSkipList

ENTRIES = (
    Entry(file="test/test_ops.py", reason="needs a newer driver"),
    Entry(cls="TestFoo", mode="xfail", issue="https://example.org/7", expires=date(2027, 1, 31)),
    Entry(cls="TestFoo", device="privateuse1", spelled="TestFooNPU"),
    Entry(file="a.py", cls="TestA.TestInner", method="test_d[1]"),
    Entry(cls="TestFoo", method="test_add", device="privateuse1", dtypes=("float16", "complex64_int16")),
    Entry(cls="TestFoo", method="test_add", device="cpu", dtypes=("int8",)),
    Entry(cls="TestFoo", method="check_it", file="b/c.py", mode="xfail-strict"),
    Entry(operator="linalg.norm", dtypes=("int8", "int16"), on=("A2", "910A"), reason='no "kernel" # ümlaut'),
    Entry(operator="add", cls="TestFoo", method="test_add"),
)
MARKS: dict[str, Any] = {
    "json": (),
    "txt": (),
    "toml": pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is of Python 3.11"),
}


def written(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, text: str, name: str = "skips.txt") -> tuple[Entry, ...]:
    skips = read_skip_list(written(folder, text, name), ("npu",))
    assert skips.problems == ()
    return tuple(replace(entry, where="") for entry in skips.entries)


@pytest.mark.parametrize("ending", [pytest.param(name, marks=mark) for name, mark in MARKS.items()])
def test_what_was_written_is_read_the_same(ending: str, tmp_path: Path) -> None:
    name = f"skips.{ending}"
    assert read(tmp_path, render(ENTRIES, PurePath(name)), name) == ENTRIES
    assert read(tmp_path, render((), PurePath(name)), name) == ()


@pytest.mark.parametrize("ending", ["yml", "yaml"])
def test_yaml_is_read_where_pyyaml_is(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    name = f"skips.{ending}"
    assert read(tmp_path, render(ENTRIES, PurePath(name)), name) == ENTRIES
    text = "backend: toy\nskips:\n- test: [TestFooTOY::test_a_toy, TestB::test_b]\n  expires: 2027-01-31\n"
    first, second = read(tmp_path, text, name)
    assert (first.device, first.expires, second.cls) == ("privateuse1", date(2027, 1, 31), "TestB")


@pytest.mark.parametrize(("package", "name"), [("yaml", "skips.yml"), ("tomllib", "skips.toml")])
def test_a_format_without_its_package_says_so(
    package: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadSkipList, match="and it is not there") as caught:
        read_skip_list(written(tmp_path, "", name))
    assert caught.value.exit_code == 54
    assert "JSON" in caught.value.fix


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("test_add_npu_int8 (__main__.TestFooNPU)", Entry(cls="TestFoo", method="test_add", device="privateuse1", dtypes=("int8",))),
        ("test_x (__main__.TestFoo)  # why", Entry(cls="TestFoo", method="test_x", reason="why")),
        ("TestFoo.test_x", Entry(cls="TestFoo", method="test_x")),
        ("TestA::TestInner", Entry(cls="TestA.TestInner")),
        ("TestFooNPU::test_add dtypes=torch.int8", Entry(cls="TestFoo", method="test_add", device="privateuse1", dtypes=("int8",), spelled="TestFooNPU")),
        ("test/test_x.py", Entry(file="test/test_x.py")),
        ("test/test_x.py::TestFoo", Entry(file="test/test_x.py", cls="TestFoo")),
        ("test/test_x.py::test_function", Entry(file="test/test_x.py", method="test_function")),
        ("operator=add class=TestFoo device=NPU", Entry(operator="add", cls="TestFoo", device="privateuse1")),
        ("TestFoo issue=#12 mode=xfail", Entry(cls="TestFoo", issue="#12", mode="xfail")),
    ],
)  # fmt: skip
def test_a_line_says_what_is_meant(line: str, expected: Entry, tmp_path: Path) -> None:
    assert read(tmp_path, f"# a list\n\n{line}\n") == (expected,)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("test_alone", "without its class"),
        ("TestFoo::test_x mode=maybe", "skip, xfail, xfail-strict"),
        ("TestFoo::test_x expires=soon", "YYYY-MM-DD"),
        ("TestFoo::test_x expires=2026-13-01", "YYYY-MM-DD"),
        ("TestFoo::test_x issue=later", "https://"),
        ("TestFoo::test_x dtypes=float33", "float33"),
        ("TestFoo::test_x device=toaster", "toaster"),
        ("TestFoo::test_x colour=red", "colour"),
        ("TestFooNPU::test_x_npu_int8 dtypes=int8", "holds a dtype already"),
        ("TestFoo class=TestBar", "names a class already"),
        ("a.py file=b.py", "names a file already"),
        ("dtypes=int8", "nothing is named"),
        ("TestFoo and more", "WHAT"),
        ("two words.py", "WHAT"),
        ("a.py::TestFoo::test_x[1", "not closed"),
    ],
)
def test_a_wrong_line_is_named_and_spoils_no_other(line: str, said: str, tmp_path: Path) -> None:
    skips = read_skip_list(written(tmp_path, f"TestBefore\n{line}\nTestAfter\n", "skips.txt"), ("npu",))
    assert [entry.cls for entry in skips.entries] == ["TestBefore", "TestAfter"]
    (problem,) = skips.problems
    assert problem.where == "skips.txt:2"
    assert said in problem.what


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (5, "is no entry"),
        ({}, "nothing is named"),
        ({"test": 5}, "write text"),
        ({"test": "TestFoo", "dtypes": 5}, "write a list"),
        ({"test": "TestFoo", "dtype": ["int8"]}, "there is no \"dtype\""),
        ({"test": "TestFoo", "issue": ["#1"]}, "issue is"),
        ({"test": "TestFoo", "on": [5]}, "on is 5"),
        ({"test": "TestFoo", "mode": []}, "mode is"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_named(entry: object, said: str, tmp_path: Path) -> None:
    text = json.dumps({"skips": [entry, {"test": "TestAfter"}], "colour": 1})
    skips = read_skip_list(written(tmp_path, text, "skips.json"))
    assert [found.cls for found in skips.entries] == ["TestAfter"]
    first, second = skips.problems
    assert "colour" in first.what
    assert second.where == "skips.json: entry 1"
    assert said in second.what


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{", "skips.json"),
        ("[" * 100_000, "skips.json"),
        ("[]", "skips.json"),
        ('{"skips": 5}', "skips.json"),
        ('{"test_x (__main__.TestFoo)": 5}', "skips.json"),
        ('{"skips": [], "backend": 5}', "skips.json"),
        ("\udc80", "skips.txt"),
    ],
)
def test_a_file_of_no_format_is_an_error(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(BadSkipList) as caught:
        read_skip_list(path)
    assert str(path) in caught.value.seen
    assert caught.value.fix


def test_a_missing_list_and_a_giant_one_are_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "no.json", tmp_path):
        with pytest.raises(BadSkipList, match="cannot be read"):
            read_skip_list(path)
    giant = tmp_path / "giant.json"
    with giant.open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(BadSkipList, match="too large"):
        read_skip_list(giant)


def test_pytorchs_list(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "test_x (__main__.TestFoo)": ["12", "https://example.org/12", ["linux", "rocm"]],
            "test_y (__main__.TestFoo)": ["13", "https://example.org/13", []],
        }
    )
    first, second = read(tmp_path, text, "disabled-tests.json")
    assert (first.method, first.issue, first.on) == ("test_x", "https://example.org/12", ("linux", "rocm"))
    assert "issue 12" in first.reason
    assert second.on == ()


def test_torch_npus_list_also_for_a_backend_of_another_name(tmp_path: Path) -> None:
    listed = {
        "test_add_npu_int8 (__main__.TestFooPRIVATEUSE1)": ["", [""]],
        "test_x (jit.test_freezing.TestFreezing)": ["slow", ["A2", "910A"]],
        "test_y (__main__.TestFoo)": ["", ["Disabled while chips change"]],
        "setUpClass (__main__.TestBar)": ["", [""]],
    }
    path = written(tmp_path, json.dumps(listed), "list.json")
    skips = read_skip_list(path, ("toy",))
    assert skips.problems == ()
    add, frozen, sentence, whole = skips.entries
    assert (add.cls, add.method, add.device, add.dtypes) == ("TestFoo", "test_add", "privateuse1", ("int8",))
    assert (frozen.file, frozen.on, frozen.reason) == ("jit/test_freezing.py", ("A2", "910A"), "slow")
    assert (sentence.on, sentence.reason) == ((), "Disabled while chips change")
    assert (whole.cls, whole.method) == ("TestBar", "")


@pytest.mark.parametrize(
    ("key", "details"),
    [
        ("test_x", ["", [""]]),
        ("TestFoo", ["", [""]]),
        ("test_x ( main .TestFoo)", ["", [""]]),
        ("test_x (__mainTestFoo)", ["", [""]]),
        ("test_x (__main__.TestFoo)", []),
        ("test_x (__main__.TestFoo)", ["", ""]),
        ("test_x (__main__.TestFoo)", ["", "", "", []]),
    ],
)
def test_a_malformed_entry_of_theirs_is_a_problem_of_its_own(
    key: str, details: list[object], tmp_path: Path
) -> None:
    text = json.dumps({"test_a (__main__.TestA)": ["", [""]], key: details})
    skips = read_skip_list(written(tmp_path, text, "list.json"))
    assert len(skips.entries) == 1
    assert [problem.where for problem in skips.problems] == ["list.json: entry 2"]
    assert not skips.strict
