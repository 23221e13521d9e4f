"""`crcr lint` as a user, lintrunner and GitHub run it; and the list that can only shrink."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from source_tree import HEAD
from step import Step

from backend_ci.testing.lint.ratchet import judge

CLEAN = HEAD + (
    "class TestA(TestCase):\n    hw_classification = HardwareClassification.GENERIC\n    def test_a(self): pass\n"
)
DIRTY = HEAD + "class TestA(TestCase):\n    def test_a(self): x.cuda()\n"


@pytest.fixture
def work(step: Step) -> Step:
    """A repository with one clean and one dirty file."""
    write(step, "test/test_clean.py", CLEAN)
    write(step, "test/test_dirty.py", DIRTY)
    git(step, "init", "--quiet")
    return step


def write(step: Step, name: str, text: str) -> None:
    path = step.workspace / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def git(step: Step, *arguments: str) -> None:
    name = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *name, *arguments], cwd=step.workspace, check=True, capture_output=True)


def commit(step: Step) -> None:
    git(step, "add", "--all")
    git(step, "commit", "--quiet", "--message", "x")


def lint(step: Step, *arguments: str) -> tuple[int, str]:
    ended = step.run("lint", "test", "--cache", "none", *arguments, GITHUB_ACTIONS=None)
    assert "Traceback" not in ended.everything
    return ended.exit_code, ended.stdout


def listed(step: Step) -> list[str]:
    value: list[str] = json.loads((step.workspace / "list.json").read_text(encoding="utf-8"))
    return value


def test_text(work: Step) -> None:
    code, out = lint(work)
    assert code == 53
    assert "test/test_dirty.py:7: error: [hw_classification] Test class TestA declares no" in out
    assert "test/test_dirty.py:8:23: warning: [hard_coded_device] .cuda() moves to cuda only" in out
    assert "error: 2 findings in 1 file." in out


def test_nothing_found(work: Step) -> None:
    (work.workspace / "test/test_dirty.py").unlink()
    assert lint(work) == (0, "1 file checked: 0 findings.\n")


def test_lintrunner_s_lines(work: Step) -> None:
    ended = work.run("lint", "test", "--format", "json", "--exit-zero", "--cache", "none")
    assert ended.exit_code == 0
    messages = [json.loads(line) for line in ended.stdout.splitlines()]  # nothing else is on standard output
    assert [message["name"] for message in messages] == ["[hw_classification]", "[hard_coded_device]"]
    for message in messages:
        assert set(message) == {
            "path", "line", "char", "code", "severity", "name", "original", "replacement", "description",
        }  # fmt: skip
        assert (message["path"], message["code"]) == ("test/test_dirty.py", "TEST_LINTER")
        assert message["severity"] in ("error", "warning", "advice", "disabled")
    assert messages[0]["char"] is None
    older = work.run("lint", "test", "--format", "json", "--linter", "HW_CLASSIFICATION", "--cache", "none")
    assert older.exit_code == 53
    assert {json.loads(line)["code"] for line in older.stdout.splitlines()} == {"HW_CLASSIFICATION"}


def test_annotations(work: Step) -> None:
    ended = work.run("lint", "test", "--format", "github", "--cache", "none")
    first, second, *_ = ended.commands
    assert (first.name, second.name) == ("error", "warning")
    assert "file=test/test_dirty.py,line=7" in first.properties
    assert "Instead: .to(device)" in second.data.replace("%0A", " ")


def test_only_upstream_s_rules(work: Step) -> None:
    assert "1 finding in 1 file" in lint(work, "--hard-coded-devices", "false")[1]


def test_what_upstream_leaves_out_is_left_out(work: Step) -> None:
    for folder in ("cpython", "cpp_extensions/open_registration_extension"):
        (work.workspace / "test" / folder).mkdir(parents=True)
        (work.workspace / "test" / folder / "test_x.py").write_text(DIRTY, encoding="utf-8")
    assert "2 findings in 1 file" in lint(work)[1]


def test_one_file_is_judged_with_those_that_instantiate_it(work: Step) -> None:
    write(
        work,
        "test/test_made.py",
        CLEAN.replace("GENERIC", "ACCELERATOR").replace("(self)", "(self, device)"),
    )
    alone = ("lint", "test/test_made.py", "--cache", "none")
    assert "[instantiation]" in work.run(*alone, GITHUB_ACTIONS=None).stdout
    text = HEAD + "from test_made import TestA\ninstantiate_device_type_tests(TestA, globals())\n"
    write(work, "test/test_all.py", text)
    assert work.run(*alone).exit_code == 0


def test_the_list_is_made_and_excepts(work: Step) -> None:
    assert lint(work, "--ratchet", "list.json")[0] == 2  # not there
    assert lint(work, "--ratchet", "list.json", "--update")[0] == 0
    assert listed(work) == ["test/test_dirty.py"]
    assert lint(work, "--ratchet", "list.json")[0] == 0
    write(work, "test/test_new.py", DIRTY)
    code, out = lint(work, "--ratchet", "list.json")
    assert (code, "test_new.py" in out, "test_dirty.py" in out) == (53, True, False)


def test_a_clean_file_must_leave_the_list(work: Step) -> None:
    lint(work, "--ratchet", "list.json", "--update")
    commit(work)
    write(work, "test/test_dirty.py", CLEAN)
    code, out = lint(work, "--ratchet", "list.json")
    assert code == 53
    assert "[ratchet] test/test_dirty.py keeps the rules now" in out
    assert lint(work, "--ratchet", "list.json", "--update")[0] == 0
    assert listed(work) == []


def test_a_file_that_is_gone_must_leave_the_list(work: Step) -> None:
    lint(work, "--ratchet", "list.json", "--update")
    commit(work)
    (work.workspace / "test/test_dirty.py").unlink()
    assert "[ratchet] test/test_dirty.py is not there any more" in lint(work, "--ratchet", "list.json")[1]


def test_the_list_cannot_grow(work: Step) -> None:
    lint(work, "--ratchet", "list.json", "--update")
    commit(work)
    write(work, "test/test_new.py", DIRTY)
    longer = json.dumps(["test/test_dirty.py", "test/test_new.py"])
    write(work, "list.json", longer)
    code, out = lint(work, "--ratchet", "list.json")
    assert code == 53
    assert "[ratchet] test/test_new.py was not in the list before" in out
    code, out = lint(work, "--ratchet", "list.json", "--update")  # takes it out; its findings remain
    assert (code, listed(work)) == (53, ["test/test_dirty.py"])
    assert "test/test_new.py:7" in out


def test_the_list_is_compared_with_a_named_commit(work: Step) -> None:
    lint(work, "--ratchet", "list.json", "--update")
    commit(work)
    write(work, "test/test_new.py", DIRTY)
    write(work, "list.json", json.dumps(["test/test_dirty.py", "test/test_new.py"]))
    commit(work)  # a pull request whose own commit has the longer list
    assert lint(work, "--ratchet", "list.json")[0] == 0
    assert lint(work, "--ratchet", "list.json", "--ratchet-base", "HEAD~1")[0] == 53
    code, out = lint(work, "--ratchet", "list.json", "--ratchet-base", "nowhere")
    assert code == 2
    assert "is not there" in out
    assert lint(work, "--ratchet", "list.json", "--ratchet-base=--output=x")[0] == 2


@pytest.mark.parametrize("text", ["{}", "[1]", "[", "", "\xff", "[" * 20_000])
def test_a_broken_list(work: Step, text: str) -> None:
    (work.workspace / "list.json").write_bytes(text.encode("latin-1"))
    code, out = lint(work, "--ratchet", "list.json")
    assert code == 2
    assert "list of exceptions cannot be read" in out


def test_update_needs_a_list(work: Step) -> None:
    assert lint(work, "--update")[0] == 2


def test_without_git_the_list_is_not_compared(step: Step) -> None:
    write(step, "test/test_dirty.py", DIRTY)
    write(step, "list.json", '["test/test_dirty.py"]')
    code, out = lint(step, "--ratchet", "list.json")
    assert code == 0
    assert "not compared" in out


def test_judge() -> None:
    judged = judge(
        listed=("a", "b", "c", "d", "e"),
        before=("a", "b", "c", "d"),
        examined={"a", "b"},
        dirty={"b"},
        gone={"d"},
    )
    assert (judged.clean, judged.gone, judged.new, judged.left) == (("a",), ("d",), ("e",), ("b", "c"))
    assert judge(("a",), None, {"a"}, {"a"}, ()).left == ("a",)


def test_options_and_paths_may_be_mixed(work: Step) -> None:
    ended = work.run("lint", "test/test_clean.py", "--cache", "none", "--exit-zero", "test/test_dirty.py")
    assert ended.exit_code == 0
    assert "2 files checked: 2 findings" in ended.stdout
    assert Path(work.workspace).is_dir()
