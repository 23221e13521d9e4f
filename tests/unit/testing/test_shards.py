"""Every test in exactly one shard, and the shards end at about the same time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hardware_job import HardwareJob

from backend_ci.testing.history import seconds_of_before
from backend_ci.testing.shards import divide, expected
from relay_client.errors import TestsFailed, UsageError


def many(*sizes: int) -> list[str]:
    return [f"t{k}.py::T{k}::test_{n}" for k, size in enumerate(sizes) for n in range(size)]


@pytest.mark.parametrize("sizes", [(), (1,), (7,), (1, 1, 1), (100, 1), (5, 50, 5, 40), tuple(range(30))])
@pytest.mark.parametrize("shards", [1, 2, 3, 8])
def test_every_test_is_in_one_shard_and_in_order(sizes: tuple[int, ...], shards: int) -> None:
    tests = many(*sizes)
    parts = divide(tests, shards, {})
    assert len(parts) == shards
    assert sorted(test for part in parts for test in part) == sorted(tests)
    place = {test: index for index, test in enumerate(tests)}
    for part in parts:
        assert [place[test] for test in part] == sorted(place[test] for test in part)
    assert parts == divide(list(tests), shards, {})


def test_no_shard_is_empty_while_there_are_tests_enough() -> None:
    for shards in range(2, 12):
        assert all(divide(many(4, 4, 4), shards, {}))


def test_shards_are_even_when_times_are_known() -> None:
    draw = random.Random(7)
    tests = many(*(draw.randrange(1, 60) for _ in range(40)))
    seconds = {test: draw.lognormvariate(0, 1.5) for test in tests}
    for shards in (2, 4, 8):
        loads = [sum(seconds[test] for test in part) for part in divide(tests, shards, seconds)]
        assert max(loads) <= 1.05 * sum(loads) / shards or max(loads) == max(seconds.values())


def test_one_test_that_takes_longer_than_all_others_has_a_shard_of_its_own() -> None:
    tests = many(10)
    parts = divide(tests, 2, {**dict.fromkeys(tests, 1.0), tests[3]: 100.0})
    assert (tests[3],) in parts


def test_a_skipped_test_weighs_nothing() -> None:
    tests = many(8)
    parts = divide(tests, 2, {}, skipped=tests[:4])
    assert sorted(sum(test not in tests[:4] for test in part) for part in parts) == [2, 2]


def test_a_test_nobody_timed_is_taken_for_one_of_its_class() -> None:
    known = {"a.py::A::test_1": 4.0, "a.py::A::test_2": 6.0, "b.py::B::test_1": 1.0}
    assert expected(["a.py::A::test_new", "c.py::C::test_new", "b.py::B::test_1"], known) == {
        "a.py::A::test_new": 5.0,
        "c.py::C::test_new": 4.0,
        "b.py::B::test_1": 1.0,
    }


FOUR = """
class TestFour(unittest.TestCase):
    hw_classification = HW.GENERIC
    def test_1(self): pass
    def test_2(self): {second}
    def test_3(self): pass
    def test_4(self): pass
"""


@pytest.fixture
def job(tmp_path: Path) -> HardwareJob:
    return HardwareJob(tmp_path)


def test_each_shard_runs_its_part_and_says_which(job: HardwareJob) -> None:
    job.write(FOUR.format(second="self.fail('here')"))
    plan = job.plan(shards="2")
    assert (plan.shards, plan.sizes, len(plan.tests)) == (2, (2, 2), 4)
    with_failure = 1 if any("test_2" in test for test in plan.of_shard(1)) else 2
    assert isinstance(job.fail(shard=str(with_failure)), TestsFailed)
    assert (job.evidence.shard, job.evidence.shards) == (with_failure, 2)
    assert job.counts() == {"planned": 2, "passed": 1, "failed": 1}
    job.test(shard=str(3 - with_failure))
    assert job.counts() == {"planned": 2, "passed": 2}


def test_more_shards_than_tests_is_refused_before_anything_runs(job: HardwareJob) -> None:
    job.write(FOUR.format(second="pass"))
    with pytest.raises(UsageError, match="more shards than tests"):
        job.plan(shards="5")


def test_a_shard_that_the_plan_does_not_have_is_refused(job: HardwareJob) -> None:
    job.write(FOUR.format(second="pass"))
    job.plan(shards="2")
    error = job.fail_early(shard="3")
    assert isinstance(error, UsageError)
    assert "shard 3 of 2" in error.seen


def test_the_history_of_a_run_divides_the_next(job: HardwareJob) -> None:
    job.write(FOUR.format(second="__import__('time').sleep(1)"))
    job.plan()
    job.test()
    seconds = seconds_of_before(job.run_dir)
    assert len(seconds) == 4
    assert max(seconds, key=seconds.__getitem__).endswith("test_2")
    plan = job.plan(shards="2", history=str(job.run_dir))
    assert sorted(plan.sizes) == [1, 3]
    assert any(part[0].endswith("test_2") for part in (plan.of_shard(1), plan.of_shard(2)) if len(part) == 1)
