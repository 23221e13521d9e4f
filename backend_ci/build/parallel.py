"""How many compilers may run at a time: from what this job may use, not from what the machine has."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

# A translation unit that includes torch/extension.h takes 1.5 GB without debug information, 2 GB with it.
BYTES_PER_JOB = 2 * 1024**3
_UNLIMITED = 1 << 60  # cgroup v1 writes a huge number for "no limit"


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
    own = {"MAX_JOBS": str(jobs), "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs)}
    given = environment.get("MAX_JOBS", "").strip()
    if given:
        own = {"CMAKE_BUILD_PARALLEL_LEVEL": given}
    return {name: value for name, value in own.items() if not environment.get(name, "").strip()}


def read_machine(root: Path = Path("/")) -> Machine:
    """This process's limits: affinity, cgroup quota and memory (v2, then v1), memory that is free now."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cgroup = root / "sys" / "fs" / "cgroup"
    free = _free_memory(root)
    limits = [value for value in (_memory_limit(cgroup), free) if value is not None]
    return Machine(count, _quota(cgroup), min(limits) if limits else None)


def _quota(cgroup: Path) -> Optional[float]:
    """Processors' worth of time per period (kernel.org, cgroup-v2, "cpu.max"; cgroup-v1, "cfs_quota_us")."""
    words = _read(cgroup / "cpu.max").split()
    if not words:
        words = [
            _read(cgroup / "cpu" / "cpu.cfs_quota_us").strip(),
            _read(cgroup / "cpu" / "cpu.cfs_period_us").strip(),
        ]
    if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
        return int(words[0]) / int(words[1])
    return None  # "max", or -1


def _memory_limit(cgroup: Path) -> Optional[int]:
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        text = _read(cgroup / name).strip()
        if text.isdecimal() and int(text) < _UNLIMITED:
            return int(text)
    return None


def _free_memory(root: Path) -> Optional[int]:
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", _read(root / "proc" / "meminfo"), re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
