"""Start a foreign process: without our credentials, with a deadline, its output shown and kept.

Every process that may run a stranger's code starts here, so the rules hold for all of them.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Optional, TextIO

_CREDENTIAL_PREFIXES = ("ACTIONS_", "CRCR_", "INPUT_")
_CREDENTIALS = frozenset({"GITHUB_TOKEN", "GH_TOKEN"})
# Files through which a process could speak to the runner in our step's name.
_RUNNER_FILES = frozenset(
    {
        "GITHUB_ENV",
        "GITHUB_PATH",
        "GITHUB_OUTPUT",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
        "GITHUB_ARTIFACTS",
    }
)
_TAIL_LINES = 200
_KILL_GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class Completed:
    """How a process ended. `exit_code` is None when the deadline ended it, negative for a signal."""

    exit_code: Optional[int]
    seconds: float
    tail: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def describe(self) -> str:
        if self.exit_code is None:
            return f"ended by its deadline after {self.seconds:.0f} s"
        if self.exit_code < 0:
            return f"killed by {_signal_name(-self.exit_code)}"
        return f"exit code {self.exit_code}"


def scrubbed(environment: Mapping[str, str], extra: Optional[Mapping[str, str]] = None) -> dict[str, str]:
    """The environment a foreign process may see: ours without credentials and runner files."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(_CREDENTIAL_PREFIXES) and name not in _CREDENTIALS | _RUNNER_FILES
    }
    return {**kept, **(extra or {})}


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    deadline_seconds: float,
    stream: Optional[TextIO] = None,
    log: Optional[Path] = None,
) -> Completed:
    """Run a command to its end or its deadline, in a process group of its own.

    Output (both streams) goes to `stream` and `log` as it comes; the last 200 lines are kept. At the end
    the whole group is killed: what a test left running must not outlive its shard.
    Raises OSError when the command cannot be started.
    """
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(log.open("a", encoding="utf-8", errors="replace")) if log else None
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        lines = _lines_of(process.stdout)
        timed_out = False
        try:
            timed_out = not _pump(lines, process, started + deadline_seconds, tail, stream, file)
        finally:
            _end_group(process)
        exit_code = process.returncode
        return Completed(None if timed_out else exit_code, time.monotonic() - started, tuple(tail))


def _pump(
    lines: queue.Queue[Optional[str]],
    process: subprocess.Popen[bytes],
    deadline: float,
    tail: deque[str],
    stream: Optional[TextIO],
    file: Optional[TextIO],
) -> bool:
    """Forward output until the process has ended. False when the deadline came first."""
    while True:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        try:
            line = lines.get(timeout=min(remaining, 0.5))
        except queue.Empty:
            # A background child may hold the pipe open after the process itself has ended.
            if process.poll() is not None:
                return True
            continue
        if line is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(deadline - time.monotonic(), 0.1))
                return True
            return False
        tail.append(line)
        for target in (stream, file):
            if target is not None:
                target.write(line + "\n")
                target.flush()


def _lines_of(pipe: Optional[IO[bytes]]) -> queue.Queue[Optional[str]]:
    """Read a pipe in a thread of its own; None marks its end."""
    lines: queue.Queue[Optional[str]] = queue.Queue(maxsize=10_000)

    def read() -> None:
        if pipe is not None:
            with contextlib.suppress(ValueError, OSError):
                for raw in pipe:
                    lines.put(raw.decode("utf-8", errors="replace").rstrip("\r\n"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the process group: first politely, then not."""
    if process.poll() is None:
        _signal_group(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_KILL_GRACE_SECONDS)
    _signal_group(process, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            process.stdout.close()


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
