"""Start a foreign process: without our credentials, with a deadline, its output shown and kept.

Every process that may run a stranger's code starts here, so the rules hold for all of them.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, TextIO

_CREDENTIAL_PREFIXES = ("ACTIONS_", "CRCR_", "INPUT_")
_CREDENTIALS = frozenset({"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"})
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
_LONGEST_LINE_BYTES = 65_536
_READ_BYTES = 65_536
_POLL_SECONDS = 0.1
_CLOSED_POLL_SECONDS = 0.01
# How long a process's own children may go on writing after it has ended.
_LINGER_SECONDS = 1.0
_KILL_GRACE_SECONDS = 5.0


# Seconds of silence in; why the process must end out, empty to let it go on.
Watch = Callable[[float], str]


@dataclass(frozen=True)
class Completed:
    """How a process ended. `exit_code` is None when we ended it, negative for a signal.

    `stopped` is what the watch said when it ended the process; empty when it was the deadline.
    """

    exit_code: Optional[int]
    seconds: float
    tail: tuple[str, ...]
    stopped: str = ""

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def describe(self) -> str:
        if self.exit_code is None and self.stopped:
            return self.stopped
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
    watch: Optional[Watch] = None,
) -> Completed:
    """Run a command to its end or its deadline, in a process group of its own.

    `watch` is called a few times a second with how long the process has written nothing, in seconds; what it
    returns, unless it is empty, ends the process.

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
            bufsize=0,
            start_new_session=True,
        )
        output = _Output(tuple(target for target in (stream, file) if target is not None))
        stopped: Optional[str] = ""
        try:
            stopped = _pump(process, output, started + deadline_seconds, watch)
        finally:
            _end_group(process)
            output.end()
            if process.stdout is not None:
                process.stdout.close()
        exit_code = process.returncode if stopped is None else None
        return Completed(exit_code, time.monotonic() - started, tuple(output.tail), stopped or "")


class _Output:
    """Bytes in, lines out: to the targets as they come, and the last ones kept."""

    def __init__(self, targets: Sequence[TextIO]) -> None:
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._targets = targets
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self._line(line)
        # A process that never ends its line must not fill our memory.
        while len(self._rest) >= _LONGEST_LINE_BYTES:
            self._line(self._rest[:_LONGEST_LINE_BYTES])
            self._rest = self._rest[_LONGEST_LINE_BYTES:]

    def end(self) -> None:
        """What stands in a line that was never ended: often the name of the test that hung."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""

    def _line(self, raw: bytes) -> None:
        line = raw.decode("utf-8", errors="replace").rstrip("\r")
        self.tail.append(line)
        for target in self._targets:
            target.write(line + "\n")
            target.flush()


def _pump(
    process: subprocess.Popen[bytes], output: _Output, deadline: float, watch: Optional[Watch]
) -> Optional[str]:
    """Forward output until the process has ended: None. Else what the watch said, or "" for the deadline.

    The pipe may stay open longer than the process lives: a daemon it left holds the other end. Then what is
    there is read, for a moment, and no more is waited for.
    """
    pipe = process.stdout
    if pipe is None:
        return ""
    ended: Optional[float] = None
    spoke = time.monotonic()
    is_open = True
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (now := time.monotonic()) < deadline:
            if ended is None and process.poll() is not None:
                ended = now
            data = b""
            if not is_open:
                # It closed its output and is not gone: most often it is just ending.
                time.sleep(0 if ended is not None else min(deadline - now, _CLOSED_POLL_SECONDS))
            elif selector.select(0 if ended is not None else min(deadline - now, _POLL_SECONDS)):
                data = os.read(pipe.fileno(), _READ_BYTES)
                is_open = bool(data)
            if data:
                spoke = now
                output.feed(data)
            if ended is not None and (not data or now - ended > _LINGER_SECONDS):
                return None
            if watch is not None and ended is None and (why := watch(now - spoke)):
                return why
    return ""


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the process group: first politely, then not."""
    if process.poll() is None:
        _signal_group(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_KILL_GRACE_SECONDS)
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
