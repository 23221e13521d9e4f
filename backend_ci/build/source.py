"""The source provider: whatever the checkout's own pyproject.toml produces, as a wheel, in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import sys
import time
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from backend_ci.build.cgroups import memory_kills
from backend_ci.build.environment import (
    RunEnvironment,
    describe_wheel,
    give_pip,
    new_environment,
    the_wheel,
    unconstrained,
)
from backend_ci.build.parallel import JOB_VARIABLES, compile_jobs, job_variables, read_machine
from relay_client.documents.manifest import Manifest, Recipe
from relay_client.errors import BuildError, CommandFailed, OutOfMemory, UsageError

# The environment's own reader of TOML, or the one inside its pip: this tool must run where neither is part of Python.
_READ_REQUIRES = """
import json, sys
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    print(json.dumps(tomllib.load(file).get("build-system", {}).get("requires", ["setuptools", "wheel"])))
"""


@dataclass(frozen=True)
class SourceBuild:
    """How a wheel is built. `command` is the user's own; it puts one wheel into the folder $WHEELS."""

    checkout: Path
    command: str = ""
    requirements: tuple[str, ...] = ()


def build_environment(environment: RunEnvironment, source: SourceBuild) -> RunEnvironment:
    """An environment with what `[build-system].requires` of the checkout names, and nothing of the run's.

    Made anew each time, at the same place: its path is part of what a compiler cache knows a file by.
    """
    made = new_environment(environment, environment.folder / "build-environment")
    wanted = [*_requires(made, source.checkout), *source.requirements]
    if wanted:
        made.pip("install", *wanted)
    if source.command:
        give_pip(made)
    return made


def build_wheel(made: RunEnvironment, source: SourceBuild, recipe: Recipe, out: Path) -> Manifest:
    """Build into `out`. After a compiler ran out of memory it is tried once more with half the jobs.

    Raises BuildError.
    """
    started = time.monotonic()
    given = made.environment.get("MAX_JOBS", "").strip()
    jobs = int(given) if given.isdecimal() and int(given) else compile_jobs(read_machine())
    try:
        _build(made, source, jobs, out)
    except OutOfMemory as error:
        if jobs == 1:
            raise
        jobs = max(jobs // 2, 1)
        made.commands.warning(
            f"A compiler ran out of memory ({error.seen}). Trying once more with MAX_JOBS={jobs}."
        )
        without = {name: value for name, value in made.environment.items() if name not in JOB_VARIABLES}
        _build(replace(made, environment=without), source, jobs, out)
    wheel = the_wheel(out, "*.whl")
    return Manifest(
        recipe=recipe,
        file=wheel.name,
        sha256=describe_wheel(wheel).sha256,
        built_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - started, 3),
        jobs=jobs,
        peak_memory=_peak_memory(),
    )


def _build(made: RunEnvironment, source: SourceBuild, jobs: int, out: Path) -> None:
    for old in out.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    variables = job_variables(made.environment, jobs)
    made.commands.line(f"{jobs} compiler(s) at a time")
    kills = memory_kills()
    try:
        if source.command:
            made.require(
                ["sh", "-ec", source.command],
                cwd=source.checkout,
                extra={**variables, "PYTHON": str(made.interpreter), "WHEELS": str(out)},
                what="build-command failed.",
                fix="the log of this step has its whole output",
            )
            return
        unconstrained(made).pip(
            "wheel", "--verbose", "--no-cache-dir", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out),
            str(source.checkout), extra=variables,
        )  # fmt: skip
    except CommandFailed as error:
        # A build tool may say nothing of it; the kernel counts.
        if (more := memory_kills() - kills) <= 0:
            raise
        raise OutOfMemory(
            f"{error.what[:-1]}: the memory of this job ran out.",
            seen=f"the kernel ended {more} process(es) of this job's control group; {error.seen}",
            fix="MAX_JOBS: fewer compilers at a time (about 2 GB each), or a runner with more memory",
        ) from error


def _requires(made: RunEnvironment, checkout: Path) -> list[str]:
    """The build requirements that the checkout itself states. Raises UsageError, BuildError."""
    path = checkout / "pyproject.toml"
    if not path.is_file() and (checkout / "setup.py").is_file():
        return ["setuptools", "wheel"]  # PEP 517: what holds without the file
    if not path.is_file():
        raise UsageError(
            "The checkout cannot be built.",
            seen=f"no pyproject.toml and no setup.py in {checkout}",
            fix="repository: PyTorch's repository; or build-command: how your sources are built",
        )
    # One of them has tomllib, or a pip that brings one: a distribution's Python may have neither.
    names = None
    for python in (sys.executable, str(made.interpreter)):
        done = made.run([python, "-I", "-c", _READ_REQUIRES, str(path)], quiet=True)
        with contextlib.suppress(ValueError, RecursionError):
            names = json.loads(done.tail[-1]) if done.ok and done.tail else None
        if names is not None:
            break
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BuildError(
            "The build requirements of the checkout cannot be read.",
            seen=f"{path}: {done.tail[-1] if done.tail else done.describe()}",
            fix="[build-system].requires must be a list of requirements",
        )
    return names


def _peak_memory() -> int:
    """Of the largest process that this one started and that has ended, in bytes (getrusage(2): kB on Linux)."""
    size = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024
