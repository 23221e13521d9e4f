"""Faults of a real device in real native code: each costs what it must, and everything else keeps its result."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dispatch_lab.demo import torch_wheel
from dispatch_lab.lab import TOOLKIT
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import save

pytestmark = pytest.mark.road

# In the order in which they run: the second one meets the fault.
TESTS = """
import torch
from torch.testing._internal.common_utils import TestCase

class TestDevice(TestCase):
    hw_classification = "ACCELERATOR"

    def test_1_add(self):
        self.assertEqual((torch.ones(2, device="refdev") + 1).tolist(), [2, 2])

    def test_2_mul(self):
        self.assertEqual((torch.ones(2, device="refdev") * 3).tolist(), [3, 3])

    def test_3_add_again(self):
        self.assertEqual((torch.ones(2, device="refdev") + 1).tolist(), [2, 2])

    def test_4_the_other_device(self):
        self.assertEqual((torch.ones(2, device="refdev:1") + 1).tolist(), [2, 2])
"""
REQUIREMENTS = "ninja\npytest\nexpecttest\nnumpy"


def crcr(run_dir: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> int:
    """Run the command as a runner does. Its log stays beside the documents."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CRCR_"))}
    with (run_dir / "crcr.log").open("a", encoding="utf-8") as log:
        done = subprocess.run(
            ["sh", str(TOOLKIT / "bin" / "crcr"), *arguments, "--run-dir", str(run_dir)],
            cwd=run_dir / "workspace",
            env={**own, "CRCR_LAUNCHER_PYTHON": sys.executable, **(environment or {})},
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
    return done.returncode


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Path) -> Path:
    """A run folder with torch, the compiled backend, and the plan of the four tests."""
    folder = tmp_path_factory.mktemp("faults")
    workspace = folder / "workspace"
    shutil.copytree(
        TOOLKIT / "examples" / "reference-backend",
        workspace,
        ignore=shutil.ignore_patterns("build", "dist", "tests"),
    )
    (workspace / "tests").mkdir()
    (workspace / "tests" / "test_device.py").write_text(TESTS, encoding="utf-8")
    wheel = torch_wheel(wheelhouse)
    commit = commit_in(wheel)
    save(Checkout("a wheel of a release", commit, str(folder), "fetch-by-sha", 0.0, None, None), folder)
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheelhouse)}
    for arguments in (
        (
            "build-pytorch",
            "--provider",
            "wheel",
            "--torch-wheel",
            str(wheel),
            "--requirements",
            REQUIREMENTS,
        ),
        ("build-backend",),
        ("plan",),
    ):
        code = crcr(folder, *arguments, environment=index)
        assert code == 0, (folder / "crcr.log").read_text(encoding="utf-8")[-3_000:]
    return folder


def commit_in(wheel: Path) -> str:
    """The commit that the wheel's torch says it was built from."""
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("torch/version.py").decode()
    found = re.search(r"git_version = '([0-9a-f]{40})'", text)
    assert found is not None
    return found[1]


def run_with(built: Path, fault: str, minutes: str = "5") -> tuple[int, Any]:
    code = crcr(
        built,
        "test",
        "--test-environment",
        f"REFDEV_FAULT={fault}",
        "--test-timeout-minutes",
        minutes,
    )
    return code, json.loads((built / "evidence.json").read_text(encoding="utf-8"))


def ended(evidence: Any) -> dict[str, int]:
    return {name: number for name, number in evidence["counts"].items() if number}


@pytest.mark.parametrize(
    ("fault", "counts", "failing", "word"),
    [
        ("segfault:aten::mul", {"passed": 3, "crashed": 1}, ["test_2_mul"], "SIGSEGV"),
        ("wrong:aten::mul", {"passed": 3, "failed": 1}, ["test_2_mul"], "AssertionError"),
        ("oom:aten::mul", {"passed": 3, "failed": 1}, ["test_2_mul"], "out of memory"),
        (
            "poison:aten::mul",
            {"passed": 2, "failed": 2},
            ["test_2_mul", "test_3_add_again"],
            "is in an error state since aten::mul",
        ),
    ],
)
def test_a_fault_costs_the_tests_it_hits(
    built: Path, fault: str, counts: dict[str, int], failing: list[str], word: str
) -> None:
    code, evidence = run_with(built, fault)
    assert code == 51
    assert ended(evidence) == {"planned": 4, **counts}
    assert [failure["name"] for failure in evidence["failures"]] == failing
    assert all(word in failure["message"] + failure["stacktrace"] for failure in evidence["failures"])


def test_an_operator_that_never_returns_is_named_and_the_rest_is_lost_aloud(built: Path) -> None:
    code, evidence = run_with(built, "hang:aten::mul", minutes="0.4")
    assert code == 51
    assert ended(evidence) == {"planned": 4, "passed": 1, "crashed": 1, "lost": 2}
    assert [failure["name"] for failure in evidence["failures"]] == [
        "test_2_mul",
        "test_3_add_again",
        "test_4_the_other_device",
    ]
    assert "ended by its deadline" in evidence["failures"][0]["message"]


def test_without_a_fault_all_four_pass(built: Path) -> None:
    """The counts above say something only because of this."""
    code, evidence = run_with(built, "")
    assert (code, ended(evidence)) == (0, {"planned": 4, "passed": 4})
