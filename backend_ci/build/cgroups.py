"""The control groups of this process: what they limit, and whether they ended a process for want of memory.

A job may sit several groups deep (a service, a container, a pod); the tightest limit on the way up holds.
Files: kernel.org, "Control Group v2" and "Memory Resource Controller" (v1).
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Optional

_UNLIMITED = 1 << 60  # version 1 writes a huge number for "no limit"
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


def cpu_quota(root: Path) -> Optional[float]:
    """Processors' worth of time that this process may use; None without a limit."""
    found = []
    for group in _groups(root, "cpu"):
        words = _read(group / "cpu.max").split() or [
            _read(group / "cpu.cfs_quota_us").strip(),
            _read(group / "cpu.cfs_period_us").strip(),
        ]
        if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
            found.append(int(words[0]) / int(words[1]))  # else "max", or -1
    return min(found) if found else None


def memory_limit(root: Path) -> Optional[int]:
    """Bytes that this process and its neighbours may use; None without a limit."""
    found = []
    for group in _groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(group / name).strip()
            if text.isdecimal() and int(text) < _UNLIMITED:
                found.append(int(text))
    return min(found) if found else None


def memory_kills(root: Path = Path("/")) -> int:
    """How many processes of this group the kernel has ended so far for want of memory."""
    for group in _groups(root, "memory"):
        for name in ("memory.events", "memory.oom_control"):
            match = _KILLS.search(_read(group / name))
            if match:
                return int(match[1])  # of the innermost group: those around it count their other members too
    return 0


def _groups(root: Path, controller: str) -> list[Path]:
    """The folders of this process's group and of those around it, innermost first. Some may not exist: a container
    often sees its own group as the root, and yet the path that its host gives it.
    """
    base = root / "sys" / "fs" / "cgroup"
    found = []
    for line in _read(root / "proc" / "self" / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        parts = PurePosixPath(path.lstrip("/")).parts
        for start in [base / controllers, base / controller] if controllers else [base]:
            found += [
                start.joinpath(*parts[:depth]) for depth in range(len(parts), 0, -1) if ".." not in parts
            ]
    return list(dict.fromkeys([*found, base / controller, base]))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
