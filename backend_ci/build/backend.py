"""`crcr build-backend`: the backend extension against the torch under test, added to `build.json`."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Optional

from backend_ci.build.bytecode import compiling_meanwhile
from backend_ci.build.checks import check_backend, native_libraries, require_fresh
from backend_ci.build.compiler_cache import CompilerCacheOptions, compiler_cache
from backend_ci.build.disk import full_disk_told
from backend_ci.build.environment import (
    RunEnvironment,
    describe_wheel,
    give_pip,
    make_environment,
    require_commit,
    the_wheel,
)
from backend_ci.build.handover import keep_wheel
from backend_ci.build.needs import tell_needs
from backend_ci.job import prepared
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
    backend: tuple[str, ...] = option(
        "Folders of backends' sources, in the order to build them", default=(".",)
    )
    extra_wheels: tuple[str, ...] = option(
        "Wheels to install before them without their dependencies, such as torchvision==0.28.0, one a line",
        default=(),
    )
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


@full_disk_told()
def run(options: BuildBackendOptions, context: RunContext, commands: Commands) -> None:
    """Raises BuildError, UsageError, DocumentError."""
    context = prepared(options, context, commands)
    folder = context.run_folder(options.run_dir)
    build = load(Build, folder)
    sources = [_folder(context.workspace, name) for name in options.backend]
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
        extra = [_extra_wheel(name, environment, folder / "extra-wheels") for name in options.extra_wheels]
        with compiler_cache(
            options,
            environment,
            "build-backend",
            roots=(context.workspace, *sources),
            torch=Path(build.torch.location),
        ) as cache:
            wheels = [_install(options, source, cache.environment, folder) for source in sources]
        with commands.group("Check torch and the backend"):
            tell_needs(environment, [wheel.name for wheel in (*extra, *wheels) if wheel])
            libraries = [library for wheel in wheels if wheel for library in native_libraries(site, wheel)]
            check, torch = _check(options, environment, libraries)
            if check:
                commands.line(
                    f"{len(check.libraries)} native libraries load; autoload works; {check.device} computes 1 + 1"
                )
    require_commit(
        torch, build.commit, "backend-command: it must not install another torch (pip install --no-deps)"
    )
    made = [
        *(Backend(name, describe_wheel(wheel)) for name, wheel in zip(options.extra_wheels, extra)),
        *(
            Backend(str(source), describe_wheel(wheel) if wheel else None, check)
            for source, wheel in zip(sources, wheels)
        ),
    ]
    for wheel in (*extra, *wheels):
        if wheel is not None:
            keep_wheel(wheel, folder)
    statistics = (*build.compiler_cache, *cache.statistics)
    save(replace(build, torch=torch, backends=(*build.backends, *made), compiler_cache=statistics), folder)
    commands.output("python", build.interpreter)
    names = ", ".join(wheel.name for wheel in (*extra, *wheels) if wheel) or "the backend"
    commands.line(f"Installed {names}; torch is still {torch.git_version}")


def _folder(workspace: Path, name: str) -> Path:
    source = (workspace / name).absolute()
    if not source.is_dir():
        raise UsageError(
            "backend does not name a folder.",
            seen=f"no folder {source}",
            fix="backend: path in the repository",
        )
    return source


def _extra_wheel(name: str, environment: RunEnvironment, downloads: Path) -> Path:
    """Get a wheel, and install it as it is: its own requirement of torch must not bring another one."""
    place = downloads / re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    shutil.rmtree(place, ignore_errors=True)
    with environment.commands.group(f"Install {name}"):
        if name.endswith(".whl") and "://" not in name:
            wheel = the_wheel(environment.workspace or Path.cwd(), name)
        else:
            environment.pip("download", "--no-deps", "--only-binary=:all:", "--dest", str(place), name)
            wheel = the_wheel(place, "*.whl")
        environment.pip("install", "--no-deps", "--no-index", "--no-compile", "--force-reinstall", str(wheel))
    return wheel


def _install(
    options: BuildBackendOptions, source: Path, environment: RunEnvironment, folder: Path
) -> Optional[Path]:
    """Build and install one backend; the wheel, unless the user's command did it."""
    with environment.commands.group(f"Build the backend ({source.name})"):
        if options.backend_command:
            _run_command(options.backend_command, source, environment)
            return None
        return _build_wheel(source, environment, folder / "backend-wheels" / source.name)


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
