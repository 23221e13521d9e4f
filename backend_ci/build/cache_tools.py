"""ccache and sccache as programs: find them, ask them, and keep sccache's server for the time of a build."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from backend_ci.build.cache_settings import TOOLS
from backend_ci.build.environment import RunEnvironment
from relay_client.runner.process import scrubbed

# The tools answer at once; a server that does not is not waited for.
_ANSWER_SECONDS = 30.0
_SERVER_START_SECONDS = 10.0
_SERVER_END_SECONDS = 10.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Found:
    """The tools on PATH by name: their programs, and the versions they say they have."""

    programs: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def on_path(cls, environment: RunEnvironment) -> Found:
        # Where the build will look: what came with `requirements` is found too.
        path = (
            f"{environment.interpreter.parent}{os.pathsep}{environment.environment.get('PATH', os.defpath)}"
        )
        paths = {tool: shutil.which(tool, path=path) for tool in TOOLS}
        programs = {tool: program for tool, program in paths.items() if program}
        versions = {}
        for tool, program in programs.items():
            done = ask(environment, program, "--version")
            versions[tool] = done[0][:80] if done else ""
        return cls(programs, versions)


def ask(environment: RunEnvironment, program: str, *arguments: str) -> tuple[str, ...]:
    """What a tool answers, or nothing."""
    try:
        done = replace(environment, deadline_seconds=_ANSWER_SECONDS).run([program, *arguments], quiet=True)
    except OSError:
        return ()
    return done.tail if done.ok else ()


@contextlib.contextmanager
def server(program: str, environment: RunEnvironment, at: Path) -> Iterator[None]:
    """An sccache server of our own, in the foreground: a daemon would outlive the stage. Raises OSError."""
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("needs Unix sockets")
    own = {"SCCACHE_START_SERVER": "1", "SCCACHE_NO_DAEMON": "1"}
    process = subprocess.Popen(
        [program],
        cwd=environment.folder,
        env=scrubbed(environment.environment, own),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _await_server(process, at)
        yield
    finally:
        # It writes what it holds; and a client that found no server may have started another.
        ask(environment, program, "--stop-server")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SERVER_END_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await_server(process: subprocess.Popen[bytes], at: Path) -> None:
    deadline = time.monotonic() + _SERVER_START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(at))
            return
        time.sleep(_POLL_SECONDS)
    raise OSError("its server does not start")
