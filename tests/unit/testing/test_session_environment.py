"""`test-environment:` lines, and what a test may see of its job."""

from __future__ import annotations

from pathlib import Path

import pytest
from hardware_job import HardwareJob

from backend_ci.testing.session import read_environment
from relay_client.errors import UsageError


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((), {}),
        (("A=1",), {"A": "1"}),
        (("A=1", "B_2=two words"), {"A": "1", "B_2": "two words"}),
        (("A=b=c",), {"A": "b=c"}),
        (("A=",), {"A": ""}),
        (("A=1", "A=2"), {"A": "2"}),
        (("A=$HOME `x` ${{ y }}",), {"A": "$HOME `x` ${{ y }}"}),
    ],
)
def test_lines_become_variables_and_nothing_is_expanded(
    lines: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert read_environment(lines) == expected


@pytest.mark.parametrize("line", ["A", "=1", "export A=1", "A B=1", "A-B=1", "A\x00=1", "::error::=1"])
def test_a_line_that_sets_nothing_is_named(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_environment(("GOOD=1", line))
    assert caught.value.fix == "write NAME=VALUE, one a line"
    assert "GOOD" not in caught.value.seen


def test_a_test_sees_its_own_variables_and_none_of_the_job_s_authority(tmp_path: Path) -> None:
    hidden = (
        "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_RUNTIME_TOKEN", "GITHUB_TOKEN",
        "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY", "CRCR_NEEDS",
    )  # fmt: skip
    job = HardwareJob(tmp_path, **{**dict.fromkeys(hidden, str(tmp_path / "x")), "GITHUB_RUN_ID": "77"})
    job.write(
        f"""
        seen = set(os.environ) & {{*{hidden!r}, "GITHUB_OUTPUT"}}  # also while collecting
        class TestIt(unittest.TestCase):
            hw_classification = HW.GENERIC
            def test_nothing_is_seen(self):
                assert not seen
                assert not set(os.environ) & {{*{hidden!r}, "GITHUB_OUTPUT"}}
                assert os.environ["GITHUB_RUN_ID"] == "77"
                assert os.environ["TWO"] == "two words"
        """
    )
    job.plan(test_environment="ONE=1\nTWO=two words")
    assert job.test(test_environment="ONE=1\nTWO=two words").counts.passed == 1


def test_the_source_tree_does_not_stand_in_for_what_is_installed(tmp_path: Path) -> None:
    """A backend's checkout is the working folder of its tests."""
    job = HardwareJob(tmp_path)
    for name in ("torch.py", "json.py", "pytest.py"):
        (job.workspace / name).write_text("raise SystemExit('the source tree was imported')\n")
    job.write("class TestIt:\n    hw_classification = 'GENERIC'\n    def test_it(self): pass\n")
    job.plan()
    assert job.test().counts.passed == 1
