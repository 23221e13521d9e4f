"""Runs act as a child, line by line, under a deadline; and leaves no process behind, whatever happens."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TRACKING = "RUNNER_TRACKING_ID"
"""GitHub's runner ends what a job leaves running by this variable; so does the lab (actions/runner, JobExtension)."""

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class ActEnd:
    """How act ended. ``interrupted_at``: second at which the lab stopped it, None if it ended by itself."""

    returncode: int
    interrupted_at: float | None
    reason: str


def run_act(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    tracking: str,
    on_line: Callable[[str, float], None],
    timeout: float,
    grace: float,
    cancel: threading.Event | None,
) -> ActEnd:
    """Start ``command`` in ``folder`` and hand each line to ``on_line`` with its arrival in seconds.

    After ``timeout`` seconds, or when ``cancel`` is set, act is interrupted once (it then runs the ``always()`` steps
    of the jobs under way) and killed ``grace`` seconds later. Steps live in sessions of their own, which killing act's
    process group does not reach: they are found by ``tracking``, the value of RUNNER_TRACKING_ID in their environment.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    begun = time.monotonic()
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    interrupted_at: float | None = None
    reason = ""
    try:
        while True:
            now = time.monotonic() - begun
            if interrupted_at is None:
                reason = _reason_to_stop(now, timeout, cancel)
                if reason:
                    interrupted_at = now
                    _signal_group(process.pid, signal.SIGINT)
            elif now > interrupted_at + grace:
                _end(process.pid, tracking)
            try:
                line = lines.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if line is None:
                break
            on_line(line, time.monotonic() - begun)
    finally:
        _end(process.pid, tracking)
        process.wait()
    return ActEnd(process.returncode, interrupted_at, reason)


def tracked_processes(tracking: str) -> list[int]:
    """Ids of the processes whose environment holds this tracking id; empty where there is no /proc."""
    wanted = f"{TRACKING}={tracking}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process ended, or belongs to somebody else
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def _reason_to_stop(now: float, timeout: float, cancel: threading.Event | None) -> str:
    if cancel is not None and cancel.is_set():
        return "cancelled"
    return f"stopped after {timeout:g} s" if now > timeout else ""


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.put(line)
    lines.put(None)


def _end(group: int, tracking: str) -> None:
    _signal_group(group, signal.SIGKILL)
    for _ in range(20):  # a process may start another while we look
        found = tracked_processes(tracking)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
