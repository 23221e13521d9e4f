"""After a backend was installed: is torch still ours, does the backend load, and does its device answer.

One process of the run's interpreter asks everything. Only when that fails, each question is asked in a process
of its own, from the innermost cause outwards: PyTorch hides every error of a backend behind "Failed to load the
backend extension", so the library is then loaded by itself first.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Optional

from backend_ci.build.environment import IDENTITY, RunEnvironment, identity_in, last_error
from relay_client.documents.build import BackendCheck, Torch
from relay_client.errors import BackendBroken
from relay_client.runner.process import Completed

_NATIVE = (".so", ".pyd", ".dylib")

# Each takes the device's name (or nothing) and the native libraries as arguments, after `import torch`.
# Every symbol is resolved now, not when a test first calls it.
_LOAD = """
import ctypes, os
for path in sys.argv[2:]:
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    except OSError as error:
        sys.exit(f"error: {error}")
"""
_AUTOLOAD = """
name = torch._C._get_privateuse1_backend_name()
if name == "privateuse1":
    sys.exit("error: PyTorch knows no out-of-tree device after `import torch`")
"""
_ANSWER = """
device = sys.argv[1] or torch._C._get_privateuse1_backend_name()
result = (torch.ones(2, device=device) + 1).cpu().tolist()
if result != [2.0, 2.0]:
    sys.exit(f"error: torch.ones(2, device={device!r}) + 1 gave {result}")
print(device)
"""
_DEVICE = re.compile(r"[A-Za-z0-9_:]{1,64}")


@dataclass(frozen=True)
class Question:
    """One check: what it runs, whether with the backend autoloaded, and what a no means and what to change."""

    name: str
    code: str
    autoload: bool
    what: str
    fix: str


QUESTIONS = (
    Question(
        "loads",
        _LOAD,
        False,
        "The backend's library cannot be loaded into the torch it was built for.",
        "an undefined symbol was compiled against another torch: build without isolation, and clear the build's cache",
    ),
    Question(
        "autoloads",
        _AUTOLOAD,
        True,
        "`import torch` does not load the backend.",
        'declare [project.entry-points."torch.backends"]; the function must register the device',
    ),
    Question(
        "answers",
        _ANSWER,
        True,
        "The device does not answer.",
        "run `torch.ones(2, device=…) + 1` on this runner by hand; driver, permissions and kernels are its needs",
    ),
)


def check_backend(
    environment: RunEnvironment, libraries: Sequence[Path], device: Optional[str]
) -> tuple[BackendCheck, Torch]:
    """Prove that the backend loads, autoloads and answers; say in which torch. Raises BackendBroken, WrongTorch.

    `device` is the name of the device; None takes the one that the backend registered.
    """
    arguments = [device or "", *map(str, libraries)]
    done = _python(environment, IDENTITY + "".join(each.code for each in QUESTIONS), arguments, autoload=True)
    name = done.tail[-1].strip() if done.ok and done.tail else ""
    torch = identity_in(done.tail)
    if torch is not None and _DEVICE.fullmatch(name):
        return BackendCheck(device=name, libraries=tuple(path.name for path in libraries)), torch
    environment.torch()  # whether torch itself still works comes first
    for question in QUESTIONS:
        answer = _python(environment, question.code, arguments, question.autoload)
        if not answer.ok:
            raise _broken(question, answer)
    raise _broken(QUESTIONS[-1], done)


def native_libraries(site: Path, wheel: Path) -> list[Path]:
    """The installed native libraries of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return [site / name for name in archive.namelist() if name.endswith(_NATIVE)]


def require_fresh(wheel: Path, started: datetime) -> None:
    """Refuse a native library that is older than this build: a build tool's cache served it, compiled against
    whatever torch was there then. Raises BackendBroken. (Zip times have two seconds and no zone.)
    """
    with zipfile.ZipFile(wheel) as archive:
        natives = [item for item in archive.infolist() if item.filename.endswith(_NATIVE)]
    for item in natives:
        made = datetime(*item.date_time)  # noqa: DTZ001 - local time, as zip has it
        if (started - made).total_seconds() > 2:
            raise BackendBroken(
                "The backend's library was not compiled in this run, so nobody knows against which torch.",
                seen=f"{item.filename} in {wheel.name} is of {made}, the build began at {started:%Y-%m-%d %H:%M:%S}",
                fix="clear the cache of the build tool; SOURCE_DATE_EPOCH must not be set for the build",
            )


def _python(environment: RunEnvironment, code: str, arguments: Sequence[str], autoload: bool) -> Completed:
    command = [str(environment.interpreter), "-I", "-c", "import sys, torch\n" + code, *arguments]
    return environment.run(command, extra={"TORCH_DEVICE_BACKEND_AUTOLOAD": str(int(autoload))}, quiet=True)


def _broken(question: Question, done: Completed) -> BackendBroken:
    return BackendBroken(
        question.what, seen=f"{question.name}: {done.describe()}: {last_error(done)}", fix=question.fix
    )
