"""Which tests a plan owes: by the hardware classification of their class, as upstream's loader reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hardware_job import COMMIT, HardwareJob

from relay_client.errors import NothingSelected, TestRunBroken, TorchChanged, UsageError

CLASSES = """
class TestGeneric(unittest.TestCase):
    hw_classification = HW.GENERIC
    def test_a(self): pass

class TestInherits(TestGeneric):
    def test_b(self): pass

class TestOverrides(TestGeneric):
    hw_classification = HW.CUDA

class TestAccelerator(unittest.TestCase):
    hw_classification = HW.ACCELERATOR
    def test_c(self): pass

class TestOldName:
    class hw_classification:  # an enum before its member was renamed
        name = "DEVICE_GENERIC"
    @pytest.mark.parametrize("n", [1, 2])
    def test_d(self, n): pass

class TestText:
    hw_classification = "generic"
    def test_e(self): pass

class TestNone(unittest.TestCase):
    hw_classification = None
    def test_f(self): pass

class TestUnclassified:
    def test_g(self): pass
    def test_h(self): pass

def test_function(): pass
"""
GENERIC = {"TestGeneric::test_a", "TestInherits::test_a", "TestInherits::test_b", "TestText::test_e"}
ACCELERATOR = {"TestAccelerator::test_c", "TestOldName::test_d[1]", "TestOldName::test_d[2]"}
CUDA = {"TestOverrides::test_a"}
UNCLASSIFIED = {"TestNone::test_f", "TestUnclassified::test_g", "TestUnclassified::test_h"}
FUNCTION = {"test_function"}


@pytest.fixture
def job(tmp_path: Path) -> HardwareJob:
    job = HardwareJob(tmp_path)
    job.write(CLASSES)
    return job


@pytest.mark.parametrize(
    ("hw_classification", "unclassified", "expected", "counts"),
    [
        ("GENERIC ACCELERATOR", "skip", GENERIC | ACCELERATOR, (7, 1, 3, 1)),
        ("GENERIC", "skip", GENERIC, (4, 4, 3, 1)),
        ("DEVICE_GENERIC", "skip", ACCELERATOR, (3, 5, 3, 1)),
        ("DEVICE_GENERIC, ACCELERATOR", "skip", ACCELERATOR, (3, 5, 3, 1)),
        ("CUDA", "run", CUDA | UNCLASSIFIED | FUNCTION, (5, 7, 0, 0)),
    ],
)
def test_the_plan_owes_what_fits(
    job: HardwareJob, hw_classification: str, unclassified: str, expected: set[str], counts: tuple[int, ...]
) -> None:
    plan = job.plan(hw_classification=hw_classification, unclassified=unclassified)
    assert {test.partition("::")[2] for test in plan.tests} == expected
    assert len(plan.tests) == len(expected)
    found = plan.collected
    assert (found.selected, found.mismatched, found.unclassified, found.without_class) == counts
    assert plan.unclassified_classes == ("tests/test_it.py::TestNone", "tests/test_it.py::TestUnclassified")
    assert "selected<<crcr_" in (job.folder / "output").read_text()


def test_what_was_not_selected_is_not_run(job: HardwareJob) -> None:
    job.plan(hw_classification="CUDA")
    assert job.test().counts.planned == 1
    ran = {line["test"] for line in job.journal()}
    assert ran == {"tests/test_it.py::TestOverrides::test_a"}


def test_unclassified_classes_fail_the_plan_when_asked_to(job: HardwareJob) -> None:
    with pytest.raises(NothingSelected, match="declare no hardware classification") as caught:
        job.plan(unclassified="fail")
    assert "tests/test_it.py::TestUnclassified" in caught.value.seen
    assert caught.value.exit_code == 50


def test_a_plain_function_alone_does_not_fail_such_a_plan(tmp_path: Path) -> None:
    job = HardwareJob(tmp_path)
    job.write(
        "class TestG:\n    hw_classification = HW.GENERIC\n    def test_a(self): pass\ndef test_f(): pass\n"
    )
    assert job.plan(unclassified="fail").tests == ("tests/test_it.py::TestG::test_a",)


@pytest.mark.parametrize("text", ["", CLASSES], ids=["no tests", "tests of others"])
def test_a_plan_of_nothing_is_an_error(tmp_path: Path, text: str) -> None:
    job = HardwareJob(tmp_path)
    job.write(text)
    with pytest.raises(NothingSelected, match="a run would prove nothing") as caught:
        job.plan(hw_classification="MPS")
    assert "unclassified" in caught.value.seen


def test_paths_that_are_not_there_are_named(job: HardwareJob) -> None:
    with pytest.raises(UsageError) as caught:
        job.plan(tests="tests/test_it.py\ntests/missing.py")
    assert "tests/missing.py" in caught.value.seen


def test_several_paths_are_one_plan_without_duplicates(job: HardwareJob) -> None:
    job.write(
        "class TestO:\n    hw_classification = HW.CUDA\n    def test_z(self): pass\n", "more/test_other.py"
    )
    plan = job.plan(hw_classification="CUDA", tests="tests\nmore\ntests/test_it.py")
    assert sorted(plan.tests) == [
        "more/test_other.py::TestO::test_z",
        "tests/test_it.py::TestOverrides::test_a",
    ]


def test_the_users_own_hooks_come_first(job: HardwareJob) -> None:
    """A conftest that orders and deselects is obeyed; what it leaves is selected from."""
    job.write(
        "def pytest_collection_modifyitems(items):\n    items.reverse()\n    del items[3:]\n", "conftest.py"
    )
    plan = job.plan(unclassified="run")
    names = ["test_function", "TestUnclassified::test_h", "TestUnclassified::test_g"]
    assert [test.partition("::")[2] for test in plan.tests] == names


@pytest.mark.parametrize("line", ["raise RuntimeError('no driver')", "import os; os._exit(0)"])
def test_a_session_that_cannot_even_start_is_no_empty_plan(job: HardwareJob, line: str) -> None:
    (job.workspace / "conftest.py").write_text(line + "\n")
    with pytest.raises(TestRunBroken, match="could not be collected"):
        job.plan()
    assert not (job.run_dir / "plan.json").exists()


def test_a_file_that_cannot_be_imported_is_named_and_fails_the_run(job: HardwareJob) -> None:
    job.write("import no_such_module\n", "tests/test_broken.py")
    plan = job.plan(hw_classification="CUDA")
    (broken,) = plan.broken_files
    assert broken.startswith("tests/test_broken.py: ")
    assert "no_such_module" in broken
    assert plan.collected.broken == 1
    error = job.fail()
    assert "1 file(s) were not collected" in error.what
    assert job.counts() == {"planned": 1, "passed": 1}
    assert job.evidence.broken_files == plan.broken_files


def test_only_broken_files_are_a_plan_of_nothing_that_still_fails(tmp_path: Path) -> None:
    job = HardwareJob(tmp_path)
    job.write("syntax error here\n")
    assert job.plan().tests == ()
    assert job.fail().exit_code == 51
    assert job.counts() == {}


def test_a_torch_that_was_replaced_after_the_build_is_refused_at_once(tmp_path: Path) -> None:
    job = HardwareJob(tmp_path)
    job.write("class TestA:\n    hw_classification = HW.GENERIC\n    def test_1(self): pass\n")
    torch = tmp_path / "site" / "torch" / "__init__.py"
    torch.write_text(torch.read_text().replace(COMMIT, "ab" * 20))
    with pytest.raises(TorchChanged) as caught:
        job.plan()
    assert "ab" * 20 in caught.value.seen
    assert caught.value.exit_code == 48


def test_setup_and_unset_reach_the_tests(tmp_path: Path) -> None:
    job = HardwareJob(tmp_path, CI="true")
    job.write(
        """
        class TestA(unittest.TestCase):
            hw_classification = HW.GENERIC
            def test_1(self): self.assertEqual((os.environ.get("CI"), os.environ["VENDOR"]), (None, "npu"))
        """
    )
    options = {"setup": "export VENDOR=npu", "unset_environment": "CI"}
    job.plan(**options)
    job.test(**options)
    assert job.counts() == {"planned": 1, "passed": 1}
