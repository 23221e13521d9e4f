"""Files that were not written to be read: each gets a word of its own, and none ends the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from step import Step

from backend_ci.testing.classify.cache import Cache
from backend_ci.testing.classify.read import Reader, find_files
from relay_client.errors import UsageError

GOOD = "class TestGood:\n    def test_a(self): pass\n"


def problem(path: Path) -> str:
    good = path.with_name("test_good.py")
    good.write_text(GOOD, encoding="utf-8")
    found = Reader(Cache(None), {}, print).read([str(path), str(good)])
    assert found[str(good)].classes[0].name == "TestGood"  # the others are read all the same
    return found[str(path)].problem


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"def broken(:\n", "this Python cannot parse it"),
        (b"x = 1\n\x00y = 2\n", "null bytes"),
        (b"\xff\xfe\x00", "null bytes|cannot parse|decode"),
        (b"# coding: no-such-codec\n", "unknown encoding|cannot parse"),
        (b"x = '\xff'\n", "utf-8|decode|cannot parse"),
        (b"#" * 10_000_000, "more than"),
        (b"x = " + b"(" * 5_000 + b")" * 5_000, "nested|too many"),
        (b"x = " + b"-" * 100_000 + b"1", "nested|too complex|died"),
        (b"x = " + b"+".join([b"a"] * 200_000), "nested|died"),  # a segmentation fault on Python 3.9
        (b"x = a" + b"()" * 200_000, "nested|died"),
    ],
)  # fmt: skip
def test_a_hostile_file_gets_a_word(tmp_path: Path, content: bytes, word: str) -> None:
    import re

    path = tmp_path / "test_a.py"
    path.write_bytes(content)
    assert re.search(word, problem(path))


@pytest.mark.parametrize(
    "content", [b"", b"\xef\xbb\xbfx = 1\n", b"x = '\\d'\n", b"class A: pass\r\nx = 1\r"]
)
def test_an_odd_but_good_file_is_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "test_a.py"
    path.write_bytes(content)
    assert problem(path) == ""


def test_a_link_to_itself_and_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "test_loop.py").symlink_to("test_loop.py")
    assert "cannot be read" in problem(tmp_path / "test_loop.py")
    (tmp_path / "test_gone.py").symlink_to("nowhere.py")
    assert "cannot be read" in problem(tmp_path / "test_gone.py")
    (tmp_path / "test_folder.py").mkdir()
    assert "cannot be read" in problem(tmp_path / "test_folder.py")


def test_a_folder_that_links_to_its_parent_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "inner" / "test_a.py").write_text(GOOD, encoding="utf-8")
    assert find_files(["."], tmp_path) == [str(tmp_path / "inner" / "test_a.py")]


def test_hidden_folders_and_other_files_are_left_out(tmp_path: Path) -> None:
    for name in (
        ".venv/test_a.py",
        "__pycache__/test_b.py",
        "helper.py",
        "test_c.txt",
        "test_d.py",
        "e_test.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(GOOD, encoding="utf-8")
    assert [Path(path).name for path in find_files(["."], tmp_path)] == ["e_test.py", "test_d.py"]
    assert find_files(["helper.py"], tmp_path) == [str(tmp_path / "helper.py")]  # named, so meant


def test_a_list_of_paths(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(GOOD, encoding="utf-8")
    (tmp_path / "list").write_text("\ntest_a.py\n", encoding="utf-8")
    assert find_files(["@list"], tmp_path) == [str(tmp_path / "test_a.py")]
    with pytest.raises(UsageError, match="list of paths"):
        find_files(["@nowhere"], tmp_path)
    with pytest.raises(UsageError, match="not there"):
        find_files(["nowhere"], tmp_path)


def test_deep_inheritance_and_circles_of_imports_end(step: Step) -> None:
    chain = "class C0: pass\n" + "".join(f"class C{n}(C{n - 1}): pass\n" for n in range(1, 3_000))
    (step.workspace / "test_deep.py").write_text(
        f"{chain}class TestA(C2999):\n    def test_a(self): pass\n", encoding="utf-8"
    )
    for one, other in (("a", "b"), ("b", "a")):
        (step.workspace / f"test_{one}.py").write_text(
            f"from test_{other} import *\nfrom test_{other} import Base\n"
            "class TestA(Base):\n    def test_a(self): pass\n",
            encoding="utf-8",
        )
    ended = step.run("classify", ".", "--cache", "none", "--format", "json")
    assert ended.exit_code == 0
    assert len(json.loads(ended.stdout)["classes"]) == 3


def test_a_name_cannot_speak_to_the_runner(step: Step) -> None:
    folder = step.workspace / "##[error]x"
    folder.mkdir()
    (folder / "test_::error::y|`<b>.py").write_text(GOOD + "def broken(:\n", encoding="utf-8")
    (folder / "test_b.py").write_text(GOOD, encoding="utf-8")
    for form in ("table", "json", "markdown"):
        ended = step.run("classify", ".", "--cache", "none", "--format", form)
        assert ended.exit_code == 0
        assert ended.commands == []
    assert "<b>" not in step.run("classify", ".", "--cache", "none", "--format", "markdown").stdout
    ended = step.run("lint", ".", "--cache", "none", "--format", "github", "--exit-zero")
    assert {command.name for command in ended.commands} == {"error"}
