"""Compile the bytecode of what tests import first, on the core that is idle while a backend is built.

pip's own compiling would cost ten seconds before anything else can start; without any, the first collection of
tests pays for it. What is compiled when the block ends is kept, the rest is not waited for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from backend_ci.build.environment import RunEnvironment
from relay_client.runner.process import scrubbed

# In the order of their worth: PyTorch's test classes and operator database, and what they import.
_FIRST = (
    "torch/testing", "torch/_dynamo", "sympy", "mpmath", "_pytest", "torch/distributed", "torch/fx",
    "torch/_functorch", "torch/_inductor", "torch/onnx", "torch/utils", "numpy",
)  # fmt: skip
_LOWEST_PRIORITY = 19


@contextlib.contextmanager
def compiling_meanwhile(environment: RunEnvironment, site: Path) -> Iterator[None]:
    """Compile in the background for as long as the block lasts. Files are only read, never run."""
    packages = [str(site / name) for name in _FIRST if (site / name).is_dir()]
    command = [str(environment.interpreter), "-I", "-m", "compileall", "-q", *packages]
    with subprocess.Popen(
        command,
        cwd=environment.folder,
        env=scrubbed(environment.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, process.pid, _LOWEST_PRIORITY)
        try:
            yield
        finally:
            # Each file is written whole or not at all, so it may be ended anywhere.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
