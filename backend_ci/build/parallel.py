"""How many compilers may run at a time: from what this job may use, not from what the machine has."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from backend_ci.build.cgroups import cpu_quota, memory_limit

# A translation unit that includes torch/extension.h takes 1.5 GB without debug information, 2 GB with it.
BYTES_PER_JOB = 2 * 1024**3
JOB_VARIABLES = ("MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL")


@dataclass(frozen=True)
class Machine:
    """What this process may use. `quota` is in processors, memory in bytes; None where nothing limits it."""

    processors: int
    quota: Optional[float] = None
    memory: Optional[int] = None


def compile_jobs(machine: Machine) -> int:
    """Compilers at a time, at least one. Pure."""
    limits = [machine.processors]
    if machine.quota is not None:
        limits.append(int(machine.quota))
    if machine.memory is not None:
        limits.append(machine.memory // BYTES_PER_JOB)
    return max(min(limits), 1)


def job_variables(environment: Mapping[str, str], jobs: int) -> dict[str, str]:
    """The variables that PyTorch's build and CMake read. What the user set stays."""
    own = dict.fromkeys(JOB_VARIABLES, str(jobs))
    given = environment.get("MAX_JOBS", "").strip()
    if given:
        own = {"CMAKE_BUILD_PARALLEL_LEVEL": given}
    return {name: value for name, value in own.items() if not environment.get(name, "").strip()}


def read_machine(root: Path = Path("/")) -> Machine:
    """This process's limits: affinity, cgroup quota and memory (v2, then v1), memory that is free now."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = [value for value in (memory_limit(root), _free_memory(root)) if value is not None]
    return Machine(count, cpu_quota(root), min(limits) if limits else None)


def _free_memory(root: Path) -> Optional[int]:
    try:
        text = (root / "proc" / "meminfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None
