"""How each kind of ending is counted: one run of a file with all of them, then one test per kind."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hardware_job import HardwareJob
from step import read_outputs

from backend_ci.testing import execute, plan
from relay_client.documents.evidence import Evidence
from relay_client.errors import TestsFailed

ENDINGS = """
class Tagged(unittest.TestCase):
    hw_classification = HW.GENERIC

class TestPlain(Tagged):
    def test_passes(self): pass
    def test_fails(self): self.assertEqual(1, 2, "one is not two")
    def test_raises(self): raise RuntimeError("device lost\\nsecond line")
    def test_skips(self): self.skipTest("no such dtype")
    @unittest.skip("by decorator")
    def test_is_skipped(self): pass
    @unittest.expectedFailure
    def test_fails_as_expected(self): assert False
    @unittest.expectedFailure
    def test_passes_unexpectedly(self): pass
    def test_subtests_pass(self):
        for n in range(3):
            with self.subTest(n=n): pass
    def test_subtest_fails(self):
        for n in range(3):
            with self.subTest(n=n): self.assertNotEqual(n, 1, "n is one")
    def test_hostile_message(self):
        raise RuntimeError("::error::owned\\n##[add-mask]x \\udcff" + "m" * 5000)

class TestSetUp(Tagged):
    def setUp(self): raise RuntimeError("set-up broke")
    def test_in_set_up(self): pass

class TestTearDown(Tagged):
    def tearDown(self): raise RuntimeError("tear-down broke")
    def test_in_tear_down(self): pass

class TestTearDownAfterSkip(Tagged):
    def tearDown(self): raise RuntimeError("tear-down broke")
    def test_skip_then_tear_down(self): self.skipTest("skipped first")

class TestSetUpClass(Tagged):
    @classmethod
    def setUpClass(cls): raise RuntimeError("set-up of the class broke")
    def test_in_set_up_class(self): pass
    def test_too(self): pass

class TestTearDownClass(Tagged):
    @classmethod
    def tearDownClass(cls): raise RuntimeError("tear-down of the class broke")
    def test_in_tear_down_class(self): pass

class TestSkippedClass(Tagged):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no such device")
    def test_in_skipped_class(self): pass

class TestPytest:
    hw_classification = HW.GENERIC
    @pytest.mark.xfail(reason="known", strict=True)
    def test_xfails(self): assert False
    @pytest.mark.xfail(reason="known", strict=True)
    def test_xpasses_strictly(self): pass
    @pytest.mark.xfail(reason="known", strict=False)
    def test_xpasses(self): pass
    @pytest.mark.xfail(reason="known", raises=ValueError)
    def test_xfails_otherwise(self): raise KeyError("another error")
    @pytest.mark.skipif(True, reason="only on Tuesdays")
    def test_skipif(self): pass
    def test_fixture(self, no_such_fixture): pass
    def test_keyboard(self): raise SystemExit(0)
"""

# Name: (how it is counted, what its message holds)
EXPECTED = {
    "test_passes": ("passed", ""),
    "test_fails": ("failed", "one is not two"),
    "test_raises": ("failed", "RuntimeError: device lost"),
    "test_skips": ("skipped", "no such dtype"),
    "test_is_skipped": ("skipped", "by decorator"),
    "test_fails_as_expected": ("xfailed", ""),
    "test_passes_unexpectedly": ("failed", "Unexpected success"),
    "test_subtests_pass": ("passed", ""),
    "test_subtest_fails": ("failed", "n is one"),
    "test_hostile_message": ("failed", "::error::owned"),
    "test_in_set_up": ("failed", "set-up broke"),
    "test_in_tear_down": ("failed", "tear-down broke"),
    "test_skip_then_tear_down": ("failed", "tear-down broke"),
    "test_in_set_up_class": ("failed", "set-up of the class broke"),
    "test_too": ("failed", "set-up of the class broke"),
    "test_in_tear_down_class": ("failed", "tear-down of the class broke"),
    "test_in_skipped_class": ("skipped", "no such device"),
    "test_xfails": ("xfailed", "known"),
    "test_xpasses_strictly": ("failed", "XPASS(strict)"),
    # pytest's own word for it is a pass; who wants a failure says `strict`.
    "test_xpasses": ("passed", ""),
    "test_xfails_otherwise": ("failed", "another error"),
    "test_skipif": ("skipped", "only on Tuesdays"),
    "test_fixture": ("failed", "no_such_fixture"),
    "test_keyboard": ("failed", "SystemExit: 0"),
}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> HardwareJob:
    job = HardwareJob(tmp_path_factory.mktemp("endings") / "job")
    job.write(ENDINGS)
    job.plan()
    error = job.fail()
    assert isinstance(error, TestsFailed)
    return job


def test_every_test_of_the_file_is_planned(job: HardwareJob) -> None:
    assert job.evidence.counts.planned == len(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_ending_is_counted_as_what_it_is(job: HardwareJob, name: str) -> None:
    outcome, message = EXPECTED[name]
    (end,) = [
        line
        for line in job.journal()
        if line["test"].endswith(f"::{name}") and line.get("outcome") is not None
    ]
    assert end["outcome"] == outcome
    assert message in end["message"]
    assert "\n" not in end["message"]
    assert len(end["message"]) <= 1_024


def test_the_counts_are_the_sum_of_the_endings(job: HardwareJob) -> None:
    outcomes = [outcome for outcome, _ in EXPECTED.values()]
    assert job.counts() == {
        "planned": len(outcomes),
        **{outcome: outcomes.count(outcome) for outcome in ("passed", "failed", "skipped", "xfailed")},
    }


def test_each_failure_is_in_the_evidence_with_its_trace(job: HardwareJob) -> None:
    evidence: Evidence = job.evidence
    failed = {name: message for name, (outcome, message) in EXPECTED.items() if outcome == "failed"}
    assert {failure.name for failure in evidence.failures} == set(failed)
    for failure in evidence.failures:
        assert failed[failure.name] in (failure.message or "")
        assert (
            failed[failure.name].split(": ")[-1] in (failure.stacktrace or "")
            or failure.name == "test_hostile_message"
        )
        assert (failure.classname or "").startswith("tests/test_it.py::Test")
        assert (failure.duration or 0) >= 0


def test_pytests_own_junit_says_the_same(job: HardwareJob) -> None:
    """An independent witness, kept beside the evidence."""
    (name,) = job.evidence.junit
    cases = list(ElementTree.parse(job.run_dir / name).iter("testcase"))
    bad = {
        case.get("name")
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    assert bad == {name for name, (outcome, _) in EXPECTED.items() if outcome == "failed"}
    assert {case.get("name") for case in cases} == set(EXPECTED)


def test_torch_and_exit_code_are_those_of_the_test_process(job: HardwareJob) -> None:
    assert job.evidence.torch_git_version == job.evidence.commit
    assert job.evidence.exit_code == 1


def test_the_summary_of_the_log_is_the_sum(job: HardwareJob) -> None:
    assert (
        "24 planned = 3 passed + 15 failed + 4 skipped + 2 xfailed + 0 crashed + 0 lost" in job.log.getvalue()
    )


def test_every_declared_output_is_set_and_no_other(job: HardwareJob) -> None:
    outputs = read_outputs((job.folder / "output").read_text())
    assert set(outputs) == {*plan.OUTPUTS, *execute.OUTPUTS}
    assert outputs == {"selected": "24", "passed": "3", "failed": "15", "skipped": "6"}


def test_nothing_that_a_test_printed_or_raised_is_obeyed(job: HardwareJob) -> None:
    """Group, output and our own annotations are: they are not the tests'."""
    assert set(job.commands) <= {"group", "endgroup", "stop-commands"}


def test_failing_subtests_are_one_failure_of_their_test(tmp_path: Path) -> None:
    """pytest 9 goes on after the first, pytest 8 does not: the plan owes one test either way."""
    job = HardwareJob(tmp_path)
    job.write(
        """
        class TestS(unittest.TestCase):
            hw_classification = HW.GENERIC
            def test_s(self):
                for n in range(4):
                    with self.subTest(n=n): assert n % 2
        """
    )
    job.planned("TestS::test_s")
    job.fail()
    assert job.counts() == {"planned": 1, "failed": 1}
