"""What a build decides without building: how many jobs, what is the same build, why a command failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from backend_ci.build.cgroups import memory_kills
from backend_ci.build.failures import classify
from backend_ci.build.parallel import Machine, compile_jobs, job_variables, read_machine
from backend_ci.build.recipe import build_flags, differences, recipe_key
from backend_ci.build.store import surplus
from relay_client.documents.manifest import Named, Recipe
from relay_client.errors import BuildError, DiskFull, OutOfMemory, RequirementsUnsatisfiable

GB = 1024**3


@pytest.mark.parametrize(
    ("machine", "jobs"),
    [
        (Machine(64), 64),
        (Machine(64, memory=16 * GB), 8),
        (Machine(64, quota=6.5), 6),
        (Machine(64, quota=0.5), 1),
        (Machine(2, memory=1 * GB), 1),
        (Machine(8, quota=4.0, memory=64 * GB), 4),
    ],
)
def test_jobs_are_what_this_job_may_use(machine: Machine, jobs: int) -> None:
    assert compile_jobs(machine) == jobs


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("files", "quota", "memory"),
    [
        (
            {"sys/fs/cgroup/cpu.max": "250000 100000\n", "sys/fs/cgroup/memory.max": "8589934592\n"},
            2.5,
            8 * GB,
        ),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/memory.max": "max\n"}, None, None),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "4294967296\n",
            },
            1.5,
            4 * GB,
        ),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable:    2097152 kB\n",
            },
            None,
            2 * GB,
        ),
        (
            {
                "proc/self/cgroup": "0::/ci.slice/runner.service\n",
                "sys/fs/cgroup/ci.slice/cpu.max": "300000 100000\n",
                "sys/fs/cgroup/ci.slice/memory.max": "4294967296\n",
                "sys/fs/cgroup/ci.slice/runner.service/cpu.max": "max 100000\n",
                "sys/fs/cgroup/ci.slice/runner.service/memory.max": "8589934592\n",
                "sys/fs/cgroup/ci.slice/other.service/cpu.max": "100000 100000\n",
            },
            3.0,
            4 * GB,
        ),
        (
            {
                "proc/self/cgroup": "7:cpu,cpuacct:/docker/5f\n6:memory:/docker/5f\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/5f/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/5f/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/docker/5f/memory.limit_in_bytes": "2147483648\n",
            },
            2.0,
            2 * GB,
        ),
        ({"proc/self/cgroup": "0::/../../etc\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1.0, None),
        ({}, None, None),
        ({"sys/fs/cgroup/cpu.max": "0 0\n"}, None, None),
    ],
)
def test_limits_are_read_from_both_kinds_of_cgroups(
    tmp_path: Path, files: dict[str, str], quota: Optional[float], memory: Optional[int]
) -> None:
    write_files(tmp_path, files)
    machine = read_machine(tmp_path)
    assert (machine.quota, machine.memory) == (quota, memory)
    assert machine.processors >= 1


@pytest.mark.parametrize(
    ("files", "kills"),
    [
        ({}, 0),
        ({"sys/fs/cgroup/memory.events": "low 0\noom 3\noom_kill 2\noom_group_kill 0\n"}, 2),
        ({"sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"}, 5),
        (
            {
                "proc/self/cgroup": "0::/pods/ours\n",
                "sys/fs/cgroup/pods/ours/memory.events": "oom_kill 1\n",
                "sys/fs/cgroup/pods/memory.events": "oom_kill 40\n",
            },
            1,
        ),
    ],
)
def test_what_the_kernel_ended_is_counted_for_this_job_alone(
    tmp_path: Path, files: dict[str, str], kills: int
) -> None:
    write_files(tmp_path, files)
    assert memory_kills(tmp_path) == kills


def test_what_the_user_set_stays() -> None:
    assert job_variables({}, 4) == {"MAX_JOBS": "4", "CMAKE_BUILD_PARALLEL_LEVEL": "4"}
    assert job_variables({"MAX_JOBS": "9"}, 4) == {"CMAKE_BUILD_PARALLEL_LEVEL": "9"}
    assert job_variables({"MAX_JOBS": "9", "CMAKE_BUILD_PARALLEL_LEVEL": "2"}, 4) == {}


def test_flags_are_what_changes_a_build_and_nothing_else() -> None:
    environment = {
        "USE_CUDA": "0", "BUILD_TEST": "0", "CMAKE_BUILD_TYPE": "Debug", "CXXFLAGS": "-O1", "CC": "clang", "DEBUG": "1",
        "_GLIBCXX_USE_CXX11_ABI": "1", "PYTORCH_BUILD_VERSION": "2", "TORCH_CUDA_ARCH_LIST": "8.0",
        "MAX_JOBS": "8", "CMAKE_BUILD_PARALLEL_LEVEL": "8", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "HOME": "/x",
        "CCACHE_DIR": "/c", "PATH": "/bin", "USER": "me", "BUILD_URL": "https://ci", "CI": "true",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }  # fmt: skip
    assert set(build_flags(environment)) == {
        "USE_CUDA", "BUILD_TEST", "CMAKE_BUILD_TYPE", "CXXFLAGS", "CC", "DEBUG", "_GLIBCXX_USE_CXX11_ABI",
        "PYTORCH_BUILD_VERSION", "TORCH_CUDA_ARCH_LIST",
    }  # fmt: skip


RECIPE = Recipe(
    commit="ab" * 20,
    submodules=(Named("third_party/x", "cd" * 20),),
    flags=(Named("USE_CUDA", "0"),),
    requirements=(),
    command="",
    compiler="g++ 12",
    python="cpython-311",
    platform="linux x86_64 glibc 2.36",
    image="",
    recipe_version=1,
)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"commit": "ee" * 20}, "commit: abab"),
        ({"submodules": (Named("third_party/x", "ff" * 20),)}, "submodules third_party/x: cdcd"),
        ({"submodules": ()}, "submodules third_party/x: " + "cd" * 20 + ", now absent"),
        ({"flags": (Named("USE_CUDA", "1"),)}, "flags USE_CUDA: 0, now 1"),
        ({"flags": (Named("DEBUG", "1"), Named("USE_CUDA", "0"))}, "flags DEBUG: absent, now 1"),
        ({"requirements": ("cmake<4",)}, "requirements cmake<4: absent, now there"),
        ({"command": "make"}, "command: none, now make"),
        ({"compiler": "g++ 13"}, "compiler: g++ 12, now g++ 13"),
        ({"python": "cpython-312"}, "python: cpython-311"),
        ({"platform": "linux aarch64"}, "platform: linux x86_64"),
        ({"image": "sha256:1"}, "image: none, now sha256:1"),
        ({"recipe_version": 2}, "recipe_version: 1, now 2"),
    ],
)
def test_every_part_of_a_recipe_makes_another_build(change: dict[str, object], says: str) -> None:
    wanted = replace(RECIPE, **change)  # type: ignore[arg-type]
    assert differences(wanted, RECIPE)[0].startswith(says)
    assert recipe_key(wanted) != recipe_key(RECIPE)
    assert differences(RECIPE, RECIPE) == []


@pytest.mark.parametrize(
    ("limit", "before", "removed"),
    [
        (100, 99.0, []),
        (60, 99.0, []),
        (59, 99.0, ["b"]),
        (30, 99.0, ["b", "a"]),
        (0, 99.0, ["b", "a", "c"]),
        (0, 15.0, ["b"]),
        (0, 5.0, []),
    ],
)
def test_the_wheels_that_served_nobody_for_longest_go_first(
    limit: int, before: float, removed: list[str]
) -> None:
    sizes = {Path("a"): 10, Path("b"): 20, Path("c"): 30}
    used = {Path("a"): 20.0, Path("b"): 10.0, Path("c"): 30.0}
    assert [path.name for path in surplus(sizes, used, limit, before)] == removed


@pytest.mark.parametrize(
    ("code", "lines", "error"),
    [
        (1, ["c++: fatal error: Killed signal terminated program cc1plus"], OutOfMemory),
        (137, ["[1/2] c++ x"], OutOfMemory),
        (-9, [], OutOfMemory),
        (1, ["  │ exit code: -9\n"], OutOfMemory),
        (2, ["make[1]: *** [Makefile:4: sum.o] Killed"], OutOfMemory),
        (1, ["subprocess.CalledProcessError: Command 'c++' died with <Signals.SIGKILL: 9>."], OutOfMemory),
        (1, ["  │ exit code: -11\n"], None),
        (1, ["OSError: [Errno 28] No space left on device", "Killed signal terminated program"], DiskFull),
        (1, ["ERROR: No matching distribution found for x==1"], RequirementsUnsatisfiable),
        (1, ["ERROR: ResolutionImpossible: for help"], RequirementsUnsatisfiable),
        (1, ["x.cpp:1:1: error: no"], None),
        (-11, ["Segmentation fault"], None),
        (None, [], None),
    ],
)
def test_a_failed_command_s_cause(
    code: Optional[int], lines: list[str], error: Optional[type[BuildError]]
) -> None:
    found = classify(code, lines)
    assert (found[0].error if found else None) is error
    assert found is None or found[1]
