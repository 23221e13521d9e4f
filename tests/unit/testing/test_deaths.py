"""A process that dies: one test crashed, the rest goes on, and nothing is ever green by that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hardware_job import HardwareJob

from relay_client.errors import TestRunBroken, TestsFailed

FIVE = """
class TestDies(unittest.TestCase):
    hw_classification = HW.GENERIC
    def test_1(self): pass
    def test_2(self): {death}
    def test_3(self): pass
    def test_4(self): assert False
    def test_5(self): self.skipTest("why not")
"""
ONE = """
class TestOne(unittest.TestCase):
    hw_classification = HW.GENERIC
    def test_one(self): {body}
"""


DIES = tuple(f"TestDies::test_{number}" for number in range(1, 6))


@pytest.fixture
def job(tmp_path: Path) -> HardwareJob:
    return HardwareJob(tmp_path)


@pytest.mark.parametrize(
    ("death", "described"),
    [
        ("os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
        ("os._exit(3)", "exit code 3"),
        ("os._exit(1)", "exit code 1"),
        ("os._exit(0)", "exit code 0"),
    ],
)
def test_a_death_costs_one_test_and_the_rest_goes_on(job: HardwareJob, death: str, described: str) -> None:
    job.write(FIVE.format(death=death))
    job.planned(*DIES)
    assert isinstance(job.fail(), TestsFailed)
    assert job.counts() == {"planned": 5, "passed": 2, "failed": 1, "skipped": 1, "crashed": 1}
    assert job.reasons()["test_2"] == f"the process died while this test ran: {described}"
    assert f"{described} during tests/test_it.py::TestDies::test_2; 3 tests go on" in job.log.getvalue()
    assert job.evidence.junit == (("junit-2.xml",))


def test_every_test_may_die(job: HardwareJob) -> None:
    job.write(
        """
        class TestAll:
            hw_classification = HW.GENERIC
            @pytest.mark.parametrize("n", range(3))
            def test_it(self, n): os.kill(os.getpid(), 11)
        """
    )
    job.planned(*(f"TestAll::test_it[{n}]" for n in range(3)))
    job.fail()
    assert job.counts() == {"planned": 3, "crashed": 3}
    assert job.evidence.exit_code == -11


def test_a_test_that_ends_the_process_well_is_not_green(job: HardwareJob) -> None:
    job.write(ONE.format(body="os._exit(0)"))
    job.planned("TestOne::test_one")
    assert isinstance(job.fail(), TestsFailed)
    assert job.counts() == {"planned": 1, "crashed": 1}


def test_half_a_line_of_a_process_that_died_does_not_swallow_the_next(job: HardwareJob) -> None:
    torn = f"open({str(job.run_dir / 'journal.jsonl')!r}, 'a').write('half a li'); os._exit(0)"
    job.write(FIVE.format(death=torn).replace("test_3(self): pass", "test_3(self): os._exit(0)"))
    job.planned(*DIES)
    job.fail()
    assert job.counts() == {"planned": 5, "passed": 1, "failed": 1, "skipped": 1, "crashed": 2}


@pytest.mark.parametrize("place", ["tearDown(self)", "setUp(self)"])
def test_a_death_around_a_test_is_its_own(job: HardwareJob, place: str) -> None:
    job.write(ONE.format(body="pass") + f"    def {place}: os._exit(0)\n")
    job.planned("TestOne::test_one")
    job.fail()
    assert job.counts() == {"planned": 1, "crashed": 1}


def test_a_death_after_the_last_test_is_no_success(job: HardwareJob) -> None:
    """As a backend does whose library fails while it is unloaded."""
    job.write(ONE.format(body="import atexit; atexit.register(os.kill, os.getpid(), 11)"))
    job.planned("TestOne::test_one")
    assert isinstance(job.fail(), TestRunBroken)
    assert job.counts() == {"planned": 1, "passed": 1}
    assert job.evidence.exit_code == -11


def test_a_file_that_kills_while_it_is_imported_loses_its_tests_and_says_so(job: HardwareJob) -> None:
    job.write(ONE.format(body="pass"))
    job.planned("TestOne::test_one")
    job.write("os.kill(os.getpid(), 11)\n" + ONE.format(body="pass"))
    assert isinstance(job.fail(), TestsFailed)
    assert job.counts() == {"planned": 1, "lost": 1}
    assert job.evidence.exit_code == -11


def test_a_hang_is_ended_by_the_deadline(job: HardwareJob) -> None:
    job.write(FIVE.format(death="import time; time.sleep(600)"))
    job.planned(*DIES)
    error = job.fail(test_timeout_minutes="0.03")
    assert isinstance(error, TestsFailed)
    assert job.counts() == {"planned": 5, "passed": 1, "crashed": 1, "lost": 3}
    assert "ended by its deadline" in job.reasons()["test_2"]
    assert job.evidence.exit_code is None


def test_a_child_that_is_left_running_does_not_hold_the_run(job: HardwareJob) -> None:
    body = "import subprocess; subprocess.Popen(['sleep', '601'])"
    job.write(ONE.format(body=body))
    job.planned("TestOne::test_one")
    assert job.test(test_timeout_minutes="5").counts.passed == 1


def test_planned_tests_that_are_gone_are_lost(job: HardwareJob) -> None:
    job.write(FIVE.format(death="pass"))
    job.planned(*DIES)
    job.write(FIVE.format(death="pass").replace("test_3", "test_9").replace("assert False", "pass"))
    assert isinstance(job.fail(), TestsFailed)
    assert job.counts() == {"planned": 5, "passed": 3, "skipped": 1, "lost": 1}
    assert job.reasons() == {"test_3": "never started"}


def test_a_plan_whose_tests_are_all_gone_is_no_success(job: HardwareJob) -> None:
    job.write(ONE.format(body="pass"))
    job.planned("TestOne::test_one")
    job.write("")
    assert isinstance(job.fail(), TestsFailed)
    assert job.counts() == {"planned": 1, "lost": 1}


def test_an_empty_plan_is_no_success(job: HardwareJob) -> None:
    job.write(ONE.format(body="pass"))
    job.planned()
    assert isinstance(job.fail(), TestRunBroken)
    assert job.counts() == {}


@pytest.mark.parametrize("body", ["self.skipTest('x')", "pytest.xfail('x')"])
def test_a_run_in_which_nothing_passed_is_no_success(job: HardwareJob, body: str) -> None:
    job.write(ONE.format(body=body))
    job.planned("TestOne::test_one")
    error = job.fail()
    assert isinstance(error, TestRunBroken)
    assert "0 tests passed of 1" in error.seen


def test_a_session_that_stops_at_the_first_failure_is_taken_up_again(job: HardwareJob) -> None:
    """`addopts = -x` in the user's configuration."""
    job.write(FIVE.format(death="assert False"))
    (job.workspace / "pytest.ini").write_text("[pytest]\naddopts = -x\n")
    job.planned(*DIES)
    job.fail()
    assert job.counts() == {"planned": 5, "passed": 2, "failed": 2, "skipped": 1}


def test_results_of_an_earlier_attempt_are_not_this_ones(job: HardwareJob) -> None:
    job.write(FIVE.format(death="os._exit(0)"))
    job.planned(*DIES)
    job.fail()
    assert (job.run_dir / "junit-2.xml").exists()
    job.write(ONE.format(body="pass"))
    job.planned("TestOne::test_one")
    assert job.test().junit == ("junit-1.xml",)
    assert not (job.run_dir / "junit-2.xml").exists()
    assert job.counts() == {"planned": 1, "passed": 1}
    assert {line["test"] for line in job.journal()} == {"tests/test_it.py::TestOne::test_one"}


def test_an_interpreter_that_is_gone_is_named(job: HardwareJob, tmp_path: Path) -> None:
    job.write(ONE.format(body="pass"))
    job.planned("TestOne::test_one")
    build = job.run_dir / "build.json"
    build.write_text(build.read_text().replace(sys.executable, str(tmp_path / "gone" / "python")))
    error = job.fail()
    assert isinstance(error, TestRunBroken)
    assert str(tmp_path / "gone" / "python") in error.seen
    assert "build-pytorch" in error.fix
