"""Run git: never asking, never through the user's global configuration, always with a deadline."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

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
    """Git in one repository. The environment keeps the user's own GIT_CONFIG_* (mirrors, proxies)."""

    def __init__(self, repository: Path, environment: Mapping[str, str]) -> None:
        self._repository = repository
        self._environment = _environment(environment)

    def __call__(self, *arguments: str, deadline_seconds: float = 60) -> GitAnswer:
        """Run `git ARGUMENTS`. Raises RemoteUnreachable past the deadline, UsageError without git."""
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=self._repository,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=deadline_seconds,
                check=False,
            )
        except FileNotFoundError:
            raise UsageError(
                "git is not installed.", seen="no `git` on PATH", fix="install git on the runner or image"
            ) from None
        except subprocess.TimeoutExpired:
            raise RemoteUnreachable(
                f"git {arguments[0]} did not end.",
                seen=f"no end after {deadline_seconds:.0f} s",
                fix="check the network to the remote, or raise `timeout-minutes` of the checkout",
            ) from None
        return GitAnswer(
            done.returncode,
            done.stdout.decode("utf-8", errors="replace"),
            done.stderr.decode("utf-8", errors="replace"),
        )


def without_credentials(url: str) -> str:
    """A remote's address for logs and documents."""
    parts = urlsplit(url)
    if not parts.hostname or "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings through GIT_CONFIG_COUNT: nothing on disk, nothing in the argument list."""
    result = scrubbed(environment)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        result.pop(name, None)
    count = int(result.get("GIT_CONFIG_COUNT", "0") or 0)
    for name, value in _SETTINGS.items():
        result[f"GIT_CONFIG_KEY_{count}"] = name
        result[f"GIT_CONFIG_VALUE_{count}"] = value
        count += 1
    result["GIT_CONFIG_COUNT"] = str(count)
    result["GIT_TERMINAL_PROMPT"] = "0"
    result["LC_ALL"] = "C"
    return result
