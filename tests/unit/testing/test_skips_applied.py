"""Skip lists in a run: what they name is planned, accounted for by name, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from hardware_job import HardwareJob

from relay_client.errors import BadSkipList

CLASSES = """
class TestIt(unittest.TestCase):
    hw_classification = HW.GENERIC
    def test_runs(self): pass
    def test_named(self): raise SystemExit("a skipped test was run")
    def test_wrong(self): self.fail("known")
    def test_mended(self): pass

class TestDeep:
    hw_classification = HW.GENERIC
    @classmethod
    def setup_class(cls): raise RuntimeError("a skipped class was set up")
    @pytest.mark.parametrize("n", [1, 2])
    def test_n(self, n): pass
"""


@pytest.fixture
def job(tmp_path: Path) -> HardwareJob:
    job = HardwareJob(tmp_path)
    job.write(CLASSES)
    return job


def listed(job: HardwareJob, text: str, name: str = "skips.txt") -> str:
    (job.workspace / name).write_text(text, encoding="utf-8")
    return name


def ends(job: HardwareJob) -> dict[str, tuple[str, str]]:
    return {
        line["test"].partition("::")[2]: (line["outcome"], line["message"])
        for line in job.journal()
        if line.get("outcome")
    }


LIST = """
TestIt::test_named issue=https://example.org/1 # no kernel yet
TestIt::test_wrong mode=xfail # wrong by one
tests/test_it.py::TestDeep # not for this chip
"""


def test_what_a_list_names_is_skipped_by_name_with_its_reason(job: HardwareJob) -> None:
    plan = job.plan(skips=listed(job, LIST))
    assert len(plan.tests) == 6
    assert job.test().exit_code == 0
    assert job.counts() == {"planned": 6, "passed": 2, "skipped": 3, "xfailed": 1}
    found = ends(job)
    assert found["TestIt::test_named"] == ("skipped", "Skipped: no kernel yet https://example.org/1")
    assert found["TestIt::test_wrong"] == ("xfailed", "wrong by one")
    assert found["TestDeep::test_n[2]"] == ("skipped", "Skipped: not for this chip")


@pytest.mark.parametrize(("mode", "counts"), [
    ("xfail", {"planned": 1, "passed": 1}), ("xfail-strict", {"planned": 1, "failed": 1}),
])  # fmt: skip
def test_a_test_that_passes_against_expectation(job: HardwareJob, mode: str, counts: dict[str, int]) -> None:
    job.write(
        "class TestIt(unittest.TestCase):\n    hw_classification = HW.GENERIC\n    def test_a(self): pass\n"
    )
    job.plan(skips=listed(job, f"TestIt::test_a mode={mode}"))
    if mode == "xfail":
        job.test()
    else:
        job.fail()
    assert job.counts() == counts


def test_an_expired_entry_warns_and_no_longer_applies(job: HardwareJob) -> None:
    plan = job.plan(skips=listed(job, "TestIt::test_runs expires=2020-02-03\nTestDeep expires=2999-01-01"))
    assert [test for skip in plan.skips for test in skip.tests] == [
        "tests/test_it.py::TestDeep::test_n[1]",
        "tests/test_it.py::TestDeep::test_n[2]",
    ]
    assert "warning" in job.commands
    assert "skips.txt:1: TestIt::test_runs (until 2020-02-03)" in job.log.getvalue()


def test_a_malformed_entry_of_our_own_list_stops_the_plan(job: HardwareJob) -> None:
    with pytest.raises(BadSkipList, match="1 malformed") as caught:
        job.plan(skips=listed(job, "TestIt\ntest_alone\n"))
    assert caught.value.exit_code == 54
    assert "skips.txt:2" in caught.value.seen
    assert not (job.run_dir / "plan.json").exists()


def test_a_malformed_entry_of_another_project_s_list_is_a_warning(job: HardwareJob) -> None:
    text = '{"test_alone": ["", [""]], "test_runs (__main__.TestIt)": ["slow", [""]]}'
    plan = job.plan(skips=listed(job, text, "disabled.json"))
    (skip,) = plan.skips
    assert (skip.tests, skip.reason) == (("tests/test_it.py::TestIt::test_runs",), "slow")
    assert "1 malformed entries" in job.log.getvalue()
    assert "warning" in job.commands


@pytest.mark.parametrize(("places", "number"), [("", 0), ("A1", 0), ("A2 B", 1)])
def test_an_entry_for_another_chip_does_not_apply(job: HardwareJob, places: str, number: int) -> None:
    text = '{"test_runs (__main__.TestIt)": ["", ["A2", "A3"]]}'
    plan = job.plan(skips=listed(job, text, "disabled.json"), skips_on=places)
    assert len(plan.skips) == number


def test_lists_are_read_before_any_test_is_collected(job: HardwareJob) -> None:
    (job.workspace / "conftest.py").write_text("raise SystemExit('collected')\n")
    with pytest.raises(BadSkipList) as caught:
        job.plan(skips="no-such-list.yml")
    assert "no-such-list.yml" in caught.value.seen


DEVICE_TESTS = '''
from types import SimpleNamespace
import functools
import torch
torch._C = SimpleNamespace(_get_privateuse1_backend_name=lambda: "toy")

def made(test, **parameters):
    """As PyTorch's instantiate_test does it."""
    @functools.wraps(test)
    def instantiated(self, param_kwargs=parameters):
        return test(self, **param_kwargs)
    return instantiated

def test_it(self, **given): pass

class TestOpsPRIVATEUSE1(unittest.TestCase):
    hw_classification = HW.ACCELERATOR
class TestOpsCPU(unittest.TestCase):
    hw_classification = HW.ACCELERATOR
for op in ("add", "_refs.add", "linalg.add"):
    for dtype in ("float32", "int8"):
        for cls, device in ((TestOpsPRIVATEUSE1, "toy"), (TestOpsCPU, "cpu")):
            name = f"test_it_{op.replace('.', '_')}_{device}_{dtype}"
            setattr(cls, name, made(test_it, op=SimpleNamespace(full_name=op)))
del cls
'''


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("operator=add", {"add_toy_float32", "add_toy_int8"}),
        ("operator=linalg.add dtypes=int8", {"linalg_add_toy_int8"}),
        ("operator=add device=cpu dtypes=int8", {"add_cpu_int8"}),
        ("TestOps::test_it dtypes=int8", {"add_toy_int8", "_refs_add_toy_int8", "linalg_add_toy_int8"}),
        ("TestOps::test_it operator=_refs.add", {"_refs_add_toy_int8", "_refs_add_toy_float32"}),
        ("test_it_add_npu_int8 (__main__.TestOpsNPU)", set()),
        ("TestOpsTOY::test_it_add_toy_int8", {"add_toy_int8"}),
        ("TestOpsCPU::test_it_add dtypes=int8", {"add_cpu_int8"}),
    ],
)
def test_an_operator_s_tests_are_known_exactly(tmp_path: Path, line: str, expected: set[str]) -> None:
    job = HardwareJob(tmp_path)
    job.write(DEVICE_TESTS)
    plan = job.plan(skips=listed(job, line))
    assert plan.device == "toy"
    named = {test.rpartition("::test_it_")[2] for skip in plan.skips for test in skip.tests}
    assert named == expected
