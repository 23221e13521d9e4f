"""`crcr skips check` and `crcr skips compress` as a person meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crcr.cli import main
from relay_client.documents.document import save
from relay_client.documents.plan import Collected, Plan, Selection, TestOrigin

TESTS = [f"test/test_a.py::TestFooNPU::test_x_{op}_npu_{dtype}" for op in "ab" for dtype in ("int8", "int16")]
IDS = "# collected\n" + "\n".join(TESTS) + "\n\n"


class Shell:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ids.txt").write_text(IDS, encoding="utf-8")

    def list(self, text: str, name: str = "skips.txt") -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def crcr(self, *arguments: str) -> int:
        environment = {"GITHUB_WORKSPACE": str(self.folder), "PATH": "/usr/bin:/bin"}
        return main(["skips", *arguments, "--backend", "npu"], environment)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_list_in_order(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.list("TestFoo::test_x_a\n")
    assert shell.crcr("check", "--skips", "skips.txt", "--against", "ids.txt") == 0
    assert "1 entries checked, 0 findings" in capsys.readouterr().out


def test_each_finding_is_listed_under_its_kind(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.list(
        "TestFoo::test_x_a\nTestGone\ntest_alone\nTestFoo::test_x_b expires=2020-01-01\nTestFoo::test_x_a\n"
    )
    assert shell.crcr("check", "--skips", "skips.txt", "--against", "ids.txt") == 54
    out = capsys.readouterr().out
    for kind, where in (("malformed", 3), ("expired", 4), ("redundant", 5), ("stale", 2)):
        assert f"{kind}: 1 entries" in out
        assert f"  skips.txt:{where}: " in out
    assert "4 findings" in out
    assert shell.crcr(
        "check", "--skips", "skips.txt", "--against", "ids.txt", "--allow", "malformed,expired,redundant,stale"
    ) == 0  # fmt: skip


def test_without_tests_nothing_is_called_stale(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.list("TestGone\n")
    assert shell.crcr("check", "--skips", "skips.txt") == 0
    assert "stale: not asked" in capsys.readouterr().out


def test_a_plan_tells_the_tests_the_operators_and_the_backend(shell: Shell) -> None:
    plan = Plan(
        "5f" * 20, Selection(()), Collected(4, 0, 0, 0, 0), ("test",), tuple(TESTS), (), (),
        device="npu", origins=(TestOrigin((TESTS[0], TESTS[1]), "test_x", "a"),),
    )  # fmt: skip
    save(plan, shell.folder)
    environment = {"GITHUB_WORKSPACE": str(shell.folder)}
    shell.list("operator=a dtypes=int8\nTestFooNPU::test_x_b_npu_int8\n")
    given = ["skips", "check", "--skips", "skips.txt", "--against", "plan.json"]
    assert main(given, environment) == 0
    shell.list("operator=b\n")
    assert main(given, environment) == 54


@pytest.mark.parametrize("ending", ["json", "txt"])
def test_a_list_is_folded_and_means_the_same(
    shell: Shell, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.list(
        json.dumps({f"{name.rpartition('::')[2]} (__main__.TestFooNPU)": ["", [""]] for name in TESTS}),
        "l.json",
    )
    given = ("--skips", "l.json", "--against", "ids.txt", "--output", f"rules.{ending}")
    assert shell.crcr("compress", *given) == 0
    assert "4 entries became 2 rules; proved on 4 tests" in capsys.readouterr().out
    assert shell.crcr("check", "--skips", f"rules.{ending}", "--against", "ids.txt") == 0
    assert sorted(path.name for path in shell.folder.iterdir()) == ["ids.txt", "l.json", f"rules.{ending}"]


def test_what_a_format_cannot_hold_is_refused(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.list('{"skips": [{"test": "TestFoo::test_d[a b]"}]}', "l.json")
    given = ("--skips", "l.json", "--against", "ids.txt", "--output", "rules.txt")
    assert shell.crcr("compress", *given) == 54
    assert "cannot be written in this format" in capsys.readouterr().out
    assert not (shell.folder / "rules.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check",), "no --skips"),
        (("compress", "--skips", "skips.txt"), "no --against"),
        (("compress", "--skips", "skips.txt", "--against", "ids.txt", "--output", "rules.xml"), "rules.xml"),
        (("compress", "--skips", "skips.txt", "--against", "ids.txt", "--output", "no/rules.txt"), "cannot be written"),
        (("check", "--skips", "skips.txt", "--against", "gone.txt"), "gone.txt"),
        (("check", "--skips", "skips.txt", "--against", "skips.txt"), "skips.txt:1"),
        (("check", "--skips", "skips.txt", "--allow", "all"), "malformed, expired"),
    ],
)  # fmt: skip
def test_wrong_use_is_said(
    shell: Shell, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.list("TestFoo\n")
    assert shell.crcr(*arguments) == 2
    assert said in capsys.readouterr().out


def test_names_of_verbs_may_be_two_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["skips", "colour"], {})
    assert caught.value.code == 2
    assert "no verb 'skips'" in capsys.readouterr().err
