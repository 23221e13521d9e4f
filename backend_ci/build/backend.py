"""`crcr build-backend`: the backend extension against the torch under test, added to `build.json`."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Optional

from backend_ci.build.bytecode import compiling_meanwhile
from backend_ci.build.checks import check_backend, native_libraries, require_fresh
from backend_ci.build.compiler_cache import CompilerCacheOptions, compiler_cache
from backend_ci.build.environment import (
    RunEnvironment,
    describe_wheel,
    give_pip,
    make_environment,
    require_commit,
    the_wheel,
)
from backend_ci.build.handover import keep_wheel
from relay_client.documents.build import Backend, BackendCheck, Build, Torch
from relay_client.documents.document import load, save
from relay_client.errors import UsageError
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option

# While a backend is built, the one that is installed must not load: it may be the old one, or broken.
_NO_AUTOLOAD = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


@dataclass(frozen=True)
class BuildBackendOptions(CompilerCacheOptions):
    backend: Path = option("Folder of the backend's sources", default=Path())
    backend_command: Optional[str] = option(
        "Shell command that builds and installs it with $PYTHON (default: pip wheel, then install)",
        default=None,
    )
    check_backend: bool = option(
        "Whether to prove that the backend loads, autoloads, and that its device answers", default=True
    )
    device: Optional[str] = option(
        "Name of the device to ask (default: the one that the backend registers)", default=None
    )
    build_timeout_minutes: float = option("How long one build or install command may take", default=60.0)


OPTIONS = (BuildBackendOptions,)

OUTPUTS = {"python": "The interpreter that holds torch and the backend, absolute"}


def run(options: BuildBackendOptions, context: RunContext, commands: Commands) -> None:
    """Raises BuildError, UsageError, DocumentError."""
    folder = context.run_folder(options.run_dir)
    build = load(Build, folder)
    source = (context.workspace / options.backend).absolute()
    if not source.is_dir():
        raise UsageError(
            "backend does not name a folder.",
            seen=f"no folder {source}",
            fix="backend: path in the repository",
        )
    environment = make_environment(
        folder,
        Path(build.interpreter),
        context.environment,
        commands,
        options.build_timeout_minutes * 60,
        context.workspace,
    )
    site = environment.platlib()
    with compiling_meanwhile(environment, site):
        with compiler_cache(
            options,
            environment,
            "build-backend",
            roots=(context.workspace, source),
            torch=Path(build.torch.location),
        ) as cache:
            wheel = _install(options, source, cache.environment, folder)
        with commands.group("Check torch and the backend"):
            check, torch = _check(options, environment, native_libraries(site, wheel) if wheel else [])
            if check:
                commands.line(
                    f"{len(check.libraries)} native libraries load; autoload works; {check.device} computes 1 + 1"
                )
    require_commit(
        torch, build.commit, "backend-command: it must not install another torch (pip install --no-deps)"
    )
    if wheel is not None:
        keep_wheel(wheel, folder)
    backend = Backend(str(source), describe_wheel(wheel) if wheel else None, check)
    statistics = (*build.compiler_cache, *cache.statistics)
    save(replace(build, torch=torch, backends=(*build.backends, backend), compiler_cache=statistics), folder)
    commands.output("python", build.interpreter)
    commands.line(f"Installed {wheel.name if wheel else 'the backend'}; torch is still {torch.git_version}")


def _install(
    options: BuildBackendOptions, source: Path, environment: RunEnvironment, folder: Path
) -> Optional[Path]:
    """Build and install the backend; the wheel, unless the user's command did it."""
    with environment.commands.group(f"Build the backend ({options.backend})"):
        if options.backend_command:
            _run_command(options.backend_command, source, environment)
            return None
        return _build_wheel(source, environment, folder / "backend-wheels")


def _check(
    options: BuildBackendOptions, environment: RunEnvironment, libraries: list[Path]
) -> tuple[Optional[BackendCheck], Torch]:
    if options.check_backend:
        return check_backend(environment, libraries, options.device)
    return None, environment.torch()


def _build_wheel(source: Path, environment: RunEnvironment, wheels: Path) -> Path:
    """PEP 517 against the run's torch: an isolated build would fetch another torch to build against."""
    if wheels.exists():
        shutil.rmtree(wheels)
    started = datetime.now()  # noqa: DTZ005 - compared with the local times in a zip
    environment.pip(
        "wheel", "--verbose", "--no-cache-dir", "--no-deps", "--no-build-isolation",
        "--wheel-dir", str(wheels), str(source), extra=_NO_AUTOLOAD,
    )  # fmt: skip
    wheel = the_wheel(wheels, "*.whl")
    require_fresh(wheel, started)
    environment.pip("install", "--no-deps", "--no-index", "--force-reinstall", str(wheel), extra=_NO_AUTOLOAD)
    return wheel


def _run_command(command: str, source: Path, environment: RunEnvironment) -> None:
    """The user's own command, written in the workflow file; $PYTHON is the interpreter with torch."""
    give_pip(environment)
    environment.require(
        ["sh", "-ec", command],
        cwd=source,
        extra={**_NO_AUTOLOAD, "PYTHON": str(environment.interpreter)},
        what="backend-command failed.",
        fix="the log of this step has its whole output",
    )
