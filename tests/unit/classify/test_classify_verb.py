"""`crcr classify` as a user runs it."""

from __future__ import annotations

import json

import pytest
from source_tree import HEAD
from step import Step

TEXT = (
    HEAD
    + """
class TestDeclared(TestCase):
    hw_classification = HardwareClassification.GENERIC
    def test_a(self): pass

class TestChild(TestDeclared):
    def test_b(self): pass

class TestOpen(TestCase):
    def test_c(self, device): pass
    def test_d(self, device): pass

instantiate_device_type_tests(TestOpen, globals(), except_for="cpu")
raise SystemExit("it was imported")
"""
)


@pytest.fixture
def tree(step: Step) -> Step:
    (step.workspace / "test").mkdir()
    (step.workspace / "test" / "test_one.py").write_text(TEXT, encoding="utf-8")
    (step.workspace / "test" / "test_two.py").write_text("def broken(:\n", encoding="utf-8")
    return step


def test_the_table(tree: Step) -> None:
    ended = tree.run("classify", "test", "--cache", "none", GITHUB_ACTIONS=None)
    assert ended.exit_code == 0
    lines = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert "8 TestDeclared GENERIC 1 no declared" in lines
    assert "12 TestChild GENERIC 2 no inherited from test/test_one.py::TestDeclared" in lines
    proposal = "proposed: instantiated for devices, and every test takes the device"
    assert f"15 TestOpen ACCELERATOR? 2 yes, except_for=cpu {proposal}" in lines
    assert any(line.startswith("test/test_two.py:1: this Python cannot parse it") for line in lines)
    assert lines[-1] == (
        "3 test classes (5 tests) in 2 files: 1 declared, 1 inherited, 1 unclassified (2 tests; they are skipped; "
        "a class is proposed for 1); 1 file could not be read."
    )


def test_json_keeps_proposals_apart(tree: Step) -> None:
    ended = tree.run("classify", "--format", "json", "test", "--cache", "none")
    value = json.loads(ended.stdout)
    assert value["counts"] == {"declared": 1, "inherited": 1, "unclassified": 1, "unreadable": 0}
    (row,) = [row for row in value["classes"] if row["class"] == "TestOpen"]
    assert (row["classification"], row["proposed"], row["how"]) == (None, "ACCELERATOR", "unclassified")
    assert row["except_for"] == ["cpu"]
    assert row["instantiated_at"] == "test/test_one.py:19"
    assert value["problems"][0]["file"] == "test/test_two.py"


def test_markdown_begins_with_the_counts(tree: Step) -> None:
    ended = tree.run("classify", "test", "--format", "markdown", "--cache", "none")
    assert ended.stdout.startswith("3 test classes (5 tests) in 2 files")
    assert "| ACCELERATOR? |" in ended.stdout


@pytest.mark.parametrize(
    ("policy", "code", "words"),
    [("run", 0, "they run"), ("skip", 0, "they are skipped"), ("fail", 50, "TestOpen")],
)
def test_the_policy_for_unclassified_classes(tree: Step, policy: str, code: int, words: str) -> None:
    ended = tree.run("classify", "test", "--cache", "none", "--unclassified", policy)
    assert ended.exit_code == code
    assert words in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "No test file is named"),
        (("nowhere",), "A path is not there"),
        (("test", "--format", "xml"), "format has a value"),
    ],
)
def test_wrong_use(tree: Step, arguments: tuple[str, ...], words: str) -> None:
    ended = tree.run("classify", *arguments)
    assert ended.exit_code == 2
    assert words in ended.stdout


def test_a_folder_without_tests(tree: Step) -> None:
    (tree.workspace / "empty").mkdir()
    ended = tree.run("classify", "empty")
    assert ended.exit_code == 2
    assert "There is no test file" in ended.stdout


def test_the_second_run_reads_from_the_cache(tree: Step) -> None:
    cache = tree.temporary / "facts"
    first = tree.run("classify", "test", "--cache", str(cache))
    assert cache.is_file()
    assert tree.run("classify", "test", "--cache", str(cache)).stdout == first.stdout
