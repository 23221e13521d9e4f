"""Run git: never asking, never through the user's global configuration, always with a deadline."""

from __future__ import annotations

import copy
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from relay_client.errors import RemoteUnreachable, UsageError
from relay_client.runner.process import scrubbed

_SETTINGS = {
    # A transfer below 1 kB/s for a minute is dead; git would wait for ever.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    # The tree belongs to a stranger: none of its hooks or helpers may run.
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "advice.detachedHead": "false",
    "gc.auto": "0",
}


@dataclass(frozen=True)
class GitAnswer:
    exit_code: int
    output: str
    error: str

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def last_error(self) -> str:
        lines = [line for line in self.error.splitlines() if line.strip()]
        return lines[-1] if lines else f"git ended with {self.exit_code}"


class Git:
    """Git in one repository. The environment keeps the user's own GIT_CONFIG_* (mirrors, proxies).

    `settings` are git's own, for this object only: they reach git through its environment, and no disk.
    """

    def __init__(
        self, repository: Path, environment: Mapping[str, str], settings: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._repository = repository
        self._environment = _environment(environment, settings)

    def elsewhere(self, repository: Path) -> Git:
        """The same settings, in another repository."""
        other = copy.copy(self)
        other._repository = repository
        return other

    def __call__(self, *arguments: str, deadline_seconds: float = 60) -> GitAnswer:
        """Run `git ARGUMENTS`. Raises RemoteUnreachable past the deadline, UsageError without git."""
        try:
            process = subprocess.Popen(
                ["git", *arguments],
                cwd=self._repository,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise UsageError(
                "git is not installed.", seen="no `git` on PATH", fix="install git on the runner or image"
            ) from None
        with process:
            try:
                output, error = process.communicate(timeout=deadline_seconds)
            except subprocess.TimeoutExpired:
                raise RemoteUnreachable(
                    f"git {arguments[0]} did not end.",
                    seen=f"no end after {deadline_seconds:.0f} s",
                    fix="check the network to the remote, or raise `timeout-minutes` of the checkout",
                ) from None
            finally:
                if process.poll() is None:
                    # With git go its helpers: one that waits for the network keeps the pipes open.
                    os.killpg(process.pid, signal.SIGKILL)
        return GitAnswer(
            process.returncode,
            output.decode("utf-8", errors="replace"),
            error.decode("utf-8", errors="replace"),
        )


def without_credentials(url: str) -> str:
    """A remote's address for logs and documents."""
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@", r"\1", url)


def _environment(environment: Mapping[str, str], settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Settings through GIT_CONFIG_COUNT: nothing on disk, nothing in the argument list."""
    result = scrubbed(environment)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        result.pop(name, None)
    given = result.get("GIT_CONFIG_COUNT") or "0"
    if not given.isdecimal():
        raise UsageError(
            "GIT_CONFIG_COUNT is not a number.",
            seen=f"GIT_CONFIG_COUNT={given}",
            fix="set it to how many GIT_CONFIG_KEY_<n> there are, or take it out of the environment",
        )
    count = int(given)
    for name, value in (*_SETTINGS.items(), *settings):
        result[f"GIT_CONFIG_KEY_{count}"] = name
        result[f"GIT_CONFIG_VALUE_{count}"] = value
        count += 1
    result["GIT_CONFIG_COUNT"] = str(count)
    result["GIT_TERMINAL_PROMPT"] = "0"
    result["LC_ALL"] = "C"
    return result
