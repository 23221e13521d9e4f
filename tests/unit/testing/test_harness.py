"""Tests that hang, devices that are lost, workers side by side: every test is accounted for by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hardware_job import HardwareJob

from backend_ci.testing.harness.batches import batches, files, owner
from backend_ci.testing.harness.watchdog import Limits, Watchdog
from relay_client.documents.journal import JournalReader
from relay_client.errors import TestRunBroken, TestsFailed, UsageError

THREE = """
{head}
class TestIt(unittest.TestCase):
    hw_classification = HW.GENERIC
    def test_1(self): pass
    def test_2(self): {body}
    def test_3(self): {third}
"""
NAMES = tuple(f"TestIt::test_{number}" for number in (1, 2, 3))


@pytest.fixture
def job(tmp_path: Path) -> HardwareJob:
    return HardwareJob(tmp_path)


def write(job: HardwareJob, body: str, third: str = "pass", head: str = "") -> None:
    job.write(THREE.format(body=body, third=third, head=head))
    job.planned(*NAMES)


def test_a_test_that_hangs_costs_itself_and_the_rest_goes_on(job: HardwareJob) -> None:
    write(job, "__import__('time').sleep(600)")
    assert isinstance(job.fail(per_test_timeout_minutes="0.03"), TestsFailed)
    assert job.counts() == {"planned": 3, "passed": 2, "crashed": 1}
    assert job.reasons() == {"test_2": "the process died while this test ran: no end after 2 s"}
    assert "no end after 2 s during tests/test_it.py::TestIt::test_2; 1 tests go on" in job.log.getvalue()


def test_a_test_that_hangs_with_its_output_closed_is_ended_too(job: HardwareJob) -> None:
    write(job, "os.close(1), os.close(2), __import__('time').sleep(600)")
    job.fail(per_test_timeout_minutes="0.03")
    assert job.counts() == {"planned": 3, "passed": 2, "crashed": 1}


def test_an_import_that_hangs_ends_the_run_and_the_tests_are_lost(job: HardwareJob) -> None:
    write(job, "pass", head="__import__('time').sleep(600)")
    assert isinstance(job.fail(stall_timeout_minutes="0.03"), TestsFailed)
    assert job.counts() == {"planned": 3, "lost": 3}
    assert job.evidence.exit_code is None


def test_a_set_up_of_a_class_that_hangs_is_the_first_test_s(job: HardwareJob) -> None:
    job.write(
        """
        class TestIt(unittest.TestCase):
            hw_classification = HW.GENERIC
            @classmethod
            def setUpClass(cls): __import__('time').sleep(600)
            def test_1(self): pass
        class TestOther(unittest.TestCase):
            hw_classification = HW.GENERIC
            def test_1(self): pass
        """
    )
    job.planned("TestIt::test_1", "TestOther::test_1")
    job.fail(per_test_timeout_minutes="0.03")
    assert job.counts() == {"planned": 2, "passed": 1, "crashed": 1}


PROBE = """
poisoned = []
def probe():
    if poisoned: raise RuntimeError("device 0 is in an error state")
"""


@pytest.mark.parametrize(
    "asked", ["test_it:probe", "test ! -e poisoned || { echo device 0 is gone; exit 7; }"]
)
def test_a_lost_device_gets_a_new_process(job: HardwareJob, asked: str) -> None:
    """What fails in the process that lost its device works in the next one."""
    lose = "poisoned.append(1) or open('poisoned', 'w').close() or self.fail('first')"
    third = "self.assertFalse(poisoned) or os.path.exists('poisoned') and os.remove('poisoned')"
    write(job, lose, third, PROBE)
    (job.workspace / "conftest.py").write_text("import sys; sys.path.insert(0, 'tests')")
    job.fail(device_probe=asked)
    assert job.counts() == {"planned": 3, "passed": 2, "failed": 1}
    assert "the device does not answer any more after tests/test_it.py::TestIt::test_2" in job.log.getvalue()
    assert len(job.evidence.junit) == 2


def test_a_healthy_device_costs_no_new_process(job: HardwareJob) -> None:
    write(job, "self.fail('only this')", head=PROBE)
    job.fail(device_probe="true")
    assert job.counts() == {"planned": 3, "passed": 2, "failed": 1}
    assert len(job.evidence.junit) == 1


def test_a_probe_that_cannot_be_found_says_so(job: HardwareJob) -> None:
    write(job, "self.fail('first')")
    job.fail(device_probe="no_such_module:probe")
    assert "ModuleNotFoundError: No module named 'no_such_module'" in job.log.getvalue()
    assert job.counts() == {"planned": 3, "passed": 2, "failed": 1}


DEVICES = """
class Test{n}(unittest.TestCase):
    hw_classification = HW.GENERIC
    def test_1(self): self.note()
    def test_2(self): self.note()
    def note(self): open('seen', 'a').write(os.environ['MY_DEVICES'] + ' ' + str(os.getpid()) + chr(10))
"""


def test_each_worker_has_its_device_and_nothing_is_lost_between_them(job: HardwareJob) -> None:
    names = []
    for number in range(8):
        job.write(DEVICES.format(n=number), f"tests/test_{number}.py")
        names += [f"tests/test_{number}.py::Test{number}::test_{k}" for k in (1, 2)]
    plan = job.plan()
    assert sorted(plan.tests) == sorted(names)
    job.test(workers="2", devices="4 7", device_variable="MY_DEVICES")
    assert job.counts() == {"planned": 16, "passed": 16}
    seen = (job.workspace / "seen").read_text().split("\n")[:-1]
    assert len(seen) == 16
    assert {line.split()[0] for line in seen} == {"4", "7"}
    # A process belongs to one worker, so it sees one device.
    assert len({line.split()[1] for line in seen}) == len(set(seen))


def test_a_crash_in_one_worker_costs_one_test(job: HardwareJob) -> None:
    for number in range(4):
        body = "os.kill(os.getpid(), 11)" if number == 2 else "pass"
        job.write(THREE.format(head="", body=body, third="pass"), f"tests/test_{number}.py")
    job.plan()
    assert isinstance(job.fail(workers="2"), TestsFailed)
    assert job.counts() == {"planned": 12, "passed": 11, "crashed": 1}
    assert job.evidence.failures[0].classname == "tests/test_2.py::TestIt"
    assert "killed by SIGSEGV during tests/test_2.py::TestIt::test_2" in job.log.getvalue()


def test_a_worker_whose_process_ends_badly_after_its_tests_is_no_success(job: HardwareJob) -> None:
    for number in range(2):
        job.write(THREE.format(head="", body="pass", third="pass"), f"tests/test_{number}.py")
    job.plan()
    head = "import atexit; atexit.register(os._exit, 9)"
    job.write(THREE.format(head=head, body="pass", third="pass"), "tests/test_1.py")
    assert isinstance(job.fail(workers="2"), TestRunBroken)
    assert job.evidence.exit_code == 9


@pytest.mark.parametrize("options", [{"devices": "0 1"}, {"device_variable": "MY_DEVICES"}])
def test_devices_need_their_variable(job: HardwareJob, options: dict[str, str]) -> None:
    write(job, "pass")
    error = job.fail_early(**options)
    assert isinstance(error, UsageError)
    assert "device-variable" in error.fix


def many_tests(*sizes: int) -> list[str]:
    return [f"t{k}.py::T{k}::test_{n}" for k, size in enumerate(sizes) for n in range(size)]


@pytest.mark.parametrize("sizes", [(), (1,), (3, 3, 3), (100,), (1, 50, 1), tuple(range(20))])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_batches_hold_every_test_once_and_in_order(sizes: tuple[int, ...], workers: int) -> None:
    tests = many_tests(*sizes)
    parts = batches(tests, workers)
    assert [test for part in parts for test in part] == tests
    assert all(parts)
    assert len(parts) <= max(1, workers * 4 + 1)
    assert workers > 1 or len(parts) <= 1


def test_a_class_stays_in_one_batch_where_it_fits() -> None:
    parts = batches(many_tests(3, 3, 3, 3), 2)
    assert [{owner(test) for test in part} for part in parts] == [{f"t{k}.py::T{k}"} for k in range(4)]
    assert files(parts[1] + parts[2]) == ("t1.py", "t2.py")


def test_a_parameter_with_colons_does_not_change_the_owner() -> None:
    assert owner("t.py::T::test_x[a::b]") == "t.py::T"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def line(test: str, outcome: str = "") -> str:
    return json.dumps({"test": test, **({"outcome": outcome} if outcome else {})}) + "\n"


def test_the_watchdog_measures_each_test_from_its_own_start(tmp_path: Path) -> None:
    journal, clock = tmp_path / "journal.jsonl", Clock()
    dog = Watchdog(journal, Limits(10, 30), clock)
    journal.write_text(line("a"))
    assert dog(0) == ""
    clock.now += 9
    with journal.open("a") as file:
        file.write(line("a", "passed") + line("b"))
    assert dog(9) == ""
    clock.now += 9
    assert dog(18) == ""  # silent for 18 s, but b runs only 9
    clock.now += 2
    assert dog(20) == "no end after 10 s"


def test_outside_of_tests_only_silence_counts(tmp_path: Path) -> None:
    clock = Clock()
    dog = Watchdog(tmp_path / "journal.jsonl", Limits(10, 30), clock)
    clock.now += 40
    assert dog(5) == ""  # it writes: a long collection is not stuck
    assert dog(31) == "nothing happened for 30 s"


def test_a_journal_is_read_once_and_by_whole_lines(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_text(line("before"))
    reader = JournalReader(journal)
    with journal.open("a") as file:
        file.write(line("a") + "no json\n" + line("b")[:-5])
        file.flush()
        assert [found.test for found in reader.new_lines()] == ["a"]
        assert reader.new_lines() == []
        file.write(line("b")[-5:])
    assert [found.test for found in reader.new_lines()] == ["b"]
