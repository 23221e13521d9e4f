"""`crcr install`: the environment of a build, on another machine, from what `crcr hand-over` gathered."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from backend_ci.build.checks import check_backend, native_libraries
from backend_ci.build.disk import full_disk_told
from backend_ci.build.environment import (
    RunEnvironment,
    describe_wheel,
    make_environment,
    require_commit,
    unconstrained,
)
from backend_ci.build.handover import CARRIED, OVERLAY, WHEELS
from backend_ci.build.overlay import stamp
from backend_ci.job import JobOptions, prepared
from relay_client.documents.build import Backend, Build, Overlay, Wheel
from relay_client.documents.document import load_file, save
from relay_client.errors import TorchChanged, UsageError, WheelNotFound
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option


@dataclass(frozen=True)
class InstallOptions(JobOptions):
    handover: Optional[Path] = option(
        "Folder below which the build job's hand-over lies; that of the newest attempt is taken",
        default=None,
        shell_only=True,
    )
    check_backend: bool = option(
        "Whether to prove that the backend loads, autoloads, and that its device answers", default=True
    )
    device: Optional[str] = option(
        "Name of the device to ask (default: the one that the backend registers)", default=None
    )
    build_timeout_minutes: float = option("How long one build or install command may take", default=60.0)


OPTIONS = (InstallOptions,)

OUTPUTS = {"python": "The interpreter that holds torch and the backend, absolute"}


@full_disk_told()
def run(options: InstallOptions, context: RunContext, commands: Commands) -> None:
    """Raises BuildError, UsageError, DocumentError."""
    started = time.monotonic()
    context = prepared(options, context, commands)
    folder = context.run_folder(options.run_dir)
    place = _newest(options.handover or folder / "handover")
    build = load_file(Build, place / Build.FILE)
    with commands.group("Make the run's environment"):
        environment = make_environment(
            folder, None, context.environment, commands, options.build_timeout_minutes * 60, context.workspace
        )
    torch_wheel = _handed_over(place, build.wheel)
    backends = [_handed_over(place, backend.wheel) for backend in build.backends if backend.wheel]
    with commands.group(f"Install {', '.join(path.name for path in (torch_wheel, *backends))}"):
        unconstrained(environment).pip("install", "--no-compile", str(torch_wheel), *build.requirements)
        site = environment.platlib()
        if build.overlay is not None:
            _lay(build.overlay, place / OVERLAY, site, build.commit)
        if backends:
            # The wheels of a build were made against its torch: nothing may be resolved anew.
            unconstrained(environment).pip(
                "install", "--no-compile", "--no-deps", "--no-index", *map(str, backends)
            )
    new = replace(build, interpreter=str(environment.interpreter), torch=environment.torch())
    require_commit(new.torch, build.commit, "run the build job again: its hand-over is not of this commit")
    if options.check_backend and build.backends:
        new = replace(new, backends=_checked(new, environment, site, backends, options.device, commands))
    if new.torch.version != build.torch.version:
        raise TorchChanged(
            "The torch that was installed is not the one that was built.",
            seen=f"{new.torch.version}, built was {build.torch.version}",
            fix="requirements: none of them may bring another torch",
        )
    for document in CARRIED:
        if document is not Build:
            shutil.copyfile(place / document.FILE, folder / document.FILE)
    save(new, folder)
    commands.output("python", new.interpreter)
    commands.line(
        f"torch {new.torch.version} at {new.torch.git_version} in {new.interpreter}, installed in "
        f"{time.monotonic() - started:.1f} s"
    )


def _newest(folder: Path) -> Path:
    """Where the hand-over lies: one folder per artifact, so one per attempt that built. Raises UsageError."""
    found = sorted(path.parent for path in folder.rglob(Build.FILE))
    if not found:
        raise UsageError(
            "There is no build to test.",
            seen=f"no {Build.FILE} below {folder}",
            fix="let a job with `stage: build` run before, with the same build-name: needs: [receive, build]",
        )
    return max(found, key=lambda path: _attempt(path.name))


def _attempt(name: str) -> int:
    number = name.rpartition("-attempt-")[2]
    return int(number) if number.isdecimal() else 0


def _handed_over(place: Path, wheel: Wheel) -> Path:
    """A wheel, proven to be the one that was built. Raises WheelNotFound."""
    path = place / WHEELS / Path(wheel.file).name
    if not path.is_file() or path.is_symlink() or describe_wheel(path) != wheel:
        raise WheelNotFound(
            "A wheel of the hand-over is not the one that was built.",
            seen=f"{wheel.file}: {'another file' if path.exists() else 'no such file'} in {path.parent}",
            fix="run the build job again; nothing between the jobs may change its artifact",
        )
    return path


def _lay(overlay: Overlay, files: Path, site: Path, commit: str) -> None:
    for path in overlay.laid:
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(files / path, site / path)
    for path in overlay.removed:
        (site / path).unlink(missing_ok=True)
    stamp(site, commit)


def _checked(
    build: Build,
    environment: RunEnvironment,
    site: Path,
    wheels: list[Path],
    device: Optional[str],
    commands: Commands,
) -> tuple[Backend, ...]:
    """Ask on this machine: the one that built may have no such device."""
    commands.line("Asking torch and the backend ...")
    libraries = [library for wheel in wheels for library in native_libraries(site, wheel)]
    check, _ = check_backend(environment, libraries, device)
    commands.line(
        f"{len(check.libraries)} native libraries load; autoload works; {check.device} computes 1 + 1"
    )
    return tuple(replace(backend, check=check) for backend in build.backends)
