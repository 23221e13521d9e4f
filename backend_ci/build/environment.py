"""The run's own Python environment: the one place that holds torch."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from backend_ci.build.compiler import first_error
from backend_ci.build.failures import classify
from relay_client.documents.build import Torch, Wheel
from relay_client.errors import CommandFailed, UsageError, WheelNotFound, WrongTorch
from relay_client.protocol.shape import ShapeError, parse
from relay_client.runner.commands import Commands
from relay_client.runner.process import Completed, run, scrubbed

# One line of JSON. Run isolated and away from any checkout: a folder named torch in the working folder would be
# imported instead.
IDENTITY = """
import json, pathlib, torch
print(json.dumps({
    "version": str(torch.__version__),
    "git_version": str(torch.version.git_version),
    "location": str(pathlib.Path(torch.__file__).parent),
}))
"""
LOG = "build.log"
_PLATLIB = "import sysconfig; print(sysconfig.get_path('platlib'))"


@dataclass(frozen=True)
class RunEnvironment:
    """An interpreter, and how to start things with it. Files below `workspace` are named relative to it."""

    interpreter: Path
    folder: Path
    environment: Mapping[str, str]
    commands: Commands
    deadline_seconds: float
    workspace: Optional[Path] = None

    def run(
        self,
        command: Sequence[str],
        *,
        extra: Optional[Mapping[str, str]] = None,
        cwd: Optional[Path] = None,
        quiet: bool = False,
    ) -> Completed:
        """Run a foreign command without credentials; its output is shown unless `quiet`."""
        settings = {
            # Programs that came with `requirements` (ninja, cmake) are found, as in an activated environment.
            "PATH": f"{self.interpreter.parent}{os.pathsep}{self.environment.get('PATH', os.defpath)}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
        }
        environment = scrubbed(self.environment, {**settings, **(extra or {})})
        if quiet:
            return run(
                command,
                cwd=cwd or self.folder,
                environment=environment,
                deadline_seconds=self.deadline_seconds,
            )
        with self.commands.foreign_output() as stream:
            return run(
                command,
                cwd=cwd or self.folder,
                environment=environment,
                deadline_seconds=self.deadline_seconds,
                stream=stream,
                log=self.folder / LOG,
            )

    def pip(self, *arguments: str, extra: Optional[Mapping[str, str]] = None) -> None:
        """Run the environment's pip. Raises CommandFailed."""
        self.require(
            [*_pip(self), *arguments],
            what=f"pip {arguments[0]} failed.",
            fix="the log of this step has pip's whole answer; indexes and proxies come from PIP_* variables",
            extra=extra,
        )

    def pip_check(self) -> tuple[str, ...]:
        """What pip says of requirements that are not met, a line each."""
        return self.run([*_pip(self), "check"], quiet=True).tail

    def require(
        self,
        command: Sequence[str],
        *,
        what: str,
        fix: str,
        extra: Optional[Mapping[str, str]] = None,
        cwd: Optional[Path] = None,
    ) -> None:
        """Run a command that may compile. Raises CommandFailed, with the compiler's first error if there was one."""
        log = self.folder / LOG
        before = log.stat().st_size if log.exists() else 0
        done = self.run(command, extra=extra, cwd=cwd)
        if done.ok:
            return
        with log.open(encoding="utf-8", errors="replace") as lines:
            lines.seek(before)
            cause = classify(done.exit_code, lines)
            if cause is not None:
                kind, seen = cause
                raise kind.error(f"{what[:-1]}: {kind.what}", seen=seen, fix=kind.fix)
            lines.seek(before)
            error = first_error(lines)
        if error is None:
            raise CommandFailed(what, seen=f"{done.describe()}: {last_error(done)}", fix=fix)
        error = error.seen_from(self.workspace)
        raise CommandFailed(
            f"{what[:-1]}: it does not compile.",
            seen=str(error)[:1_000],
            fix="if the line is PyTorch's, or calls PyTorch, look at what this commit changed there",
            file=error.file,
            line=error.line,
        )

    def platlib(self) -> Path:
        """The folder that packages are installed into."""
        done = self.run([str(self.interpreter), "-I", "-c", _PLATLIB], quiet=True)
        if not done.ok or not done.tail:
            raise CommandFailed(
                "The interpreter does not run.", seen=f"{self.interpreter}: {done.describe()}"
            )
        return Path(done.tail[-1])

    def torch(self) -> Torch:
        """What the installed torch says of itself, with no backend loaded. Raises WrongTorch."""
        done = self.run(
            [str(self.interpreter), "-I", "-c", IDENTITY],
            extra={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
            quiet=True,
        )
        torch = identity_in(done.tail[-1:]) if done.ok else None
        if torch is not None:
            return torch
        raise WrongTorch(
            "The installed torch cannot be imported.",
            seen=f"{done.describe()}: {last_error(done)}",
            fix="check that the wheel fits the interpreter and the machine, and that it came with its dependencies",
        )


def identity_in(lines: Iterable[str]) -> Optional[Torch]:
    """What IDENTITY printed among these lines, if it did."""
    for line in lines:
        try:
            return parse(Torch, json.loads(line))
        except (ValueError, ShapeError, RecursionError):
            continue
    return None


def make_environment(
    folder: Path,
    given: Optional[Path],
    environment: Mapping[str, str],
    commands: Commands,
    deadline_seconds: float,
    workspace: Optional[Path] = None,
) -> RunEnvironment:
    """A new virtual environment in the run folder, or the user's own interpreter as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    if given is not None:
        if not given.is_file():
            raise UsageError(
                "python does not name an interpreter.",
                seen=f"no file {given}",
                fix="python: the absolute path of a Python, or leave it out to get a new environment",
            )
        return RunEnvironment(given.absolute(), folder, environment, commands, deadline_seconds, workspace)
    bare = RunEnvironment(Path(sys.executable), folder, environment, commands, deadline_seconds)
    return new_environment(bare, folder / "environment")


def new_environment(environment: RunEnvironment, place: Path) -> RunEnvironment:
    """A new virtual environment at `place`, in place of an older one, of the interpreter of `environment`.

    Raises CommandFailed, UsageError.
    """
    if place in Path(sys.executable).parents:
        raise UsageError(
            "The Python that runs crcr lies in the environment that is to be made anew.",
            seen=f"{sys.executable} is below {place}",
            fix="CRCR_LAUNCHER_PYTHON: a Python of the machine or the image, not one of a run",
        )
    if place.exists():
        shutil.rmtree(place)
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    made = replace(environment, interpreter=python)
    # Installing pip takes longer than making all the rest of an environment.
    without_pip = ["--without-pip"] if _tool_pip_serves_others(made) else []
    _make(made, [str(environment.interpreter), "-I", "-m", "venv", *without_pip, str(place)])
    return made


def unconstrained(environment: RunEnvironment) -> RunEnvironment:
    """Without the constraints that the machine gives pip: one such as torch<3 must not decide against the commit.

    They may stand in a configuration file, which an empty variable would leave in force.
    """
    return replace(environment, environment={**environment.environment, "PIP_CONSTRAINT": os.devnull})


def give_pip(environment: RunEnvironment) -> None:
    """Make `python -m pip` work in the environment, for a command of the user's that may call it."""
    interpreter = str(environment.interpreter)
    if not environment.run([interpreter, "-I", "-m", "pip", "--version"], quiet=True).ok:
        _make(environment, [interpreter, "-I", "-m", "ensurepip", "--default-pip"])


def _make(environment: RunEnvironment, command: Sequence[str]) -> None:
    done = environment.run(command)
    if not done.ok:
        raise CommandFailed(
            "The run's environment could not be made.",
            seen=f"{done.describe()}: {last_error(done)}",
            fix="install the venv module (Debian: python3-venv), or name an interpreter with `python:`",
        )


def _pip(environment: RunEnvironment) -> list[str]:
    """The command of pip for an environment: the tool's own where it can, for that saves installing one."""
    if _tool_pip_serves_others(environment):
        return [sys.executable, "-I", "-m", "pip", "--python", str(environment.interpreter)]
    return [str(environment.interpreter), "-m", "pip"]


def _tool_pip_serves_others(environment: RunEnvironment) -> bool:
    """Whether the Python that runs this tool has a pip that knows `--python`: 22.3 or newer."""
    if sys.executable not in _PIP_SERVES_OTHERS:
        done = environment.run([sys.executable, "-I", "-m", "pip", "--version"], quiet=True)
        match = re.match(r"pip (\d+)\.(\d+)", done.tail[-1]) if done.ok and done.tail else None
        _PIP_SERVES_OTHERS[sys.executable] = match is not None and (int(match[1]), int(match[2])) >= (22, 3)
    return _PIP_SERVES_OTHERS[sys.executable]


# Asked once per process: each answer costs the start of an interpreter.
_PIP_SERVES_OTHERS: dict[str, bool] = {}


def the_wheel(folder: Path, pattern: str) -> Path:
    """The one file a pattern names. Raises WheelNotFound for none or several."""
    absolute = pattern if Path(pattern).is_absolute() else f"{glob.escape(str(folder))}/{pattern}"
    found = sorted(map(Path, glob.glob(absolute)))  # noqa: PTH207 - Path.glob raises for some patterns
    if len(found) != 1:
        raise WheelNotFound(
            "No wheel matches." if not found else "More than one wheel matches.",
            seen=f"{pattern} in {folder}: {', '.join(path.name for path in found[:5]) or 'nothing'}",
            fix="name exactly one wheel: by its path, by a pattern, or as a requirement such as torch==2.13.0",
        )
    return found[0]


def describe_wheel(path: Path) -> Wheel:
    """File name and digest of a wheel."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return Wheel(path.name, digest.hexdigest())


def last_error(done: Completed) -> str:
    """The line of a log that most likely says what went wrong."""
    lines = [line.strip() for line in done.tail if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no output"])[-1][:500]


def require_commit(torch: Torch, commit: str, fix: str) -> None:
    """Refuse a torch that is not the dispatched commit. Raises WrongTorch."""
    if torch.git_version != commit:
        raise WrongTorch(
            "The installed torch is not the dispatched commit.",
            seen=f"torch.version.git_version is {torch.git_version}, dispatched is {commit}",
            fix=fix,
        )
